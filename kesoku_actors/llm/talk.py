"""A request's rows as the parts that every wire is made from: what was said to the model, and what it answered. Pure.

Invariants:

* the rows of one inference (texts and calls) are one `Answered`; thoughts stay at home;
* a result is found by its parent and belongs to its call, whatever its place;
* people and notices stand on the user's side, each a `Said`: the sender's name before a text unless it is the
  anonymous one, a notice quoted and marked as no person's;
* a partial answer is followed by a remark on the user's side, never in the model's own words;
* a row gives the same part in every request, so that the prefix stays the same bytes for the provider's cache.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, Final

from attrs import field

from kesoku_actors.llm.port import Request, StepContent
from kesoku_actors.protocol import ANONYMOUS, Message, Role, Type
from kesoku_actors.values import define, frozen

EMPTY: Final = "(empty message)"
NO_RESULT: Final = "(no result was recorded)"
CUT_OFF: Final = "[The answer above was cut off there; the user has read no more of it.]"
_LONGEST_NAME: Final = 64


@frozen(kw_only=True)
class Stretch:
    """Rows that are made into messages: all of a request's, or those from an answer on."""

    rows: Sequence[Message]
    step_of: Mapping[str, StepContent]
    """By the id of a row."""
    nudge: str | None = None

    @classmethod
    def of(cls, request: Request) -> Stretch:
        """Return all that a request says."""
        return cls(rows=request.history, step_of=steps_by_row(request.steps), nudge=request.nudge)


@frozen(kw_only=True)
class Said:
    """A text on the user's side. `row` is the message it is, none for a remark of ours."""

    text: str
    row: Message | None = None


@frozen(kw_only=True)
class Answered:
    """What one inference said: its texts and calls in order, and the results that are known."""

    step: StepContent | None
    """None for rows without a step: they came from elsewhere."""
    texts: tuple[str, ...]
    """Those with something in them."""
    calls: tuple[Message, ...]
    results: Mapping[str, Message]
    """By the id of the call's row; a call may have none."""
    begin: int
    """Which of the stretch's rows is its first."""

    def native_of(self, provider: str, model: str) -> Mapping[str, object] | None:
        """Return what this provider and model itself said in that step; none for another's (P1)."""
        step = self.step
        if step is None or step.native is None or (step.provider, step.model) != (provider, model):
            return None
        return step.native


Part = Said | Answered


@frozen(kw_only=True)
class Seam:
    """Where an answer begins a message of its own: a row of the stretch, and a message made of it."""

    row: int
    message: int


@frozen(kw_only=True)
class Made:
    """Messages of a wire, in order, and where answers begin in them."""

    messages: list[dict[str, Any]]
    seams: tuple[Seam, ...]


def make(stretch: Stretch, messages: list[dict[str, Any]], add: Callable[[Part], None], answers: str) -> Made:
    """Make messages of a stretch: `add` appends a part to `messages`; `answers` is the role of what a model said."""
    seams = []
    for part in parts_of(stretch):
        before = len(messages)
        add(part)
        if isinstance(part, Answered) and len(messages) > before and messages[before]["role"] == answers:
            seams.append(Seam(row=part.begin, message=before))
    return Made(messages=messages, seams=tuple(seams))


def parts_of(stretch: Stretch) -> tuple[Part, ...]:
    """Return the parts of a stretch, in order; the system prompt is not among them, the nudge is the last."""
    talk = _Talk(step_of=stretch.step_of, result_of=results_by_call(stretch.rows))
    for index, row in enumerate(stretch.rows):
        talk.add(index, row)
    talk.finish()
    if stretch.nudge:
        talk.parts.append(Said(text=stretch.nudge))
    return tuple(talk.parts)


def steps_by_row(steps: Iterable[StepContent]) -> dict[str, StepContent]:
    """Return the step that each row came from, by the id of the row."""
    return {message_id: step for step in steps for message_id in step.message_ids}


def results_by_call(history: Iterable[Message]) -> dict[str, Message]:
    """Return the first result of each call, by the id of the call's row."""
    found: dict[str, Message] = {}
    for row in history:
        if row.type is Type.TOOL_RESULT and row.parent_id is not None:
            found.setdefault(row.parent_id, row)
    return found


def result_text(result: Message | None) -> str:
    """Return what the model reads of a result; never blank."""
    if result is None:
        return NO_RESULT
    return result.content if result.content.strip() else f"({result.metadata['outcome']}, no output)"


