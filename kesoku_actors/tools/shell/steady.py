"""Starts processes from threads that live as long as this program.

The kernel tells a child that its parent has died when the *thread* that started it is gone, and bubblewrap then ends
its sandbox, as it shall when we die (`--die-with-parent`). Trio starts processes from a thread that goes away after ten
idle seconds, and a longer command would be killed with it. These threads never go away before the program does.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import trio
from attrs import field

from kesoku_actors.tools.shell.kernel import Command, drained
from kesoku_actors.values import define

T = TypeVar("T")
_THREADS: Final = 4
"""How many processes may be started at the same time; a start takes about a millisecond."""


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="kesoku-spawn")


@define(eq=False)
class SteadySpawn:
    """`Machine.spawn` from such threads. Linux only, as the sandbox is."""

    _starters: ThreadPoolExecutor = field(factory=_threads, init=False)

    async def __call__(self, command: Command) -> _Child:
        """Start `command` in a session of its own. Raises `OSError`."""
        reading, writing = os.pipe2(os.O_CLOEXEC)
        try:
            child = await self._in_thread(lambda: _start(command, writing))
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        return _Child(child, trio.lowlevel.FdStream(reading))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        done = trio.Event()
        token = trio.lowlevel.current_trio_token()
        future = self._starters.submit(work)
        future.add_done_callback(lambda _future: token.run_sync_soon(done.set))
        await done.wait()
        return future.result()


def _start(command: Command, output: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(command.argv),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=command.directory,
        env=dict(command.environment),
        start_new_session=True,
        umask=command.umask,
    )


@define(eq=False)
class _Child:
    """A process, as a `kernel.Child`."""

    _popen: subprocess.Popen[bytes]
    output: trio.lowlevel.FdStream

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        return self._popen.poll()

    async def wait(self) -> int:
        if self._popen.poll() is None:
            ended = os.pidfd_open(self._popen.pid)
            try:
                await trio.lowlevel.wait_readable(ended)
            finally:
                os.close(ended)
        return self._popen.wait()

    def drain(self) -> bytes:
        return drained(self.output)
