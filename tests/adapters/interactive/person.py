"""A person at a terminal: the real program in a pseudo-terminal, keys in, the screen read back. No sleeps."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, field

from tests.adapters.interactive.vt import Vt

REPOSITORY = Path(__file__).parents[3]
LONGEST_S = 60.0
ENTER, CTRL_C, CTRL_D, CTRL_T, TAB = "\r", "\x03", "\x04", "\x14", "\t"
CONFIG = """
[agent]
llm = "scripted"
[scripted]
scenario_path = "scenario.toml"
[workspace]
durability = "normal"
"""


@define(eq=False)
class Person:
    """Types and reads. Every wait is bounded and fails with the screen as it was."""

    process: subprocess.Popen[bytes]
    master: int
    slave: int
    vt: Vt
    folder: Path
    modes_before: list[Any]
    recorded: bytearray = field(factory=bytearray)
    _rest: bytes = field(default=b"", init=False)

    def types(self, text: str) -> None:
        """Press keys."""
        rest = text.encode()
        while rest:
            _, writable, _ = select.select([self.master], [self.master], [], LONGEST_S)
            self._read(0)
            if writable:
                rest = rest[os.write(self.master, rest[:512]) :]

    def sees(self, wanted: Callable[[Vt], bool] | str) -> None:
        """Wait until the screen is as wanted."""
        until = time.monotonic() + LONGEST_S
        is_there = wanted if callable(wanted) else lambda vt: any(wanted in line for line in vt.everything)
        while not is_there(self.vt):
            has_ended = self.process.poll() is not None
            if not self._read(0.25) and (has_ended or time.monotonic() > until):
                raise AssertionError(f"not seen: {wanted}\n" + "\n".join(self.vt.everything))

    def has_window(self, columns: int, lines: int) -> None:
        """Change the size of the window, while the program holds still: what it has written was for the old size."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)
        while self._read(0):
            pass
        self.vt.resize(columns, lines)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process.send_signal(signal.SIGCONT)

    def closes_the_window(self) -> None:
        """Take the terminal away."""
        os.close(self.slave)
        os.close(self.master)
        self.master = self.slave = -1

    def leaves(self) -> int:
        """Wait for the program's end and return its exit code."""
        until = time.monotonic() + LONGEST_S
        while self.process.poll() is None:
            assert time.monotonic() < until, "it does not end\n" + "\n".join(self.vt.everything)
            self._read(0.05)
        while self._read(0):
            pass
        return self.process.returncode

    @property
    def status(self) -> str:
        """The last row that is not empty."""
        return self.vt.everything[-1] if self.vt.everything else ""

    def rows(self, columns: str = "role, status, content") -> list[tuple[Any, ...]]:
        """The stored messages, in order of their numbers."""
        with sqlite3.connect(self.folder / "kesoku.db") as connection:
            return connection.execute(f"SELECT {columns} FROM messages ORDER BY seq").fetchall()

    def terminal_is_given_back(self) -> bool:
        """Whether the modes are those of before and the cursor shows."""
        modes = self.vt.modes
        return termios.tcgetattr(self.slave) == self.modes_before and modes["25"] and modes["7"] and not modes["2004"]

    def _read(self, patience_s: float) -> bool:
        if not select.select([self.master], [], [], max(0.0, patience_s))[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the other end is closed
            return False
        self.recorded += data
        data = self._rest + data
        text = data.decode("utf-8", "ignore")
        self._rest = data[len(text.encode()) :] if len(data) - len(text.encode()) < 4 else b""
        self.vt.feed(text)
        return True


@contextmanager
def person(
    folder: Path,
    scenario: str,
    *arguments: str,
    size: tuple[int, int] = (80, 24),
    environ: Mapping[str, str] | None = None,
    at_once: str = "",
    config: str = "",
) -> Iterator[Person]:
    """Start the program on the store in `folder`; `at_once` is typed before it can read."""
    (folder / "scenario.toml").write_text(scenario)
    (folder / "config.toml").write_text(CONFIG + config)
    master, slave = os.openpty()
    columns, lines = size
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    before = termios.tcgetattr(slave)
    if at_once:
        os.write(master, at_once.encode())
    process = subprocess.Popen(
        [sys.executable, "-m", "kesoku_actors", "chat", "-c", str(folder / "config.toml"), *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY),
            "HOME": str(folder),
            "TERM": "xterm-256color",
            "XDG_DATA_HOME": str(folder / "data"),
            **(environ or {}),
        },
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    sitting = Person(process, master, slave, Vt(columns, lines), folder, before)
    try:
        yield sitting
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        if sitting.master >= 0:
            sitting.closes_the_window()
