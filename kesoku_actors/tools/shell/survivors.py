"""What calls of an earlier life of the program left running: ended, or named, before their session resumes (C3).

A process is the one that was stored when its start time is the one that was stored, or when its environment still names
the call: the mark is found too where the program died before it could store the process.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Protocol

from attrs import frozen

from kesoku_actors.tools.shell import process_table
from kesoku_actors.tools.shell.ending import END_GRACE_S, end_all
from kesoku_actors.tools.shell.process_table import Process


class DeadCall(Protocol):
    """A call that had started when the program died; the store's `DeadCall` is one."""

    @property
    def call_id(self) -> str: ...

    @property
    def pid(self) -> int | None: ...

    @property
    def process_start(self) -> float | None:
        """Clock ticks since boot."""


@frozen(kw_only=True)
class Survivors:
    """What was found of one call."""

    call_id: str
    ended: tuple[Process, ...]
    left: tuple[Process, ...]
    """What could not be ended, to be named."""


async def end_survivors(calls: Iterable[DeadCall], *, grace_s: float = END_GRACE_S) -> tuple[Survivors, ...]:
    """End what still runs of `calls`: TERM, `grace_s` seconds, KILL. Return what was found, for calls with any."""
    found: list[Survivors] = []
    for call in calls:
        members = partial(_members, call)
        if before := members():
            left = await end_all(members, grace_s=grace_s)
            remaining = {one.pid for one in left}
            ended = tuple(one for one in before if one.pid not in remaining)
            found.append(Survivors(call_id=call.call_id, ended=ended, left=left))
    return tuple(found)


def _members(call: DeadCall) -> tuple[Process, ...]:
    leader = process_table.process(call.pid) if call.pid is not None else None
    is_the_same = leader is not None and leader.start == call.process_start
    return process_table.belonging(call.pid if is_the_same else None, call.call_id)
