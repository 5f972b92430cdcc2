"""Goal 36: what a command of the shell tool costs beside a bare process of trio; the sandbox beside it, not judged.

The floor gives the same command to the same shell and reads what it prints. Ours is the tool: the command is parsed and
judged, its process marked, limited and announced, and whatever it left is looked for. Judged by processor time, of us
and the command's processes: wall time is shown, and on a busy machine tells of the others.
Run `scripts/python -m scripts.bench.shell`.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final

import trio

from kesoku_actors.tools import ToolContext
from kesoku_actors.tools.shell import NoSandbox, Sandbox, ShellOptions, ShellPolicy, find_sandbox, shell_tool
from scripts.bench.folders import folder
from scripts.bench.report import Row, row, show

GOAL: Final = 36
ROUNDS: Final = 7
TIMES: Final = 25
COMMAND: Final = "ls -la | sort > /dev/null && echo done"
BLOCKED: Final = (r"(\b|^)(rm|sudo|shutdown|reboot|mkfs|dd|chmod|chown)(\b|\s|$)",)
LIMITS: Final = {"a command": 1.5, "in the sandbox": 6.0}
"""Of the sandbox it is no promise: bubblewrap makes namespaces and mounts for every command."""

Once = Callable[[], Awaitable[object]]


def tool(workspace: Path, sandbox: Sandbox | None) -> Once:
    """Return our way to run the command."""
    options = ShellOptions(
        policy=ShellPolicy(blocklist_patterns=BLOCKED), environment={"PATH": os.environ["PATH"]}, sandbox=sandbox
    )
    run = shell_tool(options)
    context = ToolContext(session_id="s", call_id="bench", workspace=workspace)
    return lambda: run(command=COMMAND, context=context)


def bare(workspace: Path) -> Once:
    """Return the floor."""
    return partial(
        trio.run_process,
        ["/bin/sh", "-c", COMMAND],
        cwd=workspace,
        capture_stdout=True,
        env={"PATH": os.environ["PATH"]},
    )


async def cost(once: Once) -> tuple[float, float]:
    """Return what it takes in processor time, ours and the commands', and in wall time; in seconds."""
    await once()
    before, began = _processor_s(), perf_counter()
    for _ in range(TIMES):
        await once()
    return _processor_s() - before, perf_counter() - began


def _processor_s() -> float:
    ours, theirs = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return ours.ru_utime + ours.ru_stime + theirs.ru_utime + theirs.ru_stime


async def measure(ways: Sequence[tuple[str, Callable[[Path], Once]]]) -> Mapping[str, list[tuple[float, float]]]:
    """Return the costs of each way, round by round."""
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name, _ in ways}
    with folder() as path:
        runs = [(name, way(path)) for name, way in ways]
        for _ in range(ROUNDS):
            for name, once in runs:
                costs[name].append(await cost(once))
    return costs


def rows() -> list[Row]:
    """Measure and return the rows; those of the sandbox only where this machine has one."""
    found = find_sandbox(network=False, hidden=(), search_path=os.environ["PATH"])
    ways: list[tuple[str, Callable[[Path], Once]]] = [("bare", bare), ("a command", partial(tool, sandbox=None))]
    if not isinstance(found, NoSandbox):
        ways.append(("in the sandbox", partial(tool, sandbox=found)))
    costs = trio.run(measure, ways)
    shown = []
    for name, _ in ways[1:]:
        for at, unit in enumerate(("processor time", "wall")):
            ours, floor = [each[at] for each in costs[name]], [each[at] for each in costs["bare"]]
            is_judged = name == "a command" and unit == "processor time"
            title = f"{name} / bare process, {unit}"
            shown.append(row(GOAL, title, limit=LIMITS[name], ours=ours, floor=floor, judged=is_judged))
    return shown


if __name__ == "__main__":
    sys.exit(0 if show(rows()) else 1)
