"""Random histories as a store could hold them after anything: interrupted batches, orphans, empty texts, other models.

Each is drawn as rows and steps; calls may have lost their result, have it late or twice, share ids, carry ids and names
no provider takes; the beginning may be gone, with a summary in its place; messages and results bring files. Most steps
are of the model that is asked now, and hold what it would have said natively to be stored as those rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from attrs import frozen
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kesoku_actors.llm.media import Item, Media, Unsent
from kesoku_actors.llm.port import Request, StepContent
from kesoku_actors.protocol import Message, Outcome, ToolSchema, Type

from .examples import DATE_TOOL, answered, asking, called, notice, result, said, thought

T = TypeVar("T")
Native = Callable[[Sequence[Message], str, str], Mapping[str, Any] | None]
"""Makes what a provider said natively of the rows it was stored as, what its own tools did besides, and its model."""

OTHERS: Final = (("openai", "gpt"), ("elsewhere", "m"))
BESIDES: Final = ("nothing", "nothing", "nothing", "tools", "half", "odd")
"""What the provider's own tools did in a step: nothing, something, something cut off, something that is rarely seen."""
TEXTS: Final = st.one_of(
    st.sampled_from(["Hello.", "Good day.", "x" * 300, "", " ", "\n\t", "[left out]", "Grüße 🙂", "\u200b"]),
    st.text(max_size=20),
)
NAMES: Final = st.sampled_from(["date", "date", "date", "shell", "no such tool!", "näme", "x" * 200])
CALL_IDS: Final = st.sampled_from(
    ["own", "own", "own", "own", "", "a", "toolu_01", "call 7", "é", "b" * 90, "toolu_00000"]
)
"""`own` is one of its own."""
ARGUMENTS: Final = st.dictionaries(
    st.text(max_size=5).map("_{}".format),
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=5)),
    max_size=3,
)
HUGE: Final = Media(filename="huge.png", mime_type="image/png", data=bytes(6 << 20))
FILES: Final[Sequence[Item]] = (
    *[Media(filename="cat.png", mime_type="image/png", data=b"\x89PNG")] * 5,
    Media(filename="paper.pdf", mime_type="application/pdf", data=b"%PDF-"),
    Media(filename="notes.txt", mime_type="text/plain", data=b"Four girls."),
    Media(filename="odd.tiff", mime_type="image/tiff", data=b"II*\0"),
    Unsent(path="attachments/long.pdf", reason="it has 10,000 pages"),
)


@frozen(kw_only=True)
class Talk:
    """A request, the model it is for, and the files it brings."""

    request: Request
    model: str
    media: Mapping[str, Sequence[Item]]

    @property
    def native_steps(self) -> list[StepContent]:
        """The steps that this model itself made, with what it said."""
        return [step for step in self.request.steps if step.model == self.model and step.native is not None]

    @property
    def oddities(self) -> set[str]:
        """What happened to it that no provider takes as it is."""
        rows = self.request.history
        calls = [row for row in rows if row.type is Type.TOOL_CALL]
        results = [row.parent_id for row in rows if row.type is Type.TOOL_RESULT]
        given = [call.metadata["tool_call_id"] for call in calls if call.metadata["tool_call_id"]]
        tests = {
            "orphan": not {call.id for call in calls}.issuperset(results),
            "no result": any(call.id not in results for call in calls),
            "same ids": len(given) != len(set(given)),
            "beginning lost": bool(rows) and not rows[0].is_person,
            "blank": any(row.type is Type.TEXT and not row.content.strip() for row in rows),
            "files": any(self.media.values()),
            "huge": any(item is HUGE for items in self.media.values() for item in items),
        }
        return {name for name, is_so in tests.items() if is_so}


