"""What commands need of the system, behind one face: starting a process, the table of processes, signals.

It is a seam. All that decides stands above it: who belongs to a command, who is asked and who is killed, how an output
is read. So the same lines end commands on a machine and in a simulated world.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from signal import Signals
from typing import Final, Protocol

import trio

from kesoku_actors.values import frozen

END_GRACE_S: Final = 1.0
"""Between TERM and KILL."""
_PROC: Final = "/proc"
_DRAIN_CHUNKS: Final = 64
CHUNK: Final = 64 * 1024
"""How much is read at once."""


@frozen(kw_only=True)
class Command:
    """What to run and where."""

    argv: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    call_id: str
    umask: int = 0o077
    end_grace_s: float = END_GRACE_S


class Output(Protocol):
    """What a child writes, both streams as one."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Wait for the next bytes; none at the end."""
        ...

    async def aclose(self) -> None:
        """Read no more."""
        ...


class Child(Protocol):
    """A process that was started."""

    @property
    def pid(self) -> int: ...

    @property
    def output(self) -> Output: ...

    @property
    def returncode(self) -> int | None:
        """How it ended, negative for a signal; none while it runs."""
        ...

    async def wait(self) -> int:
        """Wait until it has ended."""
        ...

    def drain(self) -> bytes:
        """Take what it wrote and nobody read, without waiting: a child that lives on may hold the pipe open."""
        ...


class Kernel(Protocol):
    """The system. What it does not know it does not tell: a table may be empty."""

    async def spawn(self, command: Command) -> Child:
        """Start `command` in a session and group of its own. Raises `OSError`."""
        ...

    def read(self, pid: int, name: str) -> bytes:
        """Return what `/proc/PID/NAME` says; nothing when the process is gone or another user's."""
        ...

    def pids(self) -> list[int]:
        """Return all there are."""
        ...

    def last_pid(self) -> int | None:
        """Return the one that was given last; none when nobody can tell."""
        ...

    def own_pid(self) -> int:
        """Return this program's own."""
        ...

    def signal(self, pid: int, number: Signals) -> None:
        """Signal a process, which may be gone by now, or not be ours to end (set-user-id)."""
        ...

    def signal_group(self, group: int, number: Signals) -> None:
        """Signal all of a group, likewise."""
        ...


class Machine:
    """The machine we run on. Where it has no /proc its table is empty."""

    async def spawn(self, command: Command) -> Child:
        """Start `command` by trio."""
        process = await trio.lowlevel.open_process(
            list(command.argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=command.directory,
            env=dict(command.environment),
            start_new_session=True,
            umask=command.umask,
        )
        return _Running(process)

    def read(self, pid: int, name: str) -> bytes:
        """Read the file, in one go."""
        try:
            with open(f"{_PROC}/{pid}/{name}", "rb", buffering=0) as file:
                return file.readall()
        except OSError:
            return b""

    def pids(self) -> list[int]:
        """List /proc."""
        try:
            return [int(name) for name in os.listdir(_PROC) if name.isdecimal()]
        except OSError:
            return []

    def last_pid(self) -> int | None:
        """Return what the load's line ends with."""
        try:
            return int(Path(_PROC, "loadavg").read_text("ascii").split()[-1])
        except (OSError, ValueError):
            return None

    def own_pid(self) -> int:
        """Return ours."""
        return os.getpid()

    def signal(self, pid: int, number: Signals) -> None:
        """Call `kill`."""
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)

    def signal_group(self, group: int, number: Signals) -> None:
        """Call `killpg`."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


MACHINE: Final = Machine()


@frozen
class _Running:
    """A process of trio's, as a `Child`."""

    _process: trio.Process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> Output:
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        return await self._process.wait()

    def drain(self) -> bytes:
        return drained(self.output)


def drained(output: Output) -> bytes:
    """Read what stands in a pipe, as far as a pipe can be read here without waiting."""
    rest = bytearray()
    descriptor = getattr(output, "fileno", None)
    if descriptor is None:
        return b""
    for _ in range(_DRAIN_CHUNKS):
        try:
            data = os.read(descriptor(), CHUNK)
        except OSError as problem:
            if problem.errno in (errno.EAGAIN, errno.EWOULDBLOCK, errno.EBADF):
                break
            raise
        if not data:
            break
        rest += data
    return bytes(rest)
