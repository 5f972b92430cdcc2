"""The computer that the simulated daemon runs commands on: the kernel's table of processes over the world's children.

It outlives the program. When that is killed, what commands started lives on; when the power goes, all is gone, and the
numbers of processes are given again, to strangers. A dead life of the program reaches nothing any more: it sees an
empty table, signals nobody, and its children look as if they had ended.

What happens to the command of a call is noted: it `began`, and `ended` by itself or was `killed`; so for each of its
processes, `up` and `down`; and each `signal`.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Callable
from signal import Signals
from typing import Final

import trio
from attrs import define, field, frozen

from kesoku_actors.harness.control.procs import Process
from kesoku_actors.harness.world import World
from kesoku_actors.tools.shell.kernel import Command, Output
from kesoku_actors.tools.shell.process_table import CALL_VARIABLE

OWN_PID: Final = 999
TICKS_A_S: Final = 100
_LIMIT: Final = re.compile(r"ulimit -S -m (\d+)")
_ZEROS: Final = " ".join("0" * 15)
"""What nobody asks for between a process's session and its start."""


@define(eq=False)
class Computer:
    """The computer."""

    world: World
    strangers: dict[int, float] = field(factory=lambda: {OWN_PID: 0.0})
    """By number: when processes of others began, in ticks. The program itself is one."""
    sessions: dict[str, str] = field(factory=dict)
    """Of the calls whose commands ran."""
    reaped: set[int] = field(factory=set)
    over: defaultdict[int, trio.Event] = field(factory=lambda: defaultdict(trio.Event))
    """Set when a process has ended, or the life of the program that started it."""

    def __attrs_post_init__(self) -> None:
        self.world.children.heard = self._heard

    def crash(self, *, is_cut: bool) -> None:
        """The program was killed; or the power went, and others have the numbers now."""
        if is_cut:
            ticks = self.world.clock.now() * TICKS_A_S + 1.0
            self.strangers.update({process.pid: ticks for process in self.world.children.started})
        for event in self.over.values():
            event.set()

    def forget(self) -> None:
        """Forget what has ended, at the end of a day; no number that was given is known any more but of who lives."""
        children = self.world.children
        children.forget()
        living = {process.pid for process in children.started}
        calls = {self.call_of(process) for process in children.started}
        self.strangers = {OWN_PID: 0.0}
        self.sessions = {call: session for call, session in self.sessions.items() if call in calls}
        self.reaped &= living
        for pid in self.over.keys() - living:
            del self.over[pid]

    def call_of(self, process: Process) -> str:
        """Return the call whose command a process belongs to."""
        return process.environment[CALL_VARIABLE]

    def written(self, call_id: str) -> bytes | None:
        """Return all that the command of a call wrote by itself; none: it never ran."""
        leaders = [
            each for each in self.world.children.started if each.parent is None and self.call_of(each) == call_id
        ]
        return bytes(leaders[0].written) if leaders else None

    def _heard(self, process: Process) -> None:
        call, is_leader, code = self.call_of(process), process.parent is None, process.returncode
        self.world.note("up" if code is None else "down", call=call, pid=process.pid)
        if code is not None:
            self.over[process.pid].set()
        if is_leader:
            kind = "began" if code is None else "ended" if code >= 0 else "killed"
            self.world.note(kind, call=call, session=self.sessions[call])


@define(eq=False)
class SimulatedKernel:
    """The kernel as one life of the program meets it; implements `kesoku_actors.tools.shell.Kernel`."""

    computer: Computer
    is_alive: Callable[[], bool]

    async def spawn(self, command: Command) -> SimulatedChild:
        """Start a command by its script."""
        self.computer.sessions[command.call_id] = command.directory.name
        process = await self.computer.world.children.open(
            command.argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=command.environment,
            start_new_session=True,
        )
        if not self.is_alive():
            process.kill()
        return SimulatedChild(self, process)

    def read(self, pid: int, name: str) -> bytes:
        """Tell of a process what /proc does."""
        process = self._find(pid)
        if process is None:
            started = self.computer.strangers.get(pid) if self.is_alive() else None
            is_asked = started is not None and name == "stat"
            return f"{pid} (stranger) S 1 {pid} {pid} {_ZEROS} {started:.0f}".encode() if is_asked else b""
        match name:
            case "stat":
                state = "S" if process.returncode is None else "Z"
                parent = OWN_PID if process.parent is None else process.parent.pid
                if process.parent is not None and process.parent.returncode is not None:
                    parent = 1
                began = process.began * TICKS_A_S
                return f"{pid} (sh) {state} {parent} {process.group} {process.group} {_ZEROS} {began:.0f}".encode()
            case "limits":
                found = _LIMIT.search(process.args[2])
                return b"" if found is None else f"Max resident set {int(found[1]) * 1024} unlimited bytes".encode()
            case "environ":
                has_left = process.parent is not None and process.group == process.pid
                variables = {} if has_left else process.environment  # it was started by `env -i setsid`
                return "\0".join(f"{key}={value}" for key, value in variables.items()).encode()
            case _:
                raise AssertionError(f"nobody said what is in {name}")

    def pids(self) -> list[int]:
        """Return all there are."""
        if not self.is_alive():
            return []
        ours = (each.pid for each in self.computer.world.children.started if self._find(each.pid) is not None)
        return sorted({*ours, *self.computer.strangers})

    def last_pid(self) -> int:
        """Return the one given last."""
        started = self.computer.world.children.started
        return started[-1].pid if started else OWN_PID

    def own_pid(self) -> int:
        """Return the program's own."""
        return OWN_PID

    def signal(self, pid: int, number: Signals) -> None:
        """Signal a process."""
        process = self._find(pid)
        if process is not None:
            self._send(process, number)
        elif self.is_alive() and pid in self.computer.strangers:
            self.computer.world.note("stranger", pid=pid)

    def signal_group(self, group: int, number: Signals) -> None:
        """Signal all of a group."""
        found = [each for each in self.computer.world.children.living() if each.group == group]
        for process in found if self.is_alive() else ():
            self._send(process, number)
        if not found and self.is_alive() and group in self.computer.strangers:
            self.computer.world.note("stranger", pid=group)

    def _send(self, process: Process, number: Signals) -> None:
        if process.returncode is None:
            computer = self.computer
            computer.world.note("signal", call=computer.call_of(process), pid=process.pid, number=int(number))
            process.send_signal(number)

    def _find(self, pid: int) -> Process | None:
        """The child with this number that is there, also as a zombie; as a dead life sees it, nobody is."""
        if not self.is_alive():
            return None
        for process in self.computer.world.children.started:
            if process.pid == pid:
                is_zombie = process.parent is None and pid not in self.computer.reaped | self.computer.strangers.keys()
                return process if process.returncode is None or is_zombie else None
        return None


@frozen
class SimulatedChild:
    """A command as the life of the program that started it sees it; implements `kernel.Child`."""

    kernel: SimulatedKernel
    process: Process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> Output:
        assert self.process.stdout is not None
        return self.process.stdout

    @property
    def returncode(self) -> int | None:
        return self.process.returncode if self.kernel.is_alive() else -Signals.SIGKILL

    async def wait(self) -> int:
        await self.kernel.computer.over[self.pid].wait()
        self.kernel.computer.reaped.add(self.pid)
        code = self.returncode
        assert code is not None
        return code

    def drain(self) -> bytes:
        return self.process.read_nowait()
