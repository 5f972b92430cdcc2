"""Goals 34 and 35: what the trace of a long session costs, and what the turn log costs the event loop.

The session has 2,000 inferences in 40 turns, each with a thought, a text and a call, and its turn log as it is kept by
default. Its trace is written by the command, in a process of its own. For the log, a task of a loop looks how late it
is woken while requests of 5,000 messages are written. The goals are absolute: the floor holds the limit itself.
Run `scripts/python -m scripts.bench.trace`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

import trio

from kesoku_actors.actors import run_system
from kesoku_actors.actors.spec import SupervisorSpec
from kesoku_actors.llm.port import Limits, Reply, Request
from kesoku_actors.llm.scripted import Call, Inference, Say, Scenario, ScriptedModel, Spend, Think
from kesoku_actors.log import Logger
from kesoku_actors.protocol import Usage
from kesoku_actors.store import Durability
from kesoku_actors.turnlog import Notes, TurnLog, TurnLogOptions
from scripts.bench.children import ROOT, run_child
from scripts.bench.daemon import TEXT, Forgetful, channel, running
from scripts.bench.folders import folder
from scripts.bench.report import Row, row, show

ROUNDS: Final = 3
TURNS: Final = 40
STEPS: Final = 50
MESSAGES: Final = 5_000
LOGGED: Final = 20
MOST_S: Final = 2.0
MOST_MIB: Final = 150.0
MOST_LAG_S: Final = 0.005
"""Beyond the lag of the idle loop: the interpreter's own switch between two threads that both want to run."""
IDLE_S: Final = 2.0


def rows() -> list[Row]:
    """Measure goals 34 and 35; takes about a minute."""
    times, sizes = [], []
    with folder() as path:
        run_child("-m", "scripts.bench.trace", str(path))  # apart: a child of ours would begin with all our memory
        (path / "config.toml").write_text(
            f'[workspace]\ndb_path = "{path}/kesoku.db"\nsessions_dir = "{path}/sessions"\n'
        )
        for _ in range(ROUNDS):
            taken_s, mib = _trace(path)
            times.append(taken_s)
            sizes.append(mib)
    idle, lags = zip(*(trio.run(_lag) for _ in range(ROUNDS)), strict=True)
    return [
        row(34, "trace of 2,000 inferences / 2 s", limit=1.0, ours=times, floor=[MOST_S] * ROUNDS),
        row(34, "its memory / 150 MB", limit=1.0, ours=sizes, floor=[MOST_MIB] * ROUNDS),
        row(
            35,
            "lag beside a log of 5,000 messages / 5 ms",
            limit=1.0,
            ours=lags,
            floor=[own + MOST_LAG_S for own in idle],
        ),
    ]


async def _talk(path: Path) -> None:
    words, spent = TEXT.replace(" ", "_"), Spend(input=1000, output=100)
    steps: list[Inference] = [
        (Think(thought=words), Say(text=words), Call(name="look", arguments={"number": number}), spent)
        for number in range(STEPS - 1)
    ]
    scenario = Scenario(inferences=(*steps, (Say(text=words), spent)), repeat=True)
    model = ScriptedModel(scenario, limits=Limits(concurrency=8))
    model.requests = Forgetful()
    async with running(path, Durability.NORMAL, model=model, turn_log=TurnLogOptions(mask=str)) as daemon:
        await daemon.turns([channel("long")] * TURNS)


def _trace(path: Path) -> tuple[float, float]:
    """Return the processor time of the command, seconds, and its largest memory, MB."""
    command = (
        sys.executable,
        "-m",
        "kesoku_actors",
        "trace",
        "-c",
        f"{path}/config.toml",
        "last",
        "-o",
        f"{path}/t.html",
    )
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"the trace ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


async def _lag() -> tuple[float, float]:
    """Return how late a task is woken, the 99th percentile, seconds: in a loop that idles, and while the log writes."""
    body = {"model": "m", "messages": [{"role": "user", "content": f"{number}\n{TEXT}"} for number in range(MESSAGES)]}
    lags: list[float] = []

    async def look() -> None:
        while True:
            due = trio.current_time() + 0.001
            await trio.sleep_until(due)
            lags.append(trio.current_time() - due)

    with folder() as path:
        turn_log = TurnLog(
            options=TurnLogOptions(mask=str, keep=2),
            workspace_for=lambda _session: path,
            count_steps=_none_known,
            log=Logger(sink=lambda _entry: None, wall=trio.current_time),
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
            await trio.sleep(IDLE_S)
            idle = quantiles(lags, n=100)[98]
            lags.clear()
            async with run_system(SupervisorSpec(id="root", children=(turn_log.spec(),))):
                for number in range(LOGGED):
                    turn_log.record(_inference(body, number))
                while turn_log.statistics().written < LOGGED:  # noqa: ASYNC110  it tells nobody when it has written
                    await trio.sleep(0.05)
            nursery.cancel_scope.cancel()
    return idle, quantiles(lags, n=100)[98]


async def _none_known(_session_id: str, _without: str) -> int:
    await trio.lowlevel.checkpoint()
    return 0


def _inference(body: dict[str, Any], number: int) -> Any:
    notes = Notes(root_id="r", attempt=1, provider="bench", model="m", began=0.0, spent=lambda: 1.0)
    notes.sent(lambda: body)
    request = Request(inference_id=str(number), session_id="bench", system="", history=())
    return notes.ended(request, Reply(provider="bench", model="m", text="Done.", usage=Usage()))


def main() -> int:
    """Print the rows; 0 when every goal is reached. With the name of a folder: make the session there."""
    if len(sys.argv) > 1:
        trio.run(_talk, Path(sys.argv[1]))
        return 0
    return 0 if show(rows()) else 1


if __name__ == "__main__":
    sys.exit(main())
