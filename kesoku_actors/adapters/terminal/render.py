"""What a person at a terminal should see, as operations that follow from the gateway's events. Pure.

Rules:

* streamed pieces are shown as far as they join without a gap; a later inference or attempt begins anew; pieces of an
  earlier one, or of one whose end was seen, are ignored (B2: inference ids are ordered by time);
* a committed row replaces what was streamed of it, and is shown once;
* a turn that ends takes with it what was streamed and not committed;
* messages that leave are not shown here: they go through their delivery (C5).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, assert_never

from attrs import evolve

from kesoku_actors.protocol import (
    ENDED,
    LEAVES,
    Activity,
    ActivityChanged,
    ApprovalChanged,
    Changed,
    Delta,
    DeltaKind,
    Event,
    Message,
    ModeChanged,
    Outcome,
    Removed,
    Role,
    Status,
    StopEnded,
    ToolEnded,
    ToolProgress,
    Type,
)
from kesoku_actors.values import frozen


@frozen
class Begin:
    """A new inference or attempt: nothing is streamed yet."""


@frozen
class Append:
    """The next piece of a stream."""

    kind: DeltaKind
    text: str


@frozen
class Gap:
    """A piece is missing: what follows of this kind waits for the committed row."""

    kind: DeltaKind


@frozen
class Drop:
    """What was streamed will not be committed."""


@frozen
class Settle:
    """A committed text or thought, in place of what was streamed of its kind."""

    kind: DeltaKind
    text: str
    is_partial: bool


@frozen
class OpenCall:
    """A call was made."""

    call_id: str
    name: str
    command: str


@frozen
class StartCall:
    """A call runs from now on."""

    call_id: str


@frozen
class RestCall:
    """A call runs no more, and its result is still to come."""

    call_id: str
    outcome: Outcome


@frozen
class EndCall:
    """A call has its result; `duration_s` is none when nobody measured it."""

    call_id: str
    outcome: Outcome
    duration_s: float | None
    text: str


@frozen
class Work:
    """The session does something else now."""

    activity: Activity
    detail: str = ""
    """Why, where it is not obvious."""
    for_s: float | None = None
    """How long it will take, where that is known."""


@frozen
class Receipt:
    """A stop has ended."""

    lines: tuple[str, ...]


Operation = Begin | Append | Gap | Drop | Settle | OpenCall | StartCall | RestCall | EndCall | Work | Receipt


@frozen(kw_only=True)
class Stream:
    """The inference being streamed, and how much of it has been shown."""

    inference_id: str
    attempt: int
    root_id: str
    shown: Mapping[DeltaKind, int]
    """Characters, by kind."""
    broken: frozenset[DeltaKind] = frozenset()

    @property
    def key(self) -> tuple[str, int]:
        """What orders inferences and attempts in time."""
        return self.inference_id, self.attempt


@frozen(kw_only=True)
class Screen:
    """What has been shown so far."""

    stream: Stream | None = None
    closed: tuple[str, int] = ("", 0)
    """The last inference and attempt whose end was seen."""
    rows: frozenset[str] = frozenset()
    """Ids of rows already shown."""


Step = tuple[Screen, tuple[Operation, ...]]


def step(screen: Screen, event: Event) -> Step:
    """Return the screen after an event, and what to do for it."""
    match event:
        case Delta():
            return _streamed(screen, event)
        case Changed(message=message):
            return _committed(screen, message)
        case ActivityChanged(activity=activity, detail=detail, for_s=for_s):
            return screen, (Work(activity, detail, for_s),)
        case ToolProgress(call_id=call_id):
            return screen, (StartCall(call_id),)
        case ToolEnded(call_id=call_id, outcome=outcome):
            return screen, (RestCall(call_id, outcome),)
        case StopEnded():
            return screen, (Receipt(receipt_lines(event)),)
        case Removed() | ModeChanged() | ApprovalChanged():
            return screen, ()
        case _:
            assert_never(event)


def close(screen: Screen) -> Screen:
    """Return the screen after what was streamed has been replaced by what was committed, or dropped."""
    return screen if screen.stream is None else evolve(screen, stream=None, closed=screen.stream.key)


def _streamed(screen: Screen, delta: Delta) -> Step:
    key, stream = (delta.inference_id, delta.attempt), screen.stream
    if key <= screen.closed or (stream is not None and key < stream.key):
        return screen, ()
    begins: tuple[Operation, ...] = ()
    if stream is None or key > stream.key:
        begins = (Begin(),)
        stream = Stream(inference_id=delta.inference_id, attempt=delta.attempt, root_id=delta.root_id, shown={})
    shown = stream.shown.get(delta.kind, 0)
    if delta.kind in stream.broken:
        return evolve(screen, stream=stream), begins
    if delta.offset > shown:
        stream = evolve(stream, broken=stream.broken | {delta.kind})
        return evolve(screen, stream=stream), (*begins, Gap(delta.kind))
    fresh = delta.text[shown - delta.offset :]
    stream = evolve(stream, shown={**stream.shown, delta.kind: shown + len(fresh)})
    return evolve(screen, stream=stream), ((*begins, Append(delta.kind, fresh)) if fresh else begins)


def _committed(screen: Screen, row: Message) -> Step:
    if row.role is Role.USER or row.status in LEAVES or row.role is Role.SYSTEM:
        ends = row.status in ENDED or row.status is Status.PENDING_AGENT
        if ends and screen.stream is not None and screen.stream.root_id in (row.id, row.root_id):
            return close(screen), (Drop(),)
        return screen, ()
    if row.id in screen.rows:
        return screen, ()
    screen = evolve(screen, rows=screen.rows | {row.id})
    match row.type:
        case Type.THOUGHT:
            return screen, (Settle(DeltaKind.THOUGHT, row.content, False),)
        case Type.TEXT:
            return close(screen), (Settle(DeltaKind.TEXT, row.content, bool(row.metadata.get("partial"))),)
        case Type.TOOL_CALL:
            command = describe(row.metadata["tool_arguments"])
            return close(screen), (OpenCall(row.id, row.metadata["tool_name"], command),)
        case Type.TOOL_RESULT:
            outcome = Outcome(row.metadata["outcome"])
            return screen, (EndCall(row.parent_id or "", outcome, row.metadata.get("duration_s"), row.content),)
        case _:
            assert_never(row.type)


def describe(arguments: object) -> str:
    """Return a call's arguments in one line: the command of a shell call, else the arguments as JSON."""
    match arguments:
        case {"command": str(command)}:
            return f"$ {command}"
        case Mapping():
            plain: dict[str, Any] = dict(arguments)
            return ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in plain.items())
        case _:
            return json.dumps(arguments, ensure_ascii=False)


def receipt_lines(receipt: StopEnded) -> tuple[str, ...]:
    """Return a stop's receipt in words (I7)."""
    lines = [f"stopped: {len(receipt.ended)} message{'' if len(receipt.ended) == 1 else 's'}"]
    if receipt.answered:
        lines.append(f"already answered: {len(receipt.answered)}")
    lines += [f"ended: {job}" for job in receipt.jobs]
    return (*lines, *(f"lives on: {survivor}" for survivor in receipt.survivors))
