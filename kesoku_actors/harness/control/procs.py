"""Processes by script, in virtual time, in place of those that `trio.run_process` and its like start.

    world.procs["git"] = [Out(b"cloning"), Sleep(30), Exit(1)]

A child is a task of its own, so the strategy decides how far it gets. It dies of the signals it does not ignore; what
it wrote before stays readable. It may start children by `Fork`, which live on behind its end, and hold its output open.
A program without a script is an `Escape`.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import PurePath
from typing import Any, Final, assert_never

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


@frozen
class Fork:
    """Start a child of its own, which follows this script beside it and writes where it writes."""

    script: Sequence[Action]
    leaves: bool = False
    """Whether the child leaves its parent's group, for a session of its own (`setsid`)."""


Action = Out | Err | Sleep | Exit | Ignore | Copy | Fork
Script = Sequence[Action] | Callable[[Sequence[str]], Sequence[Action]]
"""What a child does; or a function that says so, of the words it was started with."""
Scripts = dict[str, Script]
_FIRST_PID: Final = 1000
_IGNORED_BY_DEFAULT: Final = frozenset({signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH, signal.SIGCONT})


@define(eq=False)
class Pipe:
    """The writing end of a pipe; closed when the last who holds it has ended."""

    stream: MemorySendStream
    holders: int = 0

    def let_go(self) -> None:
        """End with one who holds it."""
        self.holders -= 1
        if self.holders == 0:
            self.stream.close()


@define(eq=False)
class Process:
    """A child, with the face of `trio.Process`."""

    args: Any
    pid: int
    group: int
    """The group's number: its leader's `pid`."""
    parent: Process | None = None
    """Who forked it; none: the program."""
    environment: Mapping[str, str] = field(factory=dict)
    began: float = 0.0
    """In virtual time."""
    written: bytearray = field(factory=bytearray)
    """All it wrote itself, to either stream."""
    stdin: MemorySendStream | None = None
    stdout: MemoryReceiveStream | None = None
    stderr: MemoryReceiveStream | None = None
    stdio: trio.StapledStream[MemorySendStream, MemoryReceiveStream] | None = None
    returncode: int | None = None
    told: Callable[[Process], object] = lambda _process: None
    """Told when it has ended."""
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

    def read_nowait(self) -> bytes:
        """Take what stands in its output unread; nothing when there is nothing."""
        if self.stdout is None:
            return b""
        try:
            return bytes(self.stdout._incoming.get_nowait())
        except trio.WouldBlock:
            return b""

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
            self.told(self)

    async def _live(self, script: Sequence[Action], pipes: Mapping[str, Any], fork: Forking) -> None:
        with self._scope:
            for action in script:
                await trio.lowlevel.checkpoint()
                await self._act(action, pipes, fork)
            self._end(0)
        for pipe in pipes.values():
            pipe.let_go() if isinstance(pipe, Pipe) else pipe.close()

    async def _act(self, action: Action, pipes: Mapping[str, Any], fork: Forking) -> None:
        match action:
            case Out(data) | Err(data):
                await self._write(pipes.get("stdout" if isinstance(action, Out) else "stderr"), data)
            case Sleep(seconds):
                await trio.sleep(seconds)
            case Exit(code):
                self._end(code)
                await trio.lowlevel.checkpoint()
            case Ignore(number):
                self._ignored.add(number)
            case Copy():
                source = pipes.get("stdin")
                while source is not None and (data := bytes(await source.receive_some())):
                    await self._write(pipes.get("stdout"), data)
            case Fork():
                fork(self, action, pipes)
            case _:
                assert_never(action)

    async def _write(self, pipe: Pipe | None, data: bytes) -> None:
        """Write; who writes where nobody reads any more dies of that."""
        if pipe is None:
            return
        try:
            await pipe.stream.send_all(data)
        except trio.BrokenResourceError:
            self._end(-signal.SIGPIPE)
            await trio.lowlevel.checkpoint()
        self.written += data


Forking = Callable[[Process, Fork, Mapping[str, Any]], None]


