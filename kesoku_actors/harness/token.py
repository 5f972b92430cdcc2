"""The token of a counterexample: everything that it takes to see the failure again, to be pasted anywhere. Pure.

A token carries the schedule in whichever form is shorter: as hold form (`ka1.FINGERPRINT.h.PAYLOAD`) or choice by
choice (`.s.`); beside it the program's inputs, where they are plain literals. Nothing in a token is ever executed.
"""

from __future__ import annotations

import ast
import base64
import binascii
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import frozen

from kesoku_actors.harness.faults import Fire
from kesoku_actors.harness.hold import Base, Event, Form, Hold, Moment, Tick
from kesoku_actors.harness.schedule import VERSION, BadToken, Choice, Schedule, schedule_of

_LARGEST: Final = 4_000_000
"""Bytes that a token may hold, unpacked: more is no token of ours."""


@frozen(kw_only=True)
class Token:
    """What a token says."""

    fingerprint: str
    """Of the source that was run."""
    play: Form | Schedule
    inputs: Mapping[str, Any] | None = None
    """None: the program has inputs, and they could not be written down."""

    def __str__(self) -> str:
        inputs = None if self.inputs is None else repr(dict(self.inputs))
        match self.play:
            case Form() as form:
                kind, play = "h", _form_data(form)
            case Schedule() as schedule:
                kind, play = "s", [number for choice in schedule.choices for number in (choice.index, choice.ways)]
        text = json.dumps([play, inputs], separators=(",", ":"))
        payload = base64.urlsafe_b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"), 9))
        return f"{VERSION}.{self.fingerprint}.{kind}.{payload.decode().rstrip('=')}"


def is_literal(inputs: Mapping[str, Any]) -> bool:
    """Return whether inputs are plain literals, that come out of their text as they were."""
    try:
        return bool(ast.literal_eval(repr(dict(inputs))) == inputs)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False


def shortest_token(fingerprint: str, form: Form, schedule: Schedule, inputs: Mapping[str, Any]) -> str:
    """Return the shorter of the two tokens; the one in hold form when they are equal."""
    kept = inputs if is_literal(inputs) else None
    plays: tuple[Form | Schedule, ...] = (form, schedule)
    return min((str(Token(fingerprint=fingerprint, play=play, inputs=kept)) for play in plays), key=len)


def token_of(text: str) -> Token:
    """Return what a token says. Raises `BadToken`."""
    parts = text.strip().split(".")
    if len(parts) == 3:
        fingerprint, schedule = schedule_of(text)
        return Token(fingerprint=fingerprint, play=schedule, inputs={})
    if len(parts) != 4 or parts[2] not in _READERS:
        raise BadToken(f"a token is {VERSION}.FINGERPRINT.KIND.PAYLOAD, not {text.strip()[:60]!r}")
    version, fingerprint, kind, payload = parts
    if version != VERSION:
        raise BadToken(f"the token is of version {version!r}; this harness reads {VERSION}")
    try:
        unpacker = zlib.decompressobj()
        packed = unpacker.decompress(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), _LARGEST)
        if not unpacker.eof:
            raise BadToken("the token is damaged; copy it whole")
        play, inputs = json.loads(packed.decode("utf-8", "surrogatepass"))
        found = None if inputs is None else ast.literal_eval(inputs)
        if found is not None and not isinstance(found, dict):
            raise BadToken("the token is damaged; copy it whole")
        return Token(fingerprint=fingerprint, play=_READERS[kind](play), inputs=found)
    except (ValueError, TypeError, SyntaxError, RecursionError, binascii.Error, zlib.error):
        raise BadToken("the token is damaged; copy it whole") from None


def _form_data(form: Form) -> list[Any]:
    return [form.base.value, *map(_event_data, form.events)]


def _event_data(event: Event) -> list[Any]:
    match event:
        case Fire(name, time):
            return ["f", name, time]
        case Hold(who, at, until):
            return ["h", who, at, *((until.who, until.steps) if until is not None else ())]
        case Tick(after, times):
            return ["t", times, *((after.who, after.steps) if after is not None else ())]


def _form_of(data: list[Any]) -> Form:
    base, *events = data
    return Form(base=Base(base), events=tuple(map(_event_of, events)))


def _event_of(data: list[Any]) -> Event:
    match data:
        case ["h", str(who), int(at)]:
            return Hold(who, at)
        case ["h", str(who), int(at), str(other), int(steps)]:
            return Hold(who, at, Moment(other, steps))
        case ["t", int(times)]:
            return Tick(None, times)
        case ["t", int(times), str(who), int(steps)]:
            return Tick(Moment(who, steps), times)
        case ["f", str(name), int(time)]:
            return Fire(name, time)
        case _:
            raise ValueError("no event")


def _schedule_of(data: list[Any]) -> Schedule:
    return Schedule(tuple(Choice(int(index), int(ways)) for index, ways in zip(data[::2], data[1::2], strict=True)))


_READERS: Final[dict[str, Callable[[list[Any]], Form | Schedule]]] = {"h": _form_of, "s": _schedule_of}