def spoken(row: Message) -> str:
    """Return a person's text or a notice as the model reads it; never blank."""
    if row.role is Role.SYSTEM:
        quoted = "\n".join(f"> {line}" for line in row.content.splitlines())
        return f"[Notice of the system, not said by a person]\n{quoted}"
    text = row.content if row.content.strip() else EMPTY
    # A name is one line without the colon that ends it, or a sender could speak as somebody else.
    name = " ".join(row.sender.replace(":", " ").split())[:_LONGEST_NAME]
    return text if row.sender == ANONYMOUS else f"{name}: {text}"


def told(name: str, arguments: str, result: str) -> str:
    """Return what a call did in plain words for a model that is offered no tools, on the user's side."""
    quoted = "\n".join(f"> {line}" for line in result.splitlines())
    return f"[The assistant used the tool {name} with {arguments}; it returned:]\n{quoted}"


@frozen(kw_only=True)
class IdRule:
    """Which ids of calls go to a provider."""

    provider: str
    allowed: re.Pattern[str]
    """What the wire takes."""
    prefix: str
    """How ids of ours begin."""

    def id(self, number: int) -> str:
        """Return one of ours."""
        return f"{self.prefix}{number:05}"

    def number(self, id: str) -> int | None:
        """Return which of ours an id reads like, if it does."""
        digits = id.removeprefix(self.prefix)
        is_ours = digits.isdecimal() and digits.isascii() and id == self.id(int(digits))
        return int(digits) if is_ours else None


@frozen(kw_only=True)
class CallIds:
    """Calls under their ids on the wire."""

    given: Set[str] = frozenset()
    """The ids that the provider gave, also where another call has it."""
    by_row: Mapping[str, str] = field(factory=dict)
    made: Mapping[str, int] = field(factory=dict)
    """By the id of a row, the number of an id of ours."""


@frozen(kw_only=True)
class Taken:
    """The ids of calls before a stretch."""

    ids: Set[str] = frozenset()
    made: int = 0
    """How many numbers of ours are gone."""


NOTHING_TAKEN: Final = Taken()


def call_ids(stretch: Stretch, rule: IdRule, taken: Taken = NOTHING_TAKEN) -> CallIds:
    """Return the id of each call on the wire, by its row: unique in the request (M4).

    It is the one that this provider gave, where it is the first of its name and one that the wire allows; else a new
    one of ours.
    """
    calls = [row for row in stretch.rows if row.type is Type.TOOL_CALL]
    given: dict[str, str] = {}
    for call in calls:
        step, wanted = stretch.step_of.get(call.id), call.metadata["tool_call_id"]
        if (step is None or step.provider == rule.provider) and isinstance(wanted, str) and rule.allowed.match(wanted):
            given[call.id] = wanted
    known = set(given.values())
    used, by_row, made, number = set[str](), dict[str, str](), dict[str, int](), taken.made
    for call in calls:
        id = given.get(call.id)
        if id is None or id in used or id in taken.ids:
            id = rule.id(number)
            while id in known or id in taken.ids:
                number += 1
                id = rule.id(number)
            made[call.id] = number
            number += 1
        by_row[call.id] = id
        used.add(id)
    return CallIds(given=known, by_row=by_row, made=made)


@define
class _Talk:
    """The parts so far, and the answer that is being collected."""

    step_of: Mapping[str, StepContent]
    result_of: Mapping[str, Message]
    parts: list[Part] = field(factory=list)
    _step: StepContent | None = field(default=None, init=False)
    _rows: list[Message] = field(factory=list, init=False)
    _begin: int = field(default=0, init=False)

    def add(self, index: int, row: Message) -> None:
        """Take the next row of the stretch."""
        match row.role, row.type:
            case Role.ASSISTANT, Type.TEXT | Type.TOOL_CALL:
                step = self.step_of.get(row.id)
                if self._rows and step is not self._step:
                    self.finish()
                if not self._rows:
                    self._begin = index
                self._step = step
                self._rows.append(row)
                if row.metadata.get("partial") and row.content.strip():
                    self.finish()
                    self.parts.append(Said(text=CUT_OFF))
            case ((Role.USER | Role.SYSTEM), _):
                self.finish()
                self.parts.append(Said(text=spoken(row), row=row))
            case Role.TOOL, _:  # it is found through its call
                self.finish()
            case _:  # a thought
                pass

    def finish(self) -> None:
        """End the answer that is being collected."""
        rows, self._rows = self._rows, []
        if not rows:
            return
        calls = tuple(row for row in rows if row.type is Type.TOOL_CALL)
        answered = Answered(
            step=self._step,
            texts=tuple(row.content for row in rows if row.type is Type.TEXT and row.content.strip()),
            calls=calls,
            results={call.id: self.result_of[call.id] for call in calls if call.id in self.result_of},
            begin=self._begin,
        )
        self.parts.append(answered)
