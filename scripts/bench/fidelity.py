"""Goal 30: a schedule is the same run in every process, whatever the hash seed and wherever its objects lie in memory.

    scripts/python -m scripts.bench.fidelity [--replays N] [--schedules N] [--jobs J] [--seed N]

Programs of the zoo, with and without their bugs, are run under every strategy that samples. Each schedule is played
again in fresh processes, each of which has a hash seed of its own and a heap in disorder. A replay diverges when
a decision has another number of ways, or when anything differs that is seen of the run: who took each step, from which
line and when, and how it ended. Exits with 1 when one does.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from typing import Any, Final

from attrs import asdict, frozen

from kesoku_actors.harness.control import Run, execute
from kesoku_actors.harness.errors import Divergence
from kesoku_actors.harness.failures import failure_of
from kesoku_actors.harness.named import strategy_named
from kesoku_actors.harness.replay import Replay
from kesoku_actors.harness.schedule import Choice, Schedule
from kesoku_actors.harness.strategy import RunInfo, Strategy
from kesoku_actors.harness.zoo import BUGS, Difficulty
from scripts.bench.children import ROOT
from scripts.bench.report import Row
from scripts.counts import count

STRATEGIES: Final = ("strict", "shuffle", "random", "pct2", "pct3", "pct5", "pos", "surw")
SCHEDULES: Final = 1_000
_PROGRAMS: Final = {bug.name: bug for bug in BUGS if bug.difficulty is not Difficulty.HARD}
_JUNK: Final = 5_000


@frozen(kw_only=True)
class Recorded:
    """A run as it was made in the process that recorded it."""

    bug: str
    fixed: bool
    choices: tuple[int, ...]
    digest: str

    def play(self, strategy: Strategy, number: int = 0) -> Run:
        """Run the program."""
        strategy.begin(RunInfo(number=number, rng=random.Random(f"{self.bug}:{number}"), length=100))
        return execute(_PROGRAMS[self.bug].program(fixed=self.fixed), strategy, trace=True)


def digest_of(run: Run) -> str:
    """Return a digest of everything that is seen of a run."""
    digest = blake2b(digest_size=12)
    for step in run.trace:
        who = step.lane.label if step.lane is not None else "time"
        ready = [lane.label for lane in step.ready]
        digest.update(repr((who, step.lane_step, step.time, str(step.site), ready)).encode())
    digest.update(repr((run.choices, run.steps, run.seconds, run.error and failure_of(run.error))).encode())
    return digest.hexdigest()


def recorded(count: int, seed: int) -> Iterator[Recorded]:
    """Yield so many runs: each program by turns, under each strategy by turns."""
    names = [(name, fixed) for name in _PROGRAMS for fixed in (False, True)]
    strategies = [strategy_named(name) for name in STRATEGIES]
    for number in range(count):
        name, fixed = names[number % len(names)]
        blank = Recorded(bug=name, fixed=fixed, choices=(), digest="")
        run = blank.play(strategies[number // len(names) % len(strategies)], seed * count + number)
        yield Recorded(bug=name, fixed=fixed, choices=run.choices, digest=digest_of(run))


def divergence_of(record: Recorded) -> str | None:
    """Play a record here; return what is not as it was."""
    schedule = Schedule(tuple(map(Choice, record.choices[::2], record.choices[1::2])))
    try:
        run = record.play(Replay(schedule))
    except Divergence as error:
        return f"{record.bug}: {error}"
    return None if digest_of(run) == record.digest else f"{record.bug}: the same choices were another run"


def diverged_elsewhere(records: Sequence[Recorded], hash_seed: int) -> list[str]:
    """Play the records in a fresh process with this hash seed; return what diverged there."""
    done = subprocess.run(
        [sys.executable, "-m", "scripts.bench.fidelity", "--as-child"],
        input=json.dumps([asdict(record) for record in records]),
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    said: list[str] = json.loads(done.stdout)
    return said


def divergences(replays: int, schedules: int = SCHEDULES, *, seed: int = 0, jobs: int = 1) -> Iterator[list[str]]:
    """Yield what diverged in each of as many processes as are needed for so many replays."""
    records = list(recorded(min(schedules, replays), seed))
    hash_seeds = random.Random(seed).sample(range(1, 2**32), -(-replays // len(records)))
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda hash_seed: diverged_elsewhere(records, hash_seed), hash_seeds)


def long_rows() -> list[Row]:
    """Play 10,000 replays."""
    found = sum(map(len, divergences(10_000)))
    return [Row(goal=30, name="divergences in 10,000 replays", ratio=found, limit=0, spread=0)]


def _as_child() -> None:
    """Play what stands on the standard input, in a heap in disorder."""
    rng = random.Random(os.environ.get("PYTHONHASHSEED"))
    junk: list[Any] = [object() for _ in range(rng.randrange(_JUNK))]
    rng.shuffle(junk)
    del junk[: len(junk) // 2]
    records = [Recorded(**{**one, "choices": tuple(one["choices"])}) for one in json.load(sys.stdin)]
    json.dump([told for record in records if (told := divergence_of(record)) is not None], sys.stdout)


def main() -> int:
    """Replay, print what diverged, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replays", type=count, default=100_000)
    parser.add_argument("--schedules", type=count, default=SCHEDULES, help="how many are replayed in each process")
    parser.add_argument("--jobs", type=count, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--as-child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.as_child:
        _as_child()
        return 0
    each, done, found = min(asked.schedules, asked.replays), 0, 0
    for told in divergences(asked.replays, asked.schedules, seed=asked.seed, jobs=asked.jobs):
        done, found = done + each, found + len(told)
        for one in sorted(set(told)):
            print(f"diverged: {one}")
        print(f"\r\x1b[K{done:,} replays, {found} divergences", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"{found} divergences in {done:,} replays of {each:,} schedules, in {done // each:,} fresh processes")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
