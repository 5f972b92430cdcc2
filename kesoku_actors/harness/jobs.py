"""Many processes at one exploration: each runs a share of its own, and the first failure ends them all."""

from __future__ import annotations

import json
import selectors
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from attrs import define, evolve, field

from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.exploration import Exploration
from kesoku_actors.harness.exploring import replayed, verdict_of
from kesoku_actors.harness.faults import Tally
from kesoku_actors.harness.fresh import fresh_python
from kesoku_actors.harness.search import Searched, Watcher, together
from kesoku_actors.harness.verdict import Outcome, Verdict


@define(eq=False)
class _Share:
    """One process, and what it said last."""

    process: subprocess.Popen[str]
    errors: IO[str]
    """What it writes on its standard error: a file, as a pipe that nobody reads is full one day, and it would wait."""
    seen: Searched = field(factory=Searched)
    end: dict[str, Any] | None = None

    def hear(self, line: str) -> None:
        said = json.loads(line)
        if "outcome" in said:
            self.end = said
            return
        self.seen.schedules, self.seen.steps, self.seen.seconds = said["schedules"], said["steps"], said["seconds"]
        self.seen.classes.update(said["classes"])
        self.seen.faults = Tally(Counter(said["asked"]), Counter(said["fired"]))


def explored_by_many(
    exploration: Exploration, jobs: int, *, on_run: Watcher | None = None, resume: Path | None = None
) -> Verdict:
    """Explore in so many processes. Raises `HarnessError` for a program that they cannot find by name."""
    origin = exploration.origin
    plan = exploration.plan
    if origin is None:
        raise HarnessError(f"{exploration.name} cannot be found by name in another process: explore it with one job")
    share, shares = plan.shard
    strategy = {"strategy": plan.strategy} if isinstance(plan.strategy, str) else {}  # else its decorator says which
    request = {
        "file": origin.file,
        "name": origin.name,
        "module": origin.module,
        "plan": {"runs": plan.runs, "seconds": plan.seconds, "seed": plan.seed, "certify": plan.certify}
        | {"may_tick": plan.may_tick, "is_part": True, **strategy},
    }
    with ExitStack() as stack:
        all_ = []
        for number in range(jobs):
            mine = share + shares * number, shares * jobs
            kept = None if resume is None else f"{resume}.{mine[0]}-of-{mine[1]}"
            errors = stack.enter_context(tempfile.TemporaryFile("w+", errors="replace"))
            process = stack.enter_context(_process({**request, "shard": mine, "resume": kept}, errors))
            all_.append(_Share(process, errors))
        _listen(all_, on_run)
        return _together(exploration, all_)


@contextmanager
def _process(request: dict[str, Any], errors: IO[str]) -> Iterator[subprocess.Popen[str]]:
    command, environment = fresh_python("kesoku_actors.harness.share")
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=errors, text=True) as process:
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(request))
            process.stdin.close()
            yield process
        finally:
            process.kill()


def _listen(shares: list[_Share], on_run: Watcher | None) -> None:
    """Hear what the processes say until all have ended, or one has found a failure."""
    with selectors.DefaultSelector() as selector:
        for share in shares:
            assert share.process.stdout is not None
            selector.register(share.process.stdout, selectors.EVENT_READ, share)
        while selector.get_map():
            for key, _ in selector.select():
                line = key.fileobj.readline()  # type: ignore[union-attr]  # a text file, as it was registered
                if not line:
                    selector.unregister(key.fileobj)
                    continue
                key.data.hear(line)
                if on_run is not None:
                    on_run(_sum(shares))
                if key.data.end is not None and key.data.end["outcome"] in ("fails", "nondeterminism"):
                    return


def _sum(shares: list[_Share]) -> Searched:
    total = together(*(share.seen for share in shares))
    total.seconds = max(share.seen.seconds for share in shares)
    return total


def _together(exploration: Exploration, shares: list[_Share]) -> Verdict:
    total, ends = _sum(shares), [share.end for share in shares]
    for end in ends:
        if end is not None and end["outcome"] == "fails":
            shown = replayed(exploration, end["token"])
            if shown.outcome is Outcome.HOLDS:
                reason = f"a schedule that fails in a process of its own, twice, passes in this one: {end['token']}"
                return verdict_of(total, Outcome.NONDETERMINISM, reason=reason)
            found = shown.counterexample
            if found is not None:
                found = evolve(found, found_by=end["found_by"], found_after=total.schedules)
            return evolve(verdict_of(total, shown.outcome, found), reason=shown.reason)
        if end is not None and end["outcome"] == "nondeterminism":
            return verdict_of(total, Outcome.NONDETERMINISM, reason=end["reason"])
    for share in shares:
        if share.end is None:
            share.process.wait()
            share.errors.seek(0)
            said = share.errors.read().strip().rpartition("\n")[2]
            raise HarnessError(f"a process that explored {exploration.name} ended early: {said}")
    reasons = [end["reason"] for end in ends if end is not None and end["outcome"] == "inconclusive"]
    if reasons:
        return verdict_of(total, Outcome.INCONCLUSIVE, reason=reasons[0])
    if exploration.plan.certify:
        count, inputs = (sum(end[what] for end in ends if end is not None) for what in ("certified", "inputs"))
        total.certificate = exploration.plan.certificate(schedules=count, inputs=inputs)
    return verdict_of(total, None)
