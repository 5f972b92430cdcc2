"""What a run under control is: decided by its choices alone, in virtual time, and ended whatever the program does."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
import trio

from kesoku_actors.harness.control import Limits, Run, execute
from kesoku_actors.harness.control.livelock import LONGEST
from kesoku_actors.harness.errors import Deadlock, Divergence
from kesoku_actors.harness.failures import failure_of, leaves
from kesoku_actors.harness.lanes import Ready
from kesoku_actors.harness.replay import Replay
from kesoku_actors.harness.strategies import PCT, POS, SURW, Random, Shuffle, Strict
from kesoku_actors.harness.strategy import RunInfo, Strategy

from .programs import BUGS, Program, pause

STRATEGIES = {"strict": Strict, "shuffle": Shuffle, "random": Random, "pct": PCT, "pos": POS, "surw": SURW}


def info(number: int = 0, length: int = 100) -> RunInfo:
    return RunInfo(number=number, rng=random.Random(number), length=length)


def run(program: Program, strategy: Strategy, number: int = 0, **options: object) -> Run:
    strategy.begin(info(number))
    return execute(program, strategy, **options)  # type: ignore[arg-type]  # each test knows the options it gives


def told(result: Run) -> tuple[object, ...]:
    """All that can be seen of a run."""
    steps = [(step.lane and step.lane.label, step.lane_step, step.time, str(step.site)) for step in result.trace]
    return result.schedule, result.steps, result.error and failure_of(result.error), steps


@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_schedule_played_again_gives_the_same_run(bug: str, name: str) -> None:
    program = BUGS[bug]()
    for number in range(10):
        first = run(program, STRATEGIES[name](), number, trace=True)
        assert told(run(program, Replay(first.schedule), trace=True)) == told(first)


def test_a_schedule_is_the_same_in_every_process() -> None:
    script = (
        "from tests.harness.test_control import *\n"
        "junk = [object() for _ in range(int.from_bytes(os.urandom(2)))]\n"
        "print(hash_of_all())\n"
    )
    found = set()
    for seed in range(3):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed * 7)}
        command = [sys.executable, "-c", script]
        root = Path(__file__).parents[2]
        found.add(subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(found) == 1


def hash_of_all() -> str:
    import hashlib

    digest = hashlib.sha256()
    for make in BUGS.values():
        for strategy in STRATEGIES.values():
            for number in range(5):
                digest.update(repr(told(run(make(), strategy(), number, trace=True))).encode())
    return digest.hexdigest()


def test_a_record_of_another_program_diverges() -> None:
    schedule = run(BUGS["lost_update"](), Random()).schedule
    with pytest.raises(Divergence, match="choice"):
        run(BUGS["crossed_mailboxes"](), Replay(schedule))


def test_a_deadlock_names_who_is_blocked_and_where() -> None:
    async def main() -> None:
        async def waits_for_ever() -> None:
            await trio.Event().wait()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(waits_for_ever)

    result = run(main, Random())
    assert result.error is not None
    error = next(leaves(result.error))
    assert isinstance(error, Deadlock)
    assert any("waits_for_ever at test_control.py:" in blocked for blocked in error.blocked)


async def waits_behind_a_shield() -> None:
    with trio.CancelScope(shield=True):
        await trio.Event().wait()


async def has_a_child_behind_a_shield() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waits_behind_a_shield)


@pytest.mark.parametrize("main", [waits_behind_a_shield, has_a_child_behind_a_shield])
def test_a_shielded_deadlock_ends_the_run_too(main: Program) -> None:
    result = run(main, Random())
    assert result.error is not None
    assert failure_of(result.error) == "Deadlock"


async def never_ends() -> None:
    for _number in count():
        await pause()


async def never_ends_and_hears_no_error() -> None:
    for _number in count():
        with suppress(Exception):
            await pause()


async def has_children_that_never_end() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(never_ends)
        nursery.start_soon(never_ends_and_hears_no_error)


@pytest.mark.parametrize("main", [never_ends, never_ends_and_hears_no_error, has_children_that_never_end])
def test_an_endless_program_ends_at_its_step_limit(main: Program) -> None:
    result = run(main, Random(), limits=Limits(steps=500))
    assert result.error is not None
    assert failure_of(result.error) == "StepLimit"
    assert 500 <= result.steps < 600 + LONGEST


def test_a_week_of_sleep_takes_no_time_and_the_clock_shows_it() -> None:
    async def main() -> float:
        await trio.sleep(7 * 86_400)
        return trio.current_time()

    assert run(main, Random()).seconds == 7 * 86_400


def test_time_may_pass_while_work_is_runnable_but_never_far() -> None:
    async def main() -> None:
        ended = trio.Event()

        async def works() -> None:
            await pause(30)
            ended.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(works)
            with trio.move_on_after(5) as near:
                await ended.wait()
            with trio.move_on_after(5_000) as far:
                await ended.wait()
        assert not far.cancelled_caught, "a far deadline passed while work was runnable"
        assert not near.cancelled_caught, "a near one did"

    seen = {failure_of(error) for number in range(60) if (error := run(main, Random(), number).error)}
    assert seen == {"AssertionError: a near one did"}


def test_the_harness_leaves_trio_as_it_was() -> None:
    async def real() -> bool:
        assert await trio.to_thread.run_sync(lambda: "from a thread") == "from a thread"
        with trio.move_on_after(0.01) as scope:
            await trio.sleep(60)
        return scope.cancelled_caught

    run(BUGS["lost_update"](), Random())
    assert trio.run(real)


def test_what_a_strategy_raises_comes_out_after_the_program_is_unwound() -> None:
    ended = []

    async def main() -> None:
        try:
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(pause, 5)
        finally:
            ended.append(1)

    class GivesUp:
        def begin(self, run: RunInfo) -> None:
            pass

        def choose(self, ready: Ready, *, may_tick: bool, step: int) -> int:
            if step > 8:
                raise KeyError("no more")
            return 0

    with pytest.raises(KeyError, match="no more"):
        run(main, GivesUp())
    assert ended == [1]
