"""Drives `tests.paths.daemon` in a real process: post, wait for an event, kill -9, start again."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, field

LONGEST_S = 60.0
ROOT = Path(__file__).parents[2]
CONFIG = """
[agent]
llm = "{llm}"
{agent}
[scripted]
scenario_path = "scenario.toml"
[workspace]
durability = "{durability}"
[shell]
mode = "blocklist"
{more}
"""


@define(eq=False)
class Daemon:
    """A running daemon. A watchdog kills it after `LONGEST_S`, so that no wait for an event is endless."""

    process: subprocess.Popen[str]
    seen: list[dict[str, Any]] = field(factory=list)

    def command(self, **what: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()

    def events(self) -> Iterator[dict[str, Any]]:
        """What was heard so far, then what comes. Fails when the process ends."""
        assert self.process.stdout is not None
        yield from list(self.seen)
        for line in self.process.stdout:
            self.seen.append(json.loads(line))
            yield self.seen[-1]
        raise AssertionError("the daemon ended")

    def wait(self, wanted: Callable[[dict[str, Any]], bool], count: int = 1) -> dict[str, Any]:
        """Return the event that makes it `count` events as wanted."""
        for event in self.events():
            if wanted(event):
                count -= 1
                if not count:
                    return event
        raise AssertionError("events do not end")

    def post(self, text: str) -> dict[str, Any]:
        before = sum(event["event"] == "posted" for event in self.seen)
        self.command(do="post", text=text)
        return self.wait(lambda event: event["event"] == "posted", before + 1)

    def ended(self, message_id: str) -> dict[str, Any]:
        """Wait until a message's work is over."""
        over = ("processed", "interrupted", "error")
        return self.wait(lambda event: event.get("id") == message_id and event.get("status") in over)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> int:
        """End it in order and return its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(60)


def write_config(
    folder: Path, *, llm: str = "scripted", durability: str = "full", agent: str = "", more: str = ""
) -> Path:
    """Write the configuration of a daemon in `folder` and return its path."""
    config = folder / "config.toml"
    config.write_text(CONFIG.format(llm=llm, durability=durability, agent=agent, more=more))
    return config


@contextmanager
def daemon(
    folder: Path, *, llm: str = "scripted", durability: str = "full", agent: str = "", more: str = ""
) -> Iterator[Daemon]:
    """Run a daemon on the store in `folder`; for a scripted model `scenario.toml` must stand there."""
    config = write_config(folder, llm=llm, durability=durability, agent=agent, more=more)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.paths.daemon", str(config)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    running = Daemon(process)
    watchdog = threading.Timer(LONGEST_S, process.kill)
    watchdog.start()
    try:
        running.wait(lambda event: event["event"] == "ready")
        yield running
    finally:
        watchdog.cancel()
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None and not stream.closed:
                stream.close()


def is_row(event: dict[str, Any], **values: str) -> bool:
    """Whether the event is a row with these values."""
    return event["event"] == "row" and all(event[key] == value for key, value in values.items())
