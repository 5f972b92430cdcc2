"""What calls of an earlier life of the program left running: ended, or named, before their session resumes (C3).

A process is the one that was stored when its start time is the one that was stored, or when its environment still names
the call: the mark is found too where the program died before it could store the process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import trio

from kesoku_actors.tools.shell import process_table
from kesoku_actors.tools.shell.ending import end_all, living
from kesoku_actors.tools.shell.kernel import END_GRACE_S, MACHINE, Kernel
from kesoku_actors.tools.shell.process_table import Family, Process
from kesoku_actors.values import frozen


class DeadCall(Protocol):
    """A call that had started when the program died; the store's `DeadCall` is one."""

    @property
    def call_id(self) -> str: ...

    @property
    def pid(self) -> int | None: ...

    @property
    def process_start(self) -> float | None:
        """Clock ticks since boot."""
        ...


@frozen(kw_only=True)
class Survivors:
    """What was found of one call."""

    call_id: str
    ended: tuple[Process, ...]
    left: tuple[Process, ...]
    """What could not be ended, to be named."""


async def end_survivors(
    calls: Iterable[DeadCall], *, grace_s: float = END_GRACE_S, kernel: Kernel = MACHINE
) -> tuple[Survivors, ...]:
    """End what still runs of `calls`: TERM, `grace_s` seconds, KILL. Return what was found, for calls with any.

    All are ended at the same time, so that a start waits for one grace however many there are.
    """
    waiting = tuple(calls)
    found: dict[str, Survivors] = {}
    async with trio.open_nursery() as nursery:
        for call in waiting:
            nursery.start_soon(_end_one, call, grace_s, kernel, found)
    return tuple(found[call.call_id] for call in waiting if call.call_id in found)


async def _end_one(call: DeadCall, grace_s: float, kernel: Kernel, found: dict[str, Survivors]) -> None:
    is_the_same = call.pid is not None and process_table.start_time(call.pid, kernel) == call.process_start
    family = Family(leader=call.pid if is_the_same else None, call_id=call.call_id, kernel=kernel)
    if before := await living(family):
        left = await end_all(family, grace_s=grace_s)
        remaining = {one.pid for one in left}
        ended = tuple(one for one in before if one.pid not in remaining)
        found[call.call_id] = Survivors(call_id=call.call_id, ended=ended, left=left)
