"""Goal 31: a program whose outcome no schedule can change has the outcome under control that it has under plain trio.

    scripts/python -m scripts.bench.agreement [--programs N] [--seed N]

Each number is a program, made of parts that race with nobody: state of one task alone, channels with one sender and one
receiver, events that are set once, sums behind a lock, deadlines far from what they guard, cancellation of what would
wait for ever. It is run by plain trio, with a clock that jumps, and under strategies of the harness. Exits with 1 when
an outcome differs, and names the number and the strategy.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final

import trio
from trio.testing import MockClock

from kesoku_actors.harness.control import execute
from kesoku_actors.harness.control.footprints import footprints
from kesoku_actors.harness.named import strategy_named
from kesoku_actors.harness.strategy import RunInfo
from scripts.bench.report import Row

Part = Callable[[random.Random, int], Awaitable[object]]
"""Takes its own randomness and how deep it stands; returns its outcome, a value that can be compared."""
STRATEGIES: Final = ("strict", "shuffle", "random", "pct3", "pos", "surw", "hold1")
_EACH: Final = 2
"""So many of the strategies run each program; which, by turns."""
_DEEPEST: Final = 2
_LATER_S: Final = 1_000
"""Beside what may pass early, the difference between two deadlines is nothing or this much."""


async def pauses(rng: random.Random) -> None:
    """Let others run a few times."""
    for _ in range(rng.randrange(4)):
        await trio.lowlevel.checkpoint()


async def counts(rng: random.Random, _depth: int) -> object:
    """Work on state of one's own."""
    total = 0
    for _ in range(rng.randrange(1, 6)):
        total = total * 3 + rng.randrange(10)
        await pauses(rng)
    return total


async def hands_on(rng: random.Random, _depth: int) -> object:
    """A chain of tasks with a channel between each and the next."""
    items, stages = rng.randrange(6), rng.randrange(1, 4)
    links = [trio.open_memory_channel[int](rng.randrange(3)) for _ in range(stages + 1)]
    rngs = [random.Random(rng.random()) for _ in range(stages + 1)]

    async def stage(place: int) -> None:
        async with links[place][1], links[place + 1][0]:
            async for item in links[place][1]:
                await pauses(rngs[place])
                await links[place + 1][0].send(2 * item + place)

    async with trio.open_nursery() as nursery:
        for place in range(stages):
            nursery.start_soon(stage, place)
        nursery.start_soon(_feeds, links[0][0], items, rngs[-1])
        return [item async for item in links[-1][1]]


async def _feeds(channel: trio.MemorySendChannel[int], items: int, rng: random.Random) -> None:
    async with channel:
        for item in range(items):
            await channel.send(item)
            await pauses(rng)


async def awaits_events(rng: random.Random, _depth: int) -> object:
    """Tasks that wait for each other's events, without a circle."""
    count = rng.randrange(2, 6)
    events, seen = [trio.Event() for _ in range(count)], [0] * count
    before = [[one for one in range(number) if rng.random() < 0.5] for number in range(count)]
    rngs = [random.Random(rng.random()) for _ in range(count)]

    async def one(number: int) -> None:
        for other in before[number]:
            await events[other].wait()
        await pauses(rngs[number])
        seen[number] = 1 + sum(seen[other] for other in before[number])
        events[number].set()

    async with trio.open_nursery() as nursery:
        for number in rng.sample(range(count), count):
            nursery.start_soon(one, number)
    return seen


async def adds_up(rng: random.Random, _depth: int) -> object:
    """A sum behind a lock, a semaphore or a limiter: the order of the summands does not matter."""
    locks: Sequence[Callable[[], Any]] = (
        trio.Lock,
        trio.StrictFIFOLock,
        lambda: trio.Semaphore(1),
        lambda: trio.CapacityLimiter(1),
        trio.Condition,
    )
    lock, total = rng.choice(locks)(), 0
    rngs = [random.Random(rng.random()) for _ in range(rng.randrange(1, 5))]

    async def add(mine: random.Random) -> None:
        nonlocal total
        async with lock:
            seen, amount = total, mine.randrange(100)
            await pauses(mine)
            total = seen + amount

    async with trio.open_nursery() as nursery:
        for mine in rngs:
            nursery.start_soon(add, mine)
    return total


async def runs_out_of_time(rng: random.Random, _depth: int) -> object:
    """Deadlines that come long before or long after what they guard, and both count the time."""
    outcome: list[object] = []
    for _ in range(rng.randrange(1, 4)):
        limit, needed = rng.sample(range(1, 9), 2)
        with trio.move_on_after(limit * _LATER_S) as scope:
            await trio.sleep(needed * _LATER_S)
        outcome.append((limit, needed, scope.cancelled_caught))
        try:
            with trio.fail_after(limit * _LATER_S):
                await (pauses(rng) if needed > limit else trio.Event().wait())
        except trio.TooSlowError:
            outcome.append("too slow")
    return outcome


