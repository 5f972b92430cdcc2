"""The scenes: what is said and done, and what must have come of it. Each raises `DemoFailed` when it did not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import trio

import kesoku_actors
from kesoku_actors.app.demo.narrator import Narrator
from kesoku_actors.app.demo.stage import PATIENCE_S, DemoFailed, Stage
from kesoku_actors.protocol import Outcome, Reason, Status, Stop, Type
from kesoku_actors.values import frozen

_LOOK_S: Final = 0.05
_PAYMENT: Final = "Pay the baker 100, exactly once."


@frozen(kw_only=True)
class Scene:
    """One scene of a life."""

    title: str
    words: str
    play: Callable[[Stage], Awaitable[None]]


async def at_once(stage: Stage) -> None:
    """Three tools run at the same time."""
    asked = await stage.say("Kettle, table, cake: all at once, please.")
    await stage.ended(asked.id)
    calls, results = stage.of_turn(asked.id, Type.TOOL_CALL), stage.of_turn(asked.id, Type.TOOL_RESULT)
    must(len(results) == 3 and all(row.metadata["outcome"] == Outcome.OK for row in results), "three tools end well")
    alone = sum(row.metadata["duration_s"] for row in results)
    together = max(row.timestamp for row in results) - min(row.timestamp for row in calls)
    must(together < 0.8 * alone, f"the tools run together, not one after the other ({together:.1f} of {alone:.1f} s)")
    stage.narrator.kept(f"three commands that took {alone:.1f} s in all were done within {together:.1f} s")


async def thinking_is_interrupted(stage: Stage) -> None:
    """A message ends the inference that runs."""
    story = await stage.say("Tell me a long story.")
    await stage.until("a few words of the story", lambda: len(stage.said) > 60)
    second = await stage.say("Much shorter, please!")
    await stage.ended(second.id)
    first = stage.rows[story.id]
    must(first.metadata.get("reason") == Reason.INTERRUPTED, f"the first turn is interrupted, not {first.status}")
    kept = [row for row in stage.of_turn(story.id, Type.TEXT) if row.metadata.get("partial")]
    must(bool(kept) and "he found that" not in kept[0].content, "what had been said by then is kept")
    must(stage.rows[second.id].status is Status.PROCESSED, "the second message is answered")
    stage.narrator.kept(f"the story was cut off after {len(kept[0].content.split())} words, and those are kept")


async def tools_are_not(stage: Stage) -> None:
    """A stop waits for the tool that runs."""
    asked = await stage.say("Build everything.")
    await stage.until(
        "the start of the build",
        lambda: any(row.id in stage.started for row in stage.of_turn(asked.id, Type.TOOL_CALL)),
    )
    stage.narrator.heard("you", "/stop")
    stop = await stage.gateway.stop(asked.session_id)
    must(isinstance(stop, Stop), "there is something to stop")
    ended = await stage.ended(asked.id)
    results = stage.of_turn(asked.id, Type.TOOL_RESULT)
    must(ended.metadata.get("reason") == Reason.STOPPED, f"the turn is stopped, not {ended.status}")
    must(
        len(results) == 1 and results[0].metadata["outcome"] == Outcome.OK and "finished" in results[0].content,
        "the build that had begun comes to its own end",
    )
    stage.narrator.kept("the build came to its own end; then the turn was over, without another word of the model")


async def killed(config: Path, folder: Path, session_id: str, narrator: Narrator) -> None:
    """Another process of this program works on the session and is killed while its tool runs."""
    narrator.heard("you", _PAYMENT)
    command = [sys.executable, "-P", "-m", "kesoku_actors", "chat", "-c", str(config), "-r", session_id, _PAYMENT]
    errors = config.with_name("other-process.log")
    log = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        child = await trio.lowlevel.open_process(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_environment()
        )
    finally:
        os.close(log)
    try:
        with trio.move_on_after(PATIENCE_S):
            while child.poll() is None and not _paid(folder):  # noqa: ASYNC110  a file rings no bell
                await trio.sleep(_LOOK_S)
        must(child.poll() is None and _paid(folder), f"another process begins the payment; it left {errors}")
        narrator.heard("tool", "$ echo paid 100 >> ledger.txt; sleep 60")
    finally:
        if child.poll() is None:
            os.kill(child.pid, signal.SIGKILL)
        with trio.CancelScope(shield=True):
            await child.wait()
    narrator.trouble(f"kill -9 {child.pid}: the process that worked on this is dead, in the middle of the payment")


async def goes_on(stage: Stage, folder: Path) -> None:
    """The next life takes the turn up, and repeats nothing."""
    await stage.until("the payment's turn", lambda: any(row.content == _PAYMENT for row in stage.rows.values()))
    asked = next(row for row in stage.rows.values() if row.content == _PAYMENT)
    ended = await stage.ended(asked.id)
    must(ended.status is Status.PROCESSED, f"the turn is answered after all, not {ended.status}")
    results = stage.of_turn(asked.id, Type.TOOL_RESULT)
    must(results[0].metadata["outcome"] == Outcome.UNKNOWN, "the model is told that the end of its command is unknown")
    must((folder / "ledger.txt").read_text() == "paid 100\n", "the payment is made exactly once")
    stage.narrator.kept("the turn went on from its stored steps, and ledger.txt has exactly one payment")


def must(condition: bool, promise: str) -> None:
    """Raise `DemoFailed` unless the condition holds."""
    if not condition:
        raise DemoFailed(f"this was promised and did not happen: {promise}")


def _environment() -> dict[str, str]:
    """Return an environment in which a child finds this very program, and no file of the current folder instead."""
    roots = (str(Path(kesoku_actors.__file__).parents[1]), os.environ.get("PYTHONPATH", ""))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, roots))}


def _paid(folder: Path) -> bool:
    return (folder / "ledger.txt").exists() and (folder / "ledger.txt").read_text() != ""


FIRST_LIFE: Final = (
    Scene(
        title="Tools run in parallel",
        words="The model may ask for several tools in one breath. They run at the same time, each a supervised child, "
        "and their results are committed together, in the order of the calls.",
        play=at_once,
    ),
    Scene(
        title="Thought is interruptible",
        words="A message that comes while the model thinks does not wait: the connection to the model is closed at "
        "once, what was said so far is kept, and the new message is what the model reads next.",
        play=thinking_is_interrupted,
    ),
    Scene(
        title="Tools are atomic",
        words="A tool that has started is never killed by a message or a stop. It ends, its result is stored, and only "
        "then is the turn over.",
        play=tools_are_not,
    ),
)
KILL_TITLE: Final = "kill -9, and on"
KILL_WORDS: Final = (
    "Now another process of this program takes over the session and starts a payment. In the middle of it, it is "
    "killed without warning. The next one finds the turn, tells the model what nobody can know, and goes on."
)
