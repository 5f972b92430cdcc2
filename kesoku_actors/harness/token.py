"""The token of a counterexample: everything that it takes to see the failure again, to be pasted anywhere. Pure.

A token carries the schedule in whichever form is shorter: as hold form (`ka1.FINGERPRINT.h.PAYLOAD`) or choice by
choice (`.s.`); beside it the program's inputs: plain literals as they are, what else Hypothesis drew as the choices it
was drawn by, and of what else was given, as pytest's fixtures, the names. Nothing in a token is ever executed.
"""

from __future__ import annotations

import ast
import base64
import binascii
import json
import struct
import zlib
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final

from attrs import frozen

from kesoku_actors.harness.faults import Fire
from kesoku_actors.harness.hold import Base, Event, Form, Hold, Moment, Tick
from kesoku_actors.harness.inputs import Chosen, Draws, Inputs, is_literal
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
    """Those that are literals. None: the program has drawn inputs, and they could not be written down."""
    draws: Draws | None = None
    """How the drawn ones came about that are no literals."""
    left_out: tuple[str, ...] = ()
    """The arguments that were given and are no literals: who replays has to give them again."""

    def __str__(self) -> str:
        inputs = None if self.inputs is None else repr(dict(self.inputs))
        more = [] if self.draws is None and not self.left_out else [_draws_data(self.draws), list(self.left_out)]
        match self.play:
            case Form() as form:
                kind, play = "h", _form_data(form)
            case Schedule() as schedule:
                kind, play = "s", [number for choice in schedule.choices for number in (choice.index, choice.ways)]
        text = json.dumps([play, inputs, *more], separators=(",", ":"))
        payload = base64.urlsafe_b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"), 9))
        return f"{VERSION}.{self.fingerprint}.{kind}.{payload.decode().rstrip('=')}"


def shortest_token(fingerprint: str, form: Form, schedule: Schedule, inputs: Inputs) -> str:
    """Return the shorter of the two tokens; the one in hold form when they are equal."""
    plays: tuple[Form | Schedule, ...] = (form, schedule)
    return min((str(token_for(fingerprint, play, inputs)) for play in plays), key=len)


def token_for(fingerprint: str, play: Form | Schedule, inputs: Inputs) -> Token:
    """Return the token that plays a run with these inputs."""
    fixed = {name: value for name, value in inputs.fixed.items() if is_literal(value)}
    drawn = inputs.drawn if is_literal(inputs.drawn) else {}
    is_whole = bool(drawn) or not inputs.drawn or inputs.draws is not None
    return Token(
        fingerprint=fingerprint,
        play=play,
        inputs={**fixed, **drawn} if is_whole else None,
        draws=None if drawn else inputs.draws,
        left_out=tuple(name for name in inputs.fixed if name not in fixed),
    )


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
        play, inputs, draws, left_out = [*json.loads(packed.decode("utf-8", "surrogatepass")), None, ()][:4]
        found = None if inputs is None else ast.literal_eval(inputs)
        if found is not None and not isinstance(found, dict):
            raise BadToken("the token is damaged; copy it whole")
        return Token(
            fingerprint=fingerprint,
            play=_READERS[kind](play),
            inputs=found,
            draws=_draws_of(draws),
            left_out=tuple(map(str, left_out)),
        )
    except (ValueError, TypeError, SyntaxError, RecursionError, struct.error, binascii.Error, zlib.error):
        raise BadToken("the token is damaged; copy it whole") from None


def _draws_data(draws: Draws | None) -> list[Any] | None:
    """Bytes, which JSON does not know, are a list of numbers; numbers that it does not write exactly, a text in one."""
    if draws is None:
        return None
    chosen = [_chosen_data(one) for one in draws.chosen]
    return [chosen, draws.asked, draws.value, draws.version]


def _chosen_data(one: Chosen) -> Any:
    match one:
        case bytes():
            return list(one)
        case float() if not isfinite(one):
            return [struct.pack(">d", one).hex()]
        case _:
            return one


def _draws_of(data: list[Any] | None) -> Draws | None:
    if data is None:
        return None
    chosen, asked, value, version = data
    return Draws(chosen=tuple(map(_chosen_of, chosen)), asked=str(asked), value=str(value), version=str(version))


def _chosen_of(data: Any) -> Chosen:
    match data:
        case [str(packed)]:
            unpacked: float = struct.unpack(">d", bytes.fromhex(packed))[0]
            return unpacked
        case list():
            return bytes(data)
        case bool() | int() | float() | str():
            return data
        case _:
            raise ValueError("no choice")


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
