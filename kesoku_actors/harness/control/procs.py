"""Processes by script, in virtual time, in place of those that `trio.run_process` and its like start.

    world.procs["git"] = [Out(b"cloning"), Sleep(30), Exit(1)]

A child is a task of its own, so the strategy decides how far it gets. It dies of the signals it does not ignore; what
it wrote before stays readable. A program without a script is an `Escape`.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, assert_never

import trio
from attrs import define, field, frozen
from trio.testing import MemoryReceiveStream, MemorySendStream, memory_stream_one_way_pair

from kesoku_actors.harness.control.current import Controlled
from kesoku_actors.harness.control.privates import processes
from kesoku_actors.harness.control.traps import guard
from kesoku_actors.harness.errors import Escape


@frozen
class Out:
    """Write to the standard output."""

    data: bytes


@frozen
class Err:
    """Write to the standard error."""

    data: bytes


@frozen
class Sleep:
    """Let virtual time pass."""

    seconds: float


@frozen
class Exit:
    """End with a code; the end of a script is `Exit(0)`."""

    code: int = 0


@frozen
class Ignore:
    """Ignore a signal from now on; `SIGKILL` cannot be ignored."""

    number: int = signal.SIGTERM


@frozen
class Copy:
    """Copy the standard input to the standard output until its end."""


Action = Out | Err | Sleep | Exit | Ignore | Copy
Scripts = dict[str, Sequence[Action]]
_IGNORED_BY_DEFAULT = frozenset({signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH, signal.SIGCONT})


@define(eq=False)
class Process:
    """A child, with the face of `trio.Process`."""

    args: Any
    pid: int
    stdin: MemorySendStream | None = None
    stdout: MemoryReceiveStream | None = None
    stderr: MemoryReceiveStream | None = None
    stdio: trio.StapledStream[MemorySendStream, MemoryReceiveStream] | None = None
    returncode: int | None = None
    _ignored: set[int] = field(factory=lambda: set(_IGNORED_BY_DEFAULT))
    _scope: trio.CancelScope = field(factory=trio.CancelScope)
    _ended: trio.Event = field(factory=trio.Event)

    def poll(self) -> int | None:
        """Return the code it ended with; none while it runs."""
        return self.returncode

    async def wait(self) -> int:
        """Wait until it ends; return its code."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Signal it; nothing happens when it has ended."""
        if self.returncode is None and (number == signal.SIGKILL or number not in self._ignored):
            self._end(-number)

    def terminate(self) -> None:
        """Send `SIGTERM`."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send `SIGKILL`."""
        self.send_signal(signal.SIGKILL)

    def _end(self, code: int) -> None:
        if self.returncode is None:
            self.returncode = int(code)
            self._scope.cancel()
            self._ended.set()

    async def _live(self, script: Sequence[Action], pipes: dict[str, Any]) -> None:
        with self._scope:
            for action in script:
                await trio.lowlevel.checkpoint()
                await self._act(action, pipes)
            self._end(0)
        for pipe in pipes.values():
            pipe.close()

    async def _act(self, action: Action, pipes: dict[str, Any]) -> None:
        match action:
            case Out(data) | Err(data):
                pipe = pipes.get("stdout" if isinstance(action, Out) else "stderr")
                if pipe is not None:
                    await pipe.send_all(data)
            case Sleep(seconds):
                await trio.sleep(seconds)
            case Exit(code):
                self._end(code)
                await trio.lowlevel.checkpoint()
            case Ignore(number):
                self._ignored.add(number)
            case Copy():
                source, target = pipes.get("stdin"), pipes.get("stdout")
                while source is not None and (data := bytes(await source.receive_some())):
                    if target is not None:
                        await target.send_all(data)
            case _:
                assert_never(action)


@define(eq=False)
class Processes:
    """The children of a run."""

    scripts: Scripts
    started: list[Process] = field(factory=list)
    _names: Counter[str] = field(factory=Counter)
    _run: Controlled | None = None

    async def open(
        self, command: Any, *, stdin: Any = None, stdout: Any = None, stderr: Any = None, **_options: Any
    ) -> Process:
        """Start a child as `trio.lowlevel.open_process` does. Raises `Escape` without a script for it."""
        await trio.lowlevel.checkpoint()
        words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
        name = PurePath(words[0]).name
        script = self.scripts.get(name)
        if script is None:
            raise guard().remember(Escape(f"the program starts {words!r}; there is no script `world.procs[{name!r}]`"))
        process = Process(args=command, pid=1000 + len(self.started))
        pipes: dict[str, Any] = {}
        if stdin == subprocess.PIPE:
            process.stdin, pipes["stdin"] = memory_stream_one_way_pair()
        if stdout == subprocess.PIPE:
            pipes["stdout"], process.stdout = memory_stream_one_way_pair()
        if stderr == subprocess.PIPE:
            pipes["stderr"], process.stderr = memory_stream_one_way_pair()
        elif stderr == subprocess.STDOUT and "stdout" in pipes:
            pipes["stderr"] = pipes["stdout"]
        if process.stdin is not None and process.stdout is not None:
            process.stdio = trio.StapledStream(process.stdin, process.stdout)
        self.started.append(process)
        self._names[name] += 1
        lane = f"child {name}" if self._names[name] == 1 else f"child {name}#{self._names[name]}"
        trio.lowlevel.spawn_system_task(process._live, script, pipes, name=lane.replace(".", "_"))
        return process

    def kill_all(self) -> None:
        """Kill every child: the power went."""
        for process in self.started:
            process.kill()


def simulate_processes(run: Controlled, scripts: Scripts) -> Processes:
    """Start children by script until the run ends."""
    children = Processes(scripts)
    places: list[tuple[Any, str]] = [(processes, "_open_process"), (processes, "open_process")]
    places.append((trio.lowlevel, "open_process"))
    for module, name in places:
        saved = vars(module).get(name)
        if saved is not None:
            setattr(module, name, children.open)
            run.events.undo.append(partial(setattr, module, name, saved))
    return children
