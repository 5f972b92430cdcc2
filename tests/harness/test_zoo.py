"""The zoo: every bug is there to be found, every twin is sound, and no two are the same one."""

from __future__ import annotations

import ast
import inspect
import sys
from collections import Counter
from collections.abc import Callable
from difflib import SequenceMatcher
from itertools import combinations
from textwrap import dedent
from types import FunctionType

import pytest
import trio
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from kesoku_actors.harness.control import Run, execute
from kesoku_actors.harness.hold import Form, Hold, Holding
from kesoku_actors.harness.lanes import Ready
from kesoku_actors.harness.named import strategy_named
from kesoku_actors.harness.strategies import PCT, Random
from kesoku_actors.harness.strategy import RunInfo, Strategy
from kesoku_actors.harness.systematic import HoldBound
from kesoku_actors.harness.zoo import (
    BUGS,
    HEADER,
    Bug,
    Cause,
    Difficulty,
    acting,
    alarms,
    blocking,
    cancelling,
    endings,
    hard,
    lifetimes,
    line,
    ordering,
    played,
    ports,
    reduced,
    scored,
    table,
    wilson,
)
from kesoku_actors.harness.zoo.bug import MARK

ACTORS = [bug for bug in BUGS if not bug.is_port]
PROGRAMS = (acting, blocking, cancelling, endings, hard, lifetimes, ordering, ports)
SHARED = {Cause.SHARED_ORDER, Cause.SHARED_UPDATE, Cause.LOCK_ORDER}
FEW_EVENTS = 3

HELD = {
    "registrar_clears_late": [Hold("main/registrar", 1)],
    "compaction_under_old_lease": [Hold("main/writer", 3), Hold("main/compactor", 21)],
    "everybody_asks": [Hold("main/actor", 3), Hold("main/actor#2", 21)],
    "both_interrupted": [Hold("main/worker", 3), Hold("main/worker#2", 23)],
    "both_waiters_in_the_gap": [Hold("main/worker", 5), Hold("main/worker#2", 29)],
    "message_in_the_last_gap": [Hold("main/door", 3), Hold("main/closer", 25)],
    "both_viewers_in_the_gap": [Hold("main/viewer", 3), Hold("main/viewer#2", 3)],
    "both_copies_torn": [Hold("main/writer", 3), Hold("main/writer#2", 23)],
    "promised_refill": [Hold("main/steward", 1)],
    "philosophers_31": [],
}
"""What to hold so that a hard bug shows; to find them is for `kesoku-actors check --zoo`, and takes longer."""


CROWDED = {"registrar_clears_late", "promised_refill", "philosophers_31"}
"""Programs of which every single hold takes long: all of them is for the campaign."""


def ids(bug: Bug) -> str:
    return bug.name


def portfolio() -> Strategy:
    return strategy_named("portfolio")


def first_failure(bug: Bug, *, runs: int) -> Run:
    """Return the run that shows a bug: held where the table above says so, else the first that fails."""
    if bug.name not in HELD:
        return next(run for run in played(bug, portfolio, seed=0, runs=runs) if run.error is not None)
    holding = Holding(Form(events=tuple(HELD[bug.name])))
    holding.begin(RunInfo(number=0, rng=None, length=0))  # type: ignore[arg-type]  # holds draw nothing
    return execute(bug.program(), holding)


def test_the_table_holds_what_it_promises() -> None:
    causes = Counter(bug.cause for bug in ACTORS)
    hard_ones = [bug for bug in BUGS if bug.difficulty is Difficulty.HARD]
    assert len(ACTORS) >= 40
    assert len(BUGS) - len(ACTORS) >= 12
    assert len(causes) >= 10
    assert max(Counter(bug.cause for bug in BUGS).values()) <= 6
    assert len(hard_ones) >= 10
    assert not SHARED & set(causes)
    assert len({bug.name for bug in BUGS}) == len(BUGS)


def test_every_program_stands_in_the_table() -> None:
    written = {
        made
        for module in PROGRAMS
        for made in vars(module).values()
        if isinstance(made, FunctionType) and made.__module__ == module.__name__ and "fixed" in signature(made)
    }
    assert written == {bug.make for bug in table.BUGS}


def signature(function: FunctionType) -> set[str]:
    return set(inspect.signature(function).parameters)


def functions_of(bug: Bug) -> dict[str, ast.AsyncFunctionDef]:
    tree = ast.parse(dedent(inspect.getsource(bug.make)))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)}


@pytest.mark.parametrize("bug", BUGS, ids=ids)
def test_a_row_says_who_races_and_where(bug: Bug) -> None:
    run = next(played(bug, Random, seed=0, runs=1))
    ran = {lane.label.rpartition("/")[2].partition("#")[0] for lane in run.lanes}
    wanted = set(bug.races)
    assert len(bug.races) > 1
    assert wanted <= ran
    assert bug.lines
    assert 30 < len(bug.story) < 240
    assert bug.story.endswith(".")
    assert inspect.getsource(bug.make).count(MARK) == len(bug.lines)


def footprint(bug: Bug) -> frozenset[tuple[int, str]]:
    """Return what each task that races does, by its place in the table and not by its name."""
    functions = functions_of(bug)
    return frozenset(
        (place, operation)
        for place, name in enumerate(dict.fromkeys(bug.races))
        if name in functions
        for operation in operations(functions[name])
    )


