"""What the properties run is the program itself: its tree, its modules, and at its seams alone something else."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import pytest

import kesoku_actors
from kesoku_actors.actors import ChildSpec, DynamicSpec, SupervisorSpec
from kesoku_actors.harness import Strict
from kesoku_actors.harness.control import execute
from kesoku_actors.harness.strategy import RunInfo
from tests.properties.daemon import commands, model
from tests.properties.daemon.exploring import FILES, LIMITS
from tests.properties.daemon.lives import play
from tests.properties.daemon.script import Clear, End, Force, How, Say, Script, Stop
from tests.properties.daemon.seams import DaemonWorld

ROOT: Final = Path(kesoku_actors.__file__).parent

SCRIPT: Final = Script(
    rooms=(
        (Say(model.BOTH), Say(model.TALK, 1.0), Stop(1.0), Say(model.RISKY, 2.5), Say(model.THREAD, 6.0)),
        (Say(model.CHAIN), Stop(0.5), Force(), Say(model.HELLO, 6.0), Clear(2.5)),
        (Say(commands.CLAN), Say(commands.SERVE, 6.0), Stop(2.5), Force(), Say(commands.BEHIND)),
    ),
    ends=(End(How.KILLED, 2.2), End(How.TERMINATED, 3.0)),
)
"""Something of everything."""

REPLACED: Final = {
    "store.access:Threaded.run": "the store's executor: SteppedAccess, on the disk of the world",
    "store.access:Threaded.read": "the store's executor: SteppedAccess, on the disk of the world",
    "store.access:Inline": "the store's executor: SteppedAccess, on the disk of the world",
    "store.access:connect_plainly": "the store's connections: the VFS of the world",
    "clock:real_world": "the clock, ids and randomness of the world",
    "app.prelude:": "what a command does first: choosing a model, a log on standard error",
    "app.chat:": "the commands, in whose place people and a platform stand",
    "app.talk:": "the commands, in whose place people and a platform stand",
    "adapters.terminal": "the transport of an adapter: the platform",
    "llm.gemini": "the model: the public scripted one, and so for each of the others",
    "llm.claude": "the model",
    "llm.openai": "the model",
    "llm.local": "the model",
    "tools.shell.kernel:Machine": "the kernel under commands: the computer of the world",
}
"""Functions, `module:name` from its beginning, that do not run, and what stands for them."""

NEEDED: Final = {
    "app": ("house", "plan", "journal", "workspaces"),
    "gateway": ("broadcast", "gateway", "latches", "subscriptions"),
    "session": ("dispatcher", "worker", "hands", "inlet", "turn", "turn_boundary", "janitor", "titles"),
    "store": ("actor", "engine", "opening", "ownership", "posting", "commits", "stops", "workers", "calls", "reader"),
    "tools": ("runner", "board", "execution", "asking", "threads", "jobs", "spool"),
    "tools.shell": ("tool", "policy", "process", "process_table", "ending", "leftovers", "survivors"),
    "adapters": ("courier", "delivery"),
    "llm": ("gate", "scripted"),
    "turnlog": ("actor", "shelf"),
    "search": ("actor", "index"),
}
"""Modules that have to run, at the least."""


def started(spec: SupervisorSpec | DynamicSpec | ChildSpec, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every child of a tree and whose function it starts."""
    path = f"{path}/{spec.id}"
    match spec:
        case SupervisorSpec(children=children):
            for child in children:
                yield from started(child, path)
        case DynamicSpec():
            yield path, "kesoku_actors.actors"
        case ChildSpec(start=start):
            while isinstance(start, partial):
                start = start.func
            yield path, str(start.__module__)


def functions_that_run(trees: list[SupervisorSpec]) -> set[str]:
    """Play the script, keep the trees, and return the functions of the product that were called, as `module:name`."""
    called: set[CodeType] = set()

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            called.add(frame.f_code)

    async def program() -> None:
        truth = await play(DaemonWorld(), SCRIPT, whole=True)
        trees.extend(truth.trees)

    strategy = Strict()
    strategy.begin(RunInfo(number=0, rng=random.Random(0), length=100))
    sys.setprofile(profile)
    try:
        run = execute(program, strategy, limits=LIMITS, allow=FILES, may_tick=False)
    finally:
        sys.setprofile(None)
    if run.error is not None:
        raise run.error
    product = [code for code in called if Path(code.co_filename).is_relative_to(ROOT) and code.co_name != "<module>"]
    return {f"{_module(Path(code.co_filename))}:{code.co_qualname}" for code in product}


def _module(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_the_tree_and_the_modules_are_those_of_the_product(capsys: pytest.CaptureFixture[str]) -> None:
    trees: list[SupervisorSpec] = []
    ran = {name for name in functions_that_run(trees) if not name.startswith("harness")}
    modules = sorted({name.partition(":")[0] for name in ran})
    children = dict(started(trees[0]))
    with capsys.disabled():
        sys.stdout.write(f"\n{len(children)} children, {len(ran)} functions of {len(modules)} modules run\n")
        sys.stdout.writelines(f"  {path}: {module}\n" for path, module in children.items())
        for package, names in groupby(modules, key=lambda name: name.partition(".")[0]):
            sys.stdout.write(f"  {package}: {', '.join(name.partition('.')[2] or '.' for name in names)}\n")
        sys.stdout.writelines(f"  not {name.rstrip(':')}: {why}\n" for name, why in REPLACED.items())

    assert len(trees) == 3
    foreign = {path for path, module in children.items() if not module.startswith("kesoku_actors.")}
    assert foreign == {path for path in children if path.startswith("/root/broker/edges/")}
    assert {name for name in ran if name.startswith(tuple(REPLACED))} == set()
    needed = {f"{package}.{name}" for package, names in NEEDED.items() for name in names}
    assert needed <= set(modules)