async def cancels(rng: random.Random, _depth: int) -> object:
    """Tasks that would wait for ever are cancelled when they all wait; each cleans up, behind a shield or not."""
    ends: list[str] = []
    rngs = [random.Random(rng.random()) for _ in range(rng.randrange(1, 4))]

    async def waits(number: int, task_status: trio.TaskStatus[int]) -> None:
        task_status.started(number)
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=rngs[number].random() < 0.5) as scope:
                await pauses(rngs[number])
            ends.append(f"{number} {scope.shield}")

    async with trio.open_nursery() as nursery:
        begun = [await nursery.start(waits, number) for number in range(len(rngs))]
        nursery.cancel_scope.cancel()
    return begun, sorted(ends), nursery.cancel_scope.cancelled_caught


async def fails(rng: random.Random, _depth: int) -> object:
    """One task raises, and its siblings are cancelled where they wait."""
    ended: list[int] = []
    siblings, wrong = rng.randrange(4), rng.choice((ValueError, KeyError, trio.BrokenResourceError))

    async def waits(number: int) -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(number)

    async def raises() -> None:
        await trio.testing.wait_all_tasks_blocked()
        raise wrong("it")

    try:
        async with trio.open_nursery() as nursery:
            for number in range(siblings):
                nursery.start_soon(waits, number)
            nursery.start_soon(raises)
    except ExceptionGroup as group:
        return [type(one).__name__ for one in group.exceptions], sorted(ended)
    return "nothing was raised"


async def divides(rng: random.Random, depth: int) -> object:
    """Parts side by side, each in a task of its own."""
    if depth >= _DEEPEST:
        return await counts(rng, depth)
    count = rng.randrange(1, 4)
    outcomes: list[object] = [None] * count
    rngs = [random.Random(rng.random()) for _ in range(count)]

    async def one(number: int) -> None:
        outcomes[number] = await _a_part(rngs[number], depth + 1)

    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(one, number)
    return outcomes


async def follows(rng: random.Random, depth: int) -> object:
    """Parts one after the other."""
    return [await _a_part(random.Random(rng.random()), depth + 1) for _ in range(rng.randrange(1, 4))]


PARTS: Final[tuple[Part, ...]] = (
    *(counts, hands_on, awaits_events, adds_up, runs_out_of_time, cancels, fails),
    *(divides, follows),
)


async def _a_part(rng: random.Random, depth: int) -> object:
    part = rng.choice(PARTS if depth <= _DEEPEST else PARTS[:-2])
    return part.__name__, await part(rng, depth)


def program_of(number: int) -> Callable[[], Awaitable[object]]:
    """Return the program with this number."""

    async def main() -> object:
        return await divides(random.Random(number), 0)

    return main


def outcome_of_plain_trio(number: int) -> object:
    """Run a program without the harness."""
    return trio.run(program_of(number), clock=MockClock(autojump_threshold=0))


def outcomes_under_control(number: int) -> Iterator[tuple[str, object]]:
    """Run a program under some strategies; yield the name of each, and the outcome."""
    for turn in range(_EACH):
        name, outcome = STRATEGIES[(number * _EACH + turn) % len(STRATEGIES)], list[object]()
        program = program_of(number)

        async def main(program: Callable[[], Awaitable[object]] = program, outcome: list[object] = outcome) -> None:
            outcome.append(await program())

        strategy = strategy_named(name)
        strategy.begin(RunInfo(number=number, rng=random.Random(number), length=100))
        with footprints() as watch:
            run = execute(main, strategy, observe=watch)
        yield name, outcome[0] if run.error is None else run.error


def differences(numbers: Sequence[int]) -> Iterator[str]:
    """Yield what differs."""
    for number in numbers:
        expected = outcome_of_plain_trio(number)
        for name, outcome in outcomes_under_control(number):
            if outcome != expected:
                yield f"program {number} under {name}: {outcome!r}, and {expected!r} under plain trio"


def long_rows() -> list[Row]:
    """Compare 1,000 programs."""
    found = sum(1 for _ in differences(range(1_000)))
    return [Row(goal=31, name="other outcomes of 1,000 programs without races", ratio=found, limit=0, spread=0)]


def main() -> int:
    """Compare, print what differs, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    asked = parser.parse_args()
    found, step = 0, 200
    for done in range(0, asked.programs, step):
        numbers = range(asked.seed + done, asked.seed + min(done + step, asked.programs))
        for told in differences(numbers):
            found += 1
            print(told, flush=True)
        print(f"\r{min(done + step, asked.programs):,} programs, {found} differences", end="", file=sys.stderr)
    print(file=sys.stderr)
    print(f"{found} differences in {asked.programs:,} programs, each under {_EACH} of {len(STRATEGIES)} strategies")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