@st.composite
def talks(draw: st.DrawFn, provider: str, models: Sequence[str], native: Native) -> Talk:
    """Draw a talk for one of a provider's models."""
    home = draw(st.sampled_from(models))
    whose = st.sampled_from([*[(provider, home)] * 7, *((provider, model) for model in models), *OTHERS, None])
    rows: list[Message] = []
    steps: list[StepContent] = []
    owed: list[Message] = []
    number = 0

    def following() -> int:
        nonlocal number
        number += 1
        return number

    if draw(st.booleans()):
        rows.append(said(following(), "Hello."))
    kinds = ["said", "said", "notice", "step", "step", "step", "results", "results", "results", "orphan"]
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=3, max_size=14)):
        match kind:
            case "said":
                rows.append(said(following(), draw(TEXTS), draw(st.sampled_from(["User", "Ann", "B\n: evil"]))))
            case "notice":
                rows.append(notice(following(), draw(TEXTS)))
            case "step":
                made = _step(draw, following)
                rows += made
                owed += [row for row in made if row.type is Type.TOOL_CALL]
                if (who := draw(whose)) is not None:
                    own: Mapping[str, Any] | None = {"content": "foreign"}
                    if who[0] == provider:
                        own = native(made, draw(st.sampled_from(BESIDES)), who[1])
                    ids = tuple(row.id for row in made)
                    steps.append(StepContent(provider=who[0], model=who[1], native=own, message_ids=ids))
            case "results":
                for call in draw(st.permutations(owed)):
                    if draw(st.integers(0, 5)):
                        rows.append(result(following(), call, draw(TEXTS), draw(st.sampled_from(list(Outcome)))))
                owed.clear()
            case _:
                lost = called(9_000 + following(), draw(NAMES), draw(CALL_IDS))
                rows.append(result(following(), lost, draw(TEXTS)))
    if rows and not draw(st.integers(0, 3)):
        rows = rows[draw(st.integers(0, len(rows) - 1)) :]
        if draw(st.booleans()):
            rows.insert(0, notice(following(), "Summary of an earlier part of this conversation."))
    tools: tuple[ToolSchema, ...] = draw(st.sampled_from([(DATE_TOOL,), (DATE_TOOL,), (DATE_TOOL,), ()]))
    nudge, system = draw(st.sampled_from([None, None, "Please answer."])), draw(st.sampled_from(["Be brief.", ""]))
    plain = not draw(st.integers(0, 7))
    request = asking(*rows, steps=tuple(steps), tools=tools, nudge=nudge, system=system, is_plain=plain)
    return Talk(request=request, model=home, media=_media(draw, rows))


def _media(draw: st.DrawFn, rows: Sequence[Message]) -> dict[str, list[Item]]:
    can = [row.id for row in rows if row.is_person or row.type is Type.TOOL_RESULT]
    if not can or draw(st.integers(0, 2)):
        return {}
    chosen = draw(st.lists(st.sampled_from(can), max_size=3))
    files = {id: draw(st.lists(st.sampled_from(FILES), max_size=2)) for id in chosen}
    if chosen and draw(st.sampled_from([False, False, False, False, True])):
        files[chosen[0]].append(HUGE)
    return files


def _step(draw: st.DrawFn, following: Callable[[], int]) -> list[Message]:
    rows: list[Message] = []
    if draw(st.sampled_from([True, True, True, False])):
        rows.append(thought(following(), draw(TEXTS)))
    for _ in range(draw(st.sampled_from([1, 1, 0, 2]))):
        rows.append(answered(following(), draw(TEXTS)))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2, 3]))):
        number, given_id = following(), draw(CALL_IDS)
        given_id = f"toolu_own{number}" if given_id == "own" else given_id
        rows.append(called(number, draw(NAMES), given_id, **draw(ARGUMENTS)))
    if rows and rows[-1].type is Type.TEXT and not draw(st.integers(0, 4)):
        rows[-1] = answered(following(), draw(TEXTS), partial=True)
    return rows


def drawn_from(strategy: st.SearchStrategy[T], count: int, **further: Any) -> list[T]:
    """Return so many examples; `further` are settings of hypothesis, such as `derandomize`."""
    found: list[T] = []

    @given(strategy)
    @settings(
        max_examples=count,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        **further,
    )
    def draw(example: T) -> None:
        found.append(example)

    draw()
    return found


def crowd(calls: int) -> Request:
    """Return a talk in which one step asks for so many calls, whose results came in reverse, some of them never."""
    asked = [called(number, call_id=f"c{number % 7}", zone=str(number)) for number in range(2, calls + 2)]
    came = [result(calls + 2 + index, call, "Mon") for index, call in enumerate(reversed(asked)) if index % 10]
    return asking(said(1, "All the dates"), *asked, *came, tools=(DATE_TOOL,))
