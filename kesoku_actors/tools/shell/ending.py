"""The end of a command's processes: TERM, a grace, KILL, until the kernel's table holds none of them.

They are looked up again each time, because processes make others while they end. A group is signalled as a group where
its leader is known to be ours, which reaches what was born since the look; whoever left it is signalled alone, the
newest first, before it can leave another one behind. The table is read in a thread: on a machine with many processes
that takes longer than an event loop may stand still.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Final

import trio

from kesoku_actors.tools.shell.kernel import END_GRACE_S, Kernel
from kesoku_actors.tools.shell.process_table import Family, Process, process

_KILL_S: Final = 2.0
"""How long what goes on making new processes is hunted."""
_FIRST_PAUSE_S: Final = 0.005
_LONGEST_PAUSE_S: Final = 0.1


async def end_all(family: Family, *, grace_s: float = END_GRACE_S) -> tuple[Process, ...]:
    """End `family` and return what of it could not be ended; it takes `grace_s` and about two seconds at most."""
    await trio.to_thread.run_sync(_ask, family)
    with trio.move_on_after(grace_s):
        for pause_s in _pauses():  # the kernel tells nobody that a group is empty
            if not await living(family):
                break
            await trio.sleep(pause_s)
    with trio.move_on_after(_KILL_S):
        for pause_s in _pauses():
            if not await trio.to_thread.run_sync(_kill, family):
                return ()
            await trio.sleep(pause_s)
    return await living(family)


async def living(family: Family) -> tuple[Process, ...]:
    """Return those of `family` that live."""
    if family.is_young:  # there is next to nothing to read: going to a thread and back takes longer
        return family.members()
    return await trio.to_thread.run_sync(family.members)


def _pauses() -> Iterator[float]:
    pause_s = _FIRST_PAUSE_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _ask(family: Family) -> None:
    """Send TERM to all that live, once: to many programs a second one means that they need not tidy up."""
    _signal_all(family.members(), signal.SIGTERM, family.kernel)


def _kill(family: Family) -> tuple[Process, ...]:
    """Send KILL to all that live and return them; groups as a whole first, so that no shell tells of its children."""
    found = family.members()
    _signal_all(found, signal.SIGKILL, family.kernel)
    for pid in family.newest_marked():
        family.kernel.signal(pid, signal.SIGKILL)
    return found


def _signal_all(members: tuple[Process, ...], number: signal.Signals, kernel: Kernel) -> None:
    ours = {member.pid for member in members}
    groups = {member.group for member in members if member.group in ours or member.group == member.session}
    for group in groups:
        kernel.signal_group(group, number)
    for member in members:
        now = process(member.pid, kernel) if member.group not in groups else None
        if now is not None and now.start == member.start:
            kernel.signal(member.pid, number)
