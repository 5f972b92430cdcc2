"""A session as lines of text, for a person who looks back. Pure.

Everything that a model, a tool or a person said is made harmless for a terminal. Each line has a style, which whoever
prints it may leave out: nothing is told by colour alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from kesoku_actors.adapters.terminal.harmless import harmless, one_line
from kesoku_actors.llm.prices import spelled, total
from kesoku_actors.protocol import Message, Outcome, Role, SessionInfo, Status, Step, StepState, StoredStep, Type, Usage
from kesoku_actors.protocol.summaries import Summary
from kesoku_actors.values import frozen

_ARGUMENT_CHARS: Final = 2_000


class Style(StrEnum):
    """What a line is."""

    PLAIN = "plain"
    HEAD = "head"
    DIM = "dim"
    WHO = "who"
    TOOL = "tool"
    BAD = "bad"


_OUTCOMES: Final[Mapping[str, tuple[str, Style]]] = {
    Outcome.OK: ("✓", Style.TOOL),
    Outcome.ERROR: ("✗", Style.BAD),
    Outcome.INTERRUPTED: ("⊘ interrupted", Style.BAD),
    Outcome.UNKNOWN: ("? how it ended is not known", Style.BAD),
    Outcome.BACKGROUND: ("→ goes on in the background", Style.TOOL),
}
_ENDED_WELL: Final = frozenset({Status.PROCESSED, Status.DELIVERED, Status.RESPONDED})


@frozen
class Line:
    """One line of a page."""

    text: str
    style: Style = Style.PLAIN


@frozen(kw_only=True)
class Turn:
    """One turn: its messages in the order of the history (O1), and its inferences."""

    number: int
    """Counts from 1 within the session."""
    messages: tuple[Message, ...]
    steps: tuple[StoredStep, ...]


def turns_of(messages: Iterable[Message], steps: Sequence[StoredStep]) -> tuple[Turn, ...]:
    """Return the turns of a session."""
    by_root: dict[str, list[Message]] = {}
    for message in messages:
        by_root.setdefault(message.root_id or message.id, []).append(message)
    return tuple(
        Turn(number=number, messages=tuple(rows), steps=tuple(step for step in steps if step.root_id == root_id))
        for number, (root_id, rows) in enumerate(by_root.items(), start=1)
    )


def heading(session: SessionInfo, turns: int, usage: Usage) -> Iterator[Line]:
    """Yield what stands above a session."""
    yield Line(one_line(session.title) or "(without a title)", Style.HEAD)
    yield Line(
        f"{session.id} · {one_line(session.chatbot_id)}/{one_line(session.channel_id)} · begun {_when(session.created)}"
        f" · last {_when(session.last_activity)}",
        Style.DIM,
    )
    yield Line(f"{turns} turn{'' if turns == 1 else 's'} · {spelled(usage)}", Style.DIM)


def turn_lines(turn: Turn) -> Iterator[Line]:
    """Yield a turn."""
    root = turn.messages[0]
    state = root.status.value + (f" ({root.metadata['reason']})" if _tells_why(root) else "")
    yield Line("")
    bad = root.status in (Status.INTERRUPTED, Status.ERROR)
    yield Line(f"turn {turn.number} · {_when(root.timestamp)} · {state}", Style.BAD if bad else Style.HEAD)
    if turn.steps:
        steps = f"{len(turn.steps)} step{'' if len(turn.steps) == 1 else 's'}"
        yield Line(f"  {steps} · {spelled(total(step.step.usage for step in turn.steps))}", Style.DIM)
    after = _failed_after(turn)
    for message in turn.messages:
        yield from _message_lines(message)
        for step in after.get(message.id, ()):
            model = one_line(f"{step.provider} {step.model}")
            yield Line(f"  (inference {step.state.value}: {model}{_why(step)})", Style.BAD)


def outside_lines(messages: Sequence[Message]) -> Iterator[Line]:
    """Yield the messages that belong to no turn: those that wait, and notices that no turn caused."""
    if messages:
        yield Line("")
        yield Line("outside the turns", Style.HEAD)
    for message in messages:
        yield from _message_lines(message)


def summary_lines(summaries: Sequence[Summary]) -> Iterator[Line]:
    """Yield the summaries of older turns as a tree: each above those it stands for."""
    yield Line("")
    yield Line("summaries of older turns", Style.HEAD)
    if not summaries:
        yield Line("  none: the model reads the whole session", Style.DIM)
    by_id = {summary.id: summary for summary in summaries}
    for summary in summaries:
        depth = _depth(summary, by_id)
        read = "read by the model" if summary.parent_id is None else "stands in the one above"
        tokens = f"{summary.tokens_before} tokens before, {summary.tokens_after} after"
        about = f"{_when(summary.created)} · {summary.provider} {one_line(summary.model)} · {tokens} · {read}"
        yield Line(f"{'  ' * (depth + 1)}level {summary.level} · {about}", Style.DIM)
        yield from _text(summary.content, "  " * (depth + 2))


def _depth(summary: Summary, by_id: Mapping[str, Summary]) -> int:
    depth, above = 0, summary.parent_id
    while above is not None and above in by_id and depth < len(by_id):
        depth, above = depth + 1, by_id[above].parent_id
    return depth


def _failed_after(turn: Turn) -> dict[str, list[Step]]:
    """Return the inferences that said nothing to the end, by the message they came behind."""
    after: dict[str, list[Step]] = {}
    last = turn.messages[0].id
    for stored in turn.steps:
        spoken = [message.id for message in turn.messages if message.id in stored.message_ids]
        if spoken:
            results = [row.id for row in turn.messages if row.role is Role.TOOL and row.parent_id in spoken]
            last = (results or spoken)[-1]
        if stored.step.state is not StepState.FINISHED:
            after.setdefault(last, []).append(stored.step)
    return after


def _message_lines(message: Message) -> Iterator[Line]:
    match message.type:
        case Type.TOOL_CALL:
            arguments = json.dumps(message.metadata["tool_arguments"], ensure_ascii=False)
            yield Line(f"  ● {one_line(str(message.metadata['tool_name']))} {_short(arguments)}", Style.TOOL)
        case Type.TOOL_RESULT:
            sign, style = _OUTCOMES.get(str(message.metadata["outcome"]), ("?", Style.BAD))
            duration = message.metadata.get("duration_s")
            took = f"{duration:.1f} s" if isinstance(duration, int | float) else ""
            yield Line(f"  {' '.join(filter(None, (sign, took, one_line(message.sender))))}", style)
            yield from _text(message.content, "    │ ", Style.DIM)
        case Type.THOUGHT:
            yield Line(f"{_who(message)} thought:", Style.DIM)
            yield from _text(message.content, "  ", Style.DIM)
        case Type.TEXT:
            yield Line(f"{_who(message)}:{_state(message)}", Style.WHO)
            yield from _text(message.content, "  ")


def _who(message: Message) -> str:
    return one_line(message.sender)


def _state(message: Message) -> str:
    words = []
    if message.metadata.get("partial"):
        words.append("interrupted here")
    if message.metadata.get("truncated"):
        words.append("cut off at the output limit")
    if message.id != message.root_id and message.status not in _ENDED_WELL:
        words.append(message.status.value + (f", {message.metadata['reason']}" if _tells_why(message) else ""))
    return f" ({'; '.join(words)})" if words else ""


def _tells_why(message: Message) -> bool:
    return message.status not in _ENDED_WELL and isinstance(message.metadata.get("reason"), str)


def _text(text: str, before: str, style: Style = Style.PLAIN) -> Iterator[Line]:
    for line in harmless(text).strip("\n").split("\n"):
        yield Line(f"{before}{line.expandtabs(4)}".rstrip(), style)


def _why(step: Step) -> str:
    return f": {one_line(step.error)}" if step.error else ""


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _ARGUMENT_CHARS else f"{line[:_ARGUMENT_CHARS]}…"


def _when(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):  # no calendar goes that far
        return f"{seconds:g}"