@define(eq=False)
class Processes:
    """The children of a run."""

    scripts: Scripts
    now: Callable[[], float]
    started: list[Process] = field(factory=list)
    """That are not forgotten."""
    heard: Callable[[Process], object] = lambda _process: None
    """Told of each child when it has begun, and when it has ended."""
    _names: Counter[str] = field(factory=Counter)
    _pids: Iterator[int] = field(factory=lambda: count(_FIRST_PID))

    async def open(
        self,
        command: Any,
        *,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        env: Mapping[str, str] | None = None,
        start_new_session: bool = False,
        **_options: Any,
    ) -> Process:
        """Start a child as `trio.lowlevel.open_process` does. Raises `Escape` without a script for it."""
        await trio.lowlevel.checkpoint()
        words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
        name = PurePath(words[0]).name
        script = self.scripts.get(name)
        if script is None:
            raise guard().remember(Escape(f"the program starts {words!r}; there is no script `world.procs[{name!r}]`"))
        process = self._begin(command, None, env or {}, leads=start_new_session)
        pipes: dict[str, Any] = {}
        if stdin == subprocess.PIPE:
            process.stdin, pipes["stdin"] = memory_stream_one_way_pair()
        if stdout == subprocess.PIPE:
            sender, process.stdout = memory_stream_one_way_pair()
            pipes["stdout"] = Pipe(sender)
        if stderr == subprocess.PIPE:
            sender, process.stderr = memory_stream_one_way_pair()
            pipes["stderr"] = Pipe(sender)
        elif stderr == subprocess.STDOUT and "stdout" in pipes:
            pipes["stderr"] = pipes["stdout"]
        if process.stdin is not None and process.stdout is not None:
            process.stdio = trio.StapledStream(process.stdin, process.stdout)
        self._run_script(process, script(words) if callable(script) else script, pipes, name)
        return process

    def living(self) -> Iterator[Process]:
        """Yield those that have not ended, oldest first."""
        return (process for process in self.started if process.returncode is None)

    def signal_group(self, group: int, number: int) -> None:
        """Signal all of a group that live."""
        for process in [each for each in self.living() if each.group == group]:
            process.send_signal(number)

    def forget(self) -> None:
        """Forget those that have ended, in a run of days."""
        self.started[:] = self.living()

    def kill_all(self) -> None:
        """Kill every child: the power went."""
        for process in [*self.living()]:  # who hears of an end may forget those that ended
            process.kill()

    def _begin(self, args: Any, parent: Process | None, env: Mapping[str, str], *, leads: bool) -> Process:
        pid = next(self._pids)
        # Who leads nothing is in our own group, or in its parent's.
        group = pid if leads else parent.group if parent is not None else _FIRST_PID - 1
        process = Process(
            args=args, pid=pid, group=group, parent=parent, environment=env, began=self.now(), told=self.heard
        )
        self.started.append(process)
        self.heard(process)
        return process

    def _fork(self, parent: Process, action: Fork, pipes: Mapping[str, Any]) -> None:
        process = self._begin(parent.args, parent, parent.environment, leads=action.leaves)
        held = {name: pipe for name, pipe in pipes.items() if isinstance(pipe, Pipe)}
        self._run_script(process, action.script, held, "fork")

    def _run_script(self, process: Process, script: Sequence[Action], pipes: Mapping[str, Any], name: str) -> None:
        for pipe in pipes.values():
            if isinstance(pipe, Pipe):
                pipe.holders += 1
        self._names[name] += 1
        lane = f"child {name}" if self._names[name] == 1 else f"child {name}#{self._names[name]}"
        trio.lowlevel.spawn_system_task(process._live, script, pipes, self._fork, name=lane.replace(".", "_"))


def simulate_processes(run: Controlled, scripts: Scripts) -> Processes:
    """Start children by script until the run ends."""
    children = Processes(scripts, lambda: run.clock.now)
    places: list[tuple[Any, str]] = [(processes, "_open_process"), (processes, "open_process")]
    places.append((trio.lowlevel, "open_process"))
    for module, name in places:
        saved = vars(module).get(name)
        if saved is not None:
            setattr(module, name, children.open)
            run.events.undo.append(partial(setattr, module, name, saved))
    return children
