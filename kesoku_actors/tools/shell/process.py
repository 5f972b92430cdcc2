"""One command as a process: started clean, read within bounds, ended whole.

* It gets its own session and process group, no input, and only the environment it is given.
* The call is over when the command's own process is: a child left in the background holds nothing, and is named.
* Cancelled, it ends whole before the cancellation goes on: TERM to its group and to whoever left it, a grace, KILL.
  What even that does not end (another user's, or stuck in the kernel) is named, and waited for no longer.
* Reading keeps the head and the tail of the output in memory, which stays flat, and hands all of it to a file: at the
  end, and before that whenever `_HELD_BYTES` have come or the first of them waits for `_HELD_S`.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Awaitable, Callable
from typing import Final

import trio
from attrs import evolve, field

from kesoku_actors.tools.output import Capture
from kesoku_actors.tools.shell import process_table
from kesoku_actors.tools.shell.ending import end_all, living
from kesoku_actors.tools.shell.kernel import CHUNK, MACHINE, Child, Command, Kernel, Output
from kesoku_actors.tools.shell.process_table import Family, Process
from kesoku_actors.tools.spool import FOLDER, Spool
from kesoku_actors.values import define, frozen

_HELD_BYTES: Final = 256 * 1024
_HELD_S: Final = 0.1
"""Shorter than a person notices, and longer than most commands take: they go to a thread for their file once."""
_LOOKS_S: Final = (0.005, 0.02, 0.05)
"""Pauses before looking again whether something lives on: a sandbox takes its processes along, but not at once."""


@define(kw_only=True)
class Record:
    """What is known of a command so far; its caller's, who reads it also when the run was cancelled."""

    output: Capture
    spool: Spool
    """Takes all of the output."""
    held: bytearray = field(factory=bytearray)
    """Of the output, what is not in the file yet."""
    living: tuple[Process, ...] = ()
    """Processes of its own that live on behind its end."""

    @property
    def output_file(self) -> str | None:
        """The file of the output, also where it is only about to be made: nobody else may make it meanwhile."""
        return self.spool.path or (f"{FOLDER}/{self.spool.name}" if self.held else None)


@frozen(kw_only=True)
class Ended:
    """How a command ended."""

    exit_status: int | None
    signal: int | None
    """The signal that ended it, when one did."""


Announce = Callable[[int, float | None], Awaitable[None]]
"""Told the pid (which is the process group) and the start time, once it runs."""
Spawn = Callable[[Command], Awaitable[Child]]


async def run(
    command: Command, record: Record, announce: Announce, *, kernel: Kernel = MACHINE, spawn: Spawn | None = None
) -> Ended:
    """Run `command` to its end; `spawn` starts it in place of the kernel's own. Raises `OSError` when it cannot be."""
    # A process started by a cancelled spawn would be nobody's. This shield has no deadline, for there is nothing that
    # could be given up: a thread forks, which nothing can interrupt, and it takes as long as the kernel needs to read
    # the program's file. Where that never comes (a file system that hangs), only a kill from outside ends us too.
    began = trio.current_time()
    with trio.CancelScope(shield=True):
        process = await (spawn or kernel.spawn)(command)
    output = process.output
    family = Family(leader=process.pid, call_id=command.call_id, kernel=kernel)
    try:
        async with trio.open_nursery() as nursery:
            reading = trio.CancelScope()
            nursery.start_soon(_read, output, record, reading)
            await announce(process.pid, process_table.start_time(process.pid, kernel))
            await process.wait()
            reading.cancel()
    finally:
        with trio.CancelScope(shield=True):
            if process.returncode is None:
                record.living = await _end(process, family, command.end_grace_s)
            else:
                is_young = trio.current_time() - began < process_table.YOUNG_S
                record.living = await _staying(evolve(family, is_young=is_young))
            record.output.feed(rest := process.drain())
            record.held += rest
            await output.aclose()
            await trio.to_thread.run_sync(_finish, record.spool, bytes(record.held))
            record.held.clear()
    status = process.returncode
    assert status is not None
    return Ended(exit_status=status if status >= 0 else None, signal=-status if status < 0 else None)


async def _staying(family: Family) -> tuple[Process, ...]:
    """Return what lives on behind a command that has ended; what the kernel is just ending with it does not count."""
    found = await living(family)
    for pause_s in _LOOKS_S if found else ():
        await trio.sleep(pause_s)
        if not (found := await living(family)):
            break
    return found


async def _end(process: Child, family: Family, grace_s: float) -> tuple[Process, ...]:
    """End the process with all that belongs to it, and return what could not be ended; the caller shields.

    It takes two graces and two seconds at most.
    """
    kernel = family.kernel
    if process_table.start_time(process.pid, kernel) is None:  # this machine has no table of processes to look into
        kernel.signal_group(process.pid, signal.SIGTERM)
        with trio.move_on_after(grace_s):
            await process.wait()
        kernel.signal_group(process.pid, signal.SIGKILL)
    left = await end_all(family, grace_s=grace_s)
    with trio.move_on_after(grace_s):
        await process.wait()
    return left


async def _read(output: Output, record: Record, scope: trio.CancelScope) -> None:
    """Read to the end, or until `scope` is cancelled; what is held then is handed to the file by the caller."""
    due = math.inf
    with scope:
        while True:
            with trio.CancelScope(deadline=due) as waiting:
                if not (data := bytes(await output.receive_some(CHUNK))):
                    return
                record.output.feed(data)
                due = due if record.held else trio.current_time() + _HELD_S
                record.held += data
            if waiting.cancelled_caught or len(record.held) >= _HELD_BYTES:
                due = math.inf
                with trio.CancelScope(shield=True):  # what was taken out of the pipe stands nowhere else
                    await trio.to_thread.run_sync(record.spool.feed, bytes(record.held))
                record.held.clear()


def _finish(spool: Spool, rest: bytes) -> None:
    spool.feed(rest)
    spool.close()
