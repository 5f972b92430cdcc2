"""The end of a set of processes: TERM, a grace, KILL, until the kernel's table holds none of them.

The set is read again at every look, because processes make others while they end. A group is signalled as a group where
its leader is known to be ours, which reaches what was born since the look; whoever left it is signalled alone. The
table is read in a thread: on a machine with many processes that takes longer than an event loop may stand still.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import trio

from kesoku_actors.tools.shell.process_table import Process, process

END_GRACE_S: Final = 1.0
"""Between TERM and KILL."""
_LOOK_S: Final = 0.02
_KILL_ROUNDS: Final = 50

Members = Callable[[], tuple[Process, ...]]


async def end_all(members: Members, *, grace_s: float = END_GRACE_S) -> tuple[Process, ...]:
    """End what `members` finds and return what could not be ended; it takes `grace_s` and about a second at most."""
    _signal_all(await look(members), signal.SIGTERM)
    with trio.move_on_after(grace_s):
        while await look(members):  # noqa: ASYNC110  the kernel tells nobody that a group is empty
            await trio.sleep(_LOOK_S)
    for _ in range(_KILL_ROUNDS):  # a fork bomb makes new ones while the old ones die
        left = await look(members)
        if not left:
            return ()
        _signal_all(left, signal.SIGKILL)
        await trio.sleep(_LOOK_S)
    return await look(members)


async def look(members: Members) -> tuple[Process, ...]:
    """Return what `members` finds now."""
    return await trio.to_thread.run_sync(members)


def _signal_all(members: tuple[Process, ...], number: signal.Signals) -> None:
    ours = {member.pid for member in members}
    for group in {member.group for member in members if member.group in ours or member.group == member.session}:
        send(os.killpg, group, number)
    for member in members:
        now = process(member.pid)
        if now is not None and now.start == member.start:
            send(os.kill, member.pid, number)


def send(how: Callable[[int, int], None], target: int, number: signal.Signals) -> None:
    """Send a signal to who may be gone by now, or not be ours to end (set-user-id): then it is named as left."""
    with suppress(ProcessLookupError, PermissionError):
        how(target, number)
