"""Sessions to be traced, played by the real daemon with a scripted model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio
from attrs import frozen

from kesoku_actors.llm.scripted import Call, Fail, Say, Spend, Think
from kesoku_actors.protocol import Message
from kesoku_actors.store import SessionRecord
from kesoku_actors.trace import Sources, Trace, build_trace
from kesoku_actors.turnlog import TurnLogOptions, read_logs
from tests.paths.house import Home, at_home, here_and_now

SECRET = "sk-hunter2-hunter2"
NOW = 1_800_000_000.0


def unmasked(text: str) -> str:
    return text


async def read_file(path: str, lines: int = 40) -> str:
    """Read the beginning of a text file.

    Args:
        path: which file, in the workspace
        lines: how many lines at most
    """
    await trio.sleep(0.4)
    if path == "missing.md":
        raise ValueError("missing.md does not exist; the folder holds notes.md and plan.md")
    return f"# {path}\n\nThe first lines of **{path}**.\n- one\n- two\n"


async def run_command(command: str) -> str:
    """Run a command.

    Args:
        command: the command line
    """
    await trio.sleep(3 if "make" in command else 1.2)
    return f"$ {command}\nok\n[exit status 0]"


@frozen
class Played:
    """A session that was played, as it is stored."""

    folder: Path
    record: SessionRecord

    @property
    def workspace(self) -> Path:
        return self.folder / "sessions" / self.record.session.id

    def trace(self, number: int | None = None, **changes: Any) -> Trace:
        """Return its trace."""
        sources: dict[str, Any] = {
            "record": self.record,
            "logs": read_logs(self.workspace),
            "mask": unmasked,
            "price": lambda _model, _tokens: None,
            "generated": NOW,
            "program": "kesoku-actors test",
        }
        return build_trace(Sources(**sources | changes), number)


async def played(folder: Path, inferences: list[Any], play: Callable[[Home], Any], **changes: Any) -> Played:
    """Play a session: `play` talks in it and returns any message of it."""
    options = {"turn_log": TurnLogOptions(mask=unmasked, run=here_and_now), "tools": [read_file, run_command]} | changes
    async with at_home(folder, inferences, **options) as home:
        message: Message = await play(home)
        await trio.testing.wait_all_tasks_blocked()
        record = await home.gateway.reader.record(message.session_id)
    assert record is not None
    return Played(folder, record)


async def busy_day(folder: Path, **changes: Any) -> Played:
    """A session in which everything happens: parallel calls, a failed one, an interruption, a stop, a failed turn."""
    inferences = [
        (
            Think(thought="The person wants a summary.\nI read both files at once; neither needs the other."),
            Say(text="Let me look at both files.", word_delay_s=0.1),
            Call(name="read_file", arguments={"path": "notes.md"}, id="call_1"),
            Call(name="read_file", arguments={"path": "missing.md", "lines": 12}, id="call_2"),
            Call(name="run_command", arguments={"command": "ls -la | head"}, id="call_3"),
            Spend(input=1840, cached=1024, output=96, thinking=40),
        ),
        (
            Think(thought="missing.md is not there, plan.md is."),
            Call(name="read_file", arguments={"path": "plan.md"}, id="call_4"),
            Spend(input=2210, cached=1840, output=44),
        ),
        (
            Say(
                text="Both files list two points:\n\n- **notes.md**: one and two\n- **plan.md**: the same",
                word_delay_s=0.08,
            ),
            Spend(input=2390, cached=2210, output=31),
        ),
        (Say(text="Once upon a time there was a very long story about a lighthouse", word_delay_s=0.4),),
        (Say(text="Short version: the light stayed on.", word_delay_s=0.1), Spend(input=2600, output=12)),
        (Call(name="run_command", arguments={"command": "make all"}, id="call_5"), Spend(input=2700, output=20)),
        *[(Fail(kind="auth", message="HTTP 401: the key is not accepted; check [openai] api_key"),) for _ in range(2)],
    ]

    async def play(home: Home) -> Message:
        first = await home.say("Summarise notes.md and missing.md for me, please.\nTwo sentences are enough.")
        await home.ended(first)
        story = await home.say("Tell me a story.")
        await trio.sleep(2.2)
        await home.ended(await home.say("Shorter, please!"))
        build = await home.say("Build everything.")
        await trio.sleep(1.5)
        await home.gateway.stop(build.session_id)
        await home.ended(build)
        await home.ended(await home.say("And now publish it."))
        return story

    return await played(folder, inferences, play, **changes)