def operations(function: ast.AsyncFunctionDef) -> set[str]:
    """Return the operations of a task, with the kind of what they are on: no names of the program's own."""
    found: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Attribute(attr=attribute)):
                found.add(f".{attribute}()")
            case ast.Attribute(attr=attribute):
                found.add(f".{attribute}")
            case ast.Subscript(ctx=context):
                found.add(f"[] {type(context).__name__}")
            case ast.AugAssign(op=operator) | ast.BinOp(op=operator):
                found.add(f"{type(node).__name__} {type(operator).__name__}")
            case ast.Compare(ops=[operator]):
                found.add(type(operator).__name__)
            case ast.For() | ast.AsyncFor() | ast.While() | ast.With() | ast.AsyncWith() | ast.Try() | ast.Assert():
                found.add(type(node).__name__)
            case ast.Raise() | ast.Return() | ast.If() | ast.Delete():
                found.add(type(node).__name__)
    return found


def test_footprints_are_pairwise_different() -> None:
    seen: dict[frozenset[tuple[int, str]], list[str]] = {}
    for bug in BUGS:
        seen.setdefault(footprint(bug), []).append(bug.name)
    assert [names for names in seen.values() if len(names) > 1] == []


def shape(bug: Bug) -> list[str]:
    """Return the source without names and texts: what is left when a copy has its variables renamed."""
    words: list[str] = []
    for node in ast.walk(ast.parse(dedent(inspect.getsource(bug.make)))):
        words.append(type(node).__name__)
        if isinstance(node, ast.Attribute):
            words.append(node.attr)
    return words


def test_no_program_is_a_copy_of_another_with_other_names() -> None:
    shapes = {bug.name: shape(bug) for bug in BUGS}
    alike = []
    for one, other in combinations(shapes, 2):
        matcher = SequenceMatcher(None, shapes[one], shapes[other], autojunk=False)
        if matcher.real_quick_ratio() > 0.95 and matcher.quick_ratio() > 0.95 and matcher.ratio() > 0.95:
            alike.append((one, other))
    assert alike == []


def test_every_bug_is_found_and_nine_in_ten_shrink_to_three_events_or_fewer(
    record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    events: dict[str, int] = {}
    for bug in BUGS:
        run = first_failure(bug, runs=300)
        assert bug.is_shown_by(run.error), bug.name
        if bug.name in HELD:
            events[bug.name] = len(HELD[bug.name])
            continue
        small = reduced(bug, run)
        assert small.is_minimal, bug.name
        events[bug.name] = len(small.form)
    short = sum(count <= FEW_EVENTS for count in events.values())
    record_property("events", events)
    with capsys.disabled():
        sys.stdout.write(f"\n{short} of {len(BUGS)} with at most {FEW_EVENTS} events\n")
    assert short >= 0.9 * len(BUGS)


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.difficulty is Difficulty.HARD], ids=ids)
@pytest.mark.parametrize("make", [Random, PCT], ids=["random", "pct3"])
def test_sampling_does_not_hit_the_hard_ones(bug: Bug, make: type[Random] | type[PCT]) -> None:
    assert scored(bug, make, seeds=1, runs=15).hits == 0


def test_hard_ones_are_long_or_wide_or_deep() -> None:
    for bug in BUGS:
        if bug.difficulty is Difficulty.HARD:
            run = first_failure(bug, runs=300)
            tasks = sum(lane.label.startswith("main") for lane in run.lanes)
            assert run.steps >= 1_000 or tasks >= 30 or len(HELD.get(bug.name, bug.races)) >= 2


@pytest.mark.parametrize("bug", BUGS, ids=ids)
def test_a_twin_survives_every_single_hold_and_some_samples(bug: Bug) -> None:
    count, found = alarms(bug, HoldBound, seed=0, runs=60 if bug.name in CROWDED else 2_000)
    assert count > 2
    assert found == []
    for make in (Random, PCT):
        assert alarms(bug, make, seed=1, runs=15) == (15, [])


@pytest.mark.parametrize("bug", BUGS, ids=ids)
def test_a_twin_runs_on_plain_trio(bug: Bug) -> None:
    trio.run(bug.program(fixed=True), clock=MockClock(autojump_threshold=0))


@define(eq=False)
class Last:
    """A new strategy, in two methods: whoever became runnable last."""

    begun: list[int] = field(factory=list)

    def begin(self, run: RunInfo) -> None:
        self.begun.append(run.number)

    def choose(self, ready: Ready, *, may_tick: bool, step: int) -> int:
        return len(ready) - 1


def test_a_new_strategy_is_scored_like_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    [bug] = [bug for bug in BUGS if bug.name == "one_signal_two_items"]
    score = scored(bug, Last, seeds=2, runs=3)
    assert (score.runs, score.hits, score.others) == (6, 6, ())
    assert [first.runs for first in score.firsts] == [1, 1]
    assert score.is_found
    assert score.rate == 1.0
    sys.stdout.write(f"{HEADER}\n{line(score)}\n")
    header, row = capsys.readouterr().out.splitlines()
    assert header.split()[0] == "bug"
    assert row.split()[0] == bug.name
    assert "100.00 %" in row


@given(st.integers(1, 10_000).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs))))
def test_the_interval_holds_the_share_and_narrows_with_more_runs(counted: tuple[int, int]) -> None:
    hits, runs = counted
    low, high = wilson(hits, runs)
    assert 0 <= low <= hits / runs <= high <= 1
    closer = wilson(hits * 4, runs * 4)
    assert closer[1] - closer[0] < high - low


def test_nothing_is_known_of_no_runs() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
