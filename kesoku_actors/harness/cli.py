"""Exploring from a command line: programs of a file or a module, each to its verdict, told to people or to machines.

Exit codes: 0 holds, 1 a counterexample, 2 the program is not deterministic, 3 an unsupported trio, 4 inconclusive; of
several programs the gravest counts. What is no use of this command at all is a `HarnessError` that is raised.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from time import process_time
from typing import Any, Final, TextIO

from attrs import define, evolve, frozen

from kesoku_actors.harness.control import check_trio
from kesoku_actors.harness.errors import Divergence, HarnessError, UnsupportedTrio
from kesoku_actors.harness.exploration import Exploration, exploration_of
from kesoku_actors.harness.front import Overrides, overridden, verdict_on
from kesoku_actors.harness.jobs import explored_by_many
from kesoku_actors.harness.origin import NO_METHODS, load, methods_in, programs_in
from kesoku_actors.harness.report import data_of, mermaid, page, text
from kesoku_actors.harness.report.ink import COLOURED, PLAIN
from kesoku_actors.harness.search import Plan, Searched
from kesoku_actors.harness.steps import stepped
from kesoku_actors.harness.token_file import pasteable, whole_token
from kesoku_actors.harness.verdict import EXIT_CODES, Outcome, Verdict

UNSUPPORTED_TRIO: Final = 3
_GRAVEST_FIRST: Final = (Outcome.FAILS, Outcome.NONDETERMINISM, Outcome.INCONCLUSIVE, Outcome.HOLDS)
_LINE_EVERY_S: Final = 0.2


@frozen(kw_only=True)
class Wanted:
    """What the command line asks for; none: what the test says, or the default."""

    target: str
    """`FILE_OR_MODULE[:TEST]`."""
    runs: int | None = None
    seconds: float | None = None
    jobs: int = 1
    strategy: str | None = None
    certify: int | None = None
    seed: int | None = None
    replay: str | None = None
    """A token, or the file that one stands in."""
    step: bool = False
    html: Path | None = None
    mermaid: bool = False
    json: bool = False
    shard: tuple[int, int] = (0, 1)
    resume: Path | None = None
    patience_s: float = 60.0
    """CPU time after which a program is given up of which nobody said how much to explore: its runs may take seconds
    each."""


def check(wanted: Wanted, out: TextIO, err: TextIO) -> int:
    """Explore what is wanted, tell what came of it, and return the exit code. Raises `HarnessError`."""
    try:
        check_trio()
    except UnsupportedTrio as error:
        err.write(f"{error}\n")
        return UNSUPPORTED_TRIO
    if wanted.replay is not None:
        wanted = evolve(wanted, replay=whole_token(wanted.replay))
    target, _, only = _split(wanted.target)
    module = load(target)
    programs = {name: _exploration(one, wanted) for name, one in programs_in(module, only or None).items()}
    if not only and (methods := methods_in(module)):
        err.write(f"not explored: {', '.join(methods)}: {NO_METHODS}\n")
    if wanted.html is not None and not wanted.html.parent.is_dir():
        raise HarnessError(f"there is no folder {wanted.html.parent} for the page")
    if len(programs) > 1 and (wanted.replay or wanted.html or wanted.resume):
        raise HarnessError(f"say which program: {', '.join(f'{target}:{name}' for name in programs)}")
    outcomes = [_one(exploration, wanted, out, err) for exploration in programs.values()]
    return EXIT_CODES[min(outcomes, key=_GRAVEST_FIRST.index)]


def parse_shard(said: str) -> tuple[int, int]:
    """Return `(0, 4)` for `1/4`. Raises `HarnessError`."""
    share, _, shares = said.partition("/")
    if not (share.isdecimal() and shares.isdecimal() and 1 <= int(share) <= int(shares)):
        raise HarnessError(f"a shard is i/n, as 1/4 to 4/4, not {said!r}")
    return int(share) - 1, int(shares)


def _split(target: str) -> tuple[str, str, str]:
    if Path(target).is_file():
        return target, "", ""
    return target.rpartition(":") if ":" in target and not Path(target).exists() else (target, "", "")


def _exploration(function: Callable[..., Any], wanted: Wanted) -> Exploration:
    exploration = exploration_of(function)
    changes: dict[str, Any] = {
        "runs": wanted.runs,
        "seconds": wanted.seconds,
        "strategy": wanted.strategy,
        "certify": wanted.certify,
        "seed": wanted.seed,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    plan = evolve(exploration.plan, shard=wanted.shard, **given)
    exploration = evolve(exploration, plan=evolve(plan, seconds=_seconds(plan, wanted)))
    needed = [one.name for one in exploration.open_arguments if one.default is one.empty]
    if needed and wanted.replay is None:
        raise HarnessError(
            f"{exploration.name} needs {', '.join(needed)}: pytest gives it fixtures, this command cannot"
        )
    return exploration


def _seconds(plan: Plan, wanted: Wanted) -> float | None:
    """Return the time that a plan has; where nobody said how much is to be explored, it is bounded."""
    is_said = wanted.runs or plan.runs != Plan().runs or plan.certify or wanted.resume
    return plan.seconds if is_said or plan.seconds is not None else wanted.patience_s


def _one(exploration: Exploration, wanted: Wanted, out: TextIO, err: TextIO) -> Outcome:
    if wanted.step:
        return _step(exploration, wanted, out)
    line = _Line(exploration.name, err)  # what the program prints is printed by each of thousands of runs: not shown
    with overridden(Overrides(replay=wanted.replay)), open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        if wanted.jobs > 1 and wanted.replay is None:
            verdict = explored_by_many(exploration, wanted.jobs, on_run=line, resume=wanted.resume)
        else:
            verdict = verdict_on(exploration, on_run=line, resume=wanted.resume)
    line.clear()
    _tell(exploration, verdict, wanted, out)
    return verdict.outcome


def _tell(exploration: Exploration, verdict: Verdict, wanted: Wanted, out: TextIO) -> None:
    found = verdict.counterexample
    if wanted.html is not None and found is not None:
        try:
            wanted.html.write_text(page(found), encoding="utf-8")
        except OSError as error:
            out.write(f"{wanted.html} cannot be written: {error.strerror}\n")
    if wanted.json:
        out.write(f"{json.dumps(data_of(exploration.name, verdict))}\n")
        return
    if found is not None and wanted.mermaid:
        out.write(f"{mermaid(found)}\n")
        return
    if found is not None:
        found = evolve(found, token=pasteable(found.token, Path()))
        told = text(found, COLOURED if out.isatty() else PLAIN, again=_again(exploration, wanted))
        out.write(f"{told}\n\n")
    out.write(f"{exploration.name} {verdict}\n")
    if verdict.outcome is Outcome.INCONCLUSIVE and wanted.seconds is None and _is_over(exploration.plan, verdict):
        out.write(
            f"  it had {exploration.plan.seconds:g} s of CPU time; --seconds gives it more, --runs sets no time\n"
        )


def _again(exploration: Exploration, wanted: Wanted) -> str:
    """Return the command that plays a token of this program."""
    target, _, only = _split(wanted.target)
    name = only or (exploration.origin.name if exploration.origin is not None else "")
    return f"kesoku-actors check {shlex.quote(f'{target}:{name}')} --replay"


def _is_over(plan: Plan, verdict: Verdict) -> bool:
    return plan.seconds is not None and verdict.seconds >= plan.seconds


def _step(exploration: Exploration, wanted: Wanted, out: TextIO) -> Outcome:
    """Show a run step by step; on a terminal, one with each Enter."""
    if wanted.replay is None:
        raise HarnessError("--step shows the run of a token: give one with --replay")
    try:
        run = stepped(exploration, wanted.replay)
    except Divergence as error:
        out.write(f"the token does not fit: {error}\n")
        return Outcome.NONDETERMINISM
    waits = out.isatty() and sys.stdin is not None and sys.stdin.isatty()
    for paragraph in run.paragraphs:
        out.write(f"{paragraph}\n")
        out.flush()
        if waits and not sys.stdin.readline():
            break
    return run.outcome


@define
class _Line:
    """The line that tells the progress, on a terminal alone."""

    name: str
    err: TextIO
    told_s: float = -1.0

    def __call__(self, so_far: Searched) -> None:
        now = process_time() if so_far.seconds == 0 else so_far.seconds
        if not self.err.isatty() or now - self.told_s < _LINE_EVERY_S:
            return
        self.told_s = now
        rate = so_far.schedules / so_far.seconds if so_far.seconds else 0.0
        failures = int(so_far.found is not None)
        self.err.write(
            f"\r\x1b[K{self.name}: {so_far.schedules:,} schedules, {rate:,.0f}/s, "
            f"{len(so_far.classes):,} distinct classes, {failures} failures"
        )
        self.err.flush()

    def clear(self) -> None:
        if self.err.isatty():
            self.err.write("\r\x1b[K")
            self.err.flush()
