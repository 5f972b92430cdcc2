"""Verdicts: what fails is told, what holds says how much was run, and a budget that ended is never a pass."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve
from hypothesis import strategies as st

from kesoku_actors.harness import Hold, Inconclusive, Limits, Outcome, ProgramFails, explore, shared
from kesoku_actors.harness.allow import Allow
from kesoku_actors.harness.control import Program, execute
from kesoku_actors.harness.control.footprints import footprints
from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.exploration import exploration_of
from kesoku_actors.harness.exploring import replayed
from kesoku_actors.harness.front import Overrides, overridden, verdict_on
from kesoku_actors.harness.hold import Base, Form
from kesoku_actors.harness.hold import Hold as HoldEvent
from kesoku_actors.harness.lanes import Ready
from kesoku_actors.harness.named import strategy_named
from kesoku_actors.harness.origin import load
from kesoku_actors.harness.report import text
from kesoku_actors.harness.schedule import BadToken
from kesoku_actors.harness.search import Plan, search
from kesoku_actors.harness.steps import stepped
from kesoku_actors.harness.strategy import RunInfo
from kesoku_actors.harness.token import Token, token_of
from kesoku_actors.harness.world import World

from ..contracts.source import ROOT
from . import shops
from .programs import BUGS, pause


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_found_and_its_twin_holds_with_a_certificate(bug: str) -> None:
    found = explore(BUGS[bug](), runs=400)
    assert found.outcome is Outcome.FAILS
    assert found.exit_code == 1
    assert found.counterexample is not None
    assert len(found.counterexample.form) <= 3
    assert found.counterexample.token.startswith("ka1.")
    holds = explore(BUGS[bug](fixed=True), runs=40, certify=Hold(1))
    assert (holds.outcome, holds.exit_code) == (Outcome.HOLDS, 0)
    [certificate] = holds.certificates
    assert certificate.bound == 1
    assert certificate.schedules > 40 < holds.schedules
    assert 1 < holds.classes <= holds.schedules


def test_equal_seeds_explore_alike() -> None:
    with footprints() as watch:
        plans = [Plan(runs=20, strategy="random", seed=seed) for seed in (1, 1, 2)]
        seen = [search(BUGS["lost_update"](fixed=True), plan, watch).classes for plan in plans]
    assert seen[0] == seen[1] != seen[2]


def test_a_budget_that_ended_first_is_no_pass() -> None:
    verdict = explore(BUGS["lost_update"](fixed=True), runs=100_000, seconds=0.05)
    assert (verdict.outcome, verdict.exit_code) == (Outcome.INCONCLUSIVE, 4)
    assert "the time was over" in verdict.reason
    assert verdict.certificates == ()


def test_a_program_that_does_not_end_is_no_pass() -> None:
    turns = [0]

    async def goes_on() -> None:
        while True:
            turns[0] += 1
            await pause()

    verdict = explore(goes_on, runs=5, limits=Limits(steps=200))
    assert verdict.outcome is not Outcome.HOLDS


async def swallows_its_end() -> None:
    with suppress(BaseException):
        while True:
            await trio.sleep(1)
            trio.current_time()


async def swallows_a_deadlock() -> None:
    with suppress(BaseException):
        await trio.Event().wait()


async def fails_because_it_is_ended() -> None:
    done = 0
    try:
        while done < 100_000:
            await trio.lowlevel.checkpoint()
            done += 1
    finally:
        assert done == 100_000


@pytest.mark.parametrize(
    ("main", "outcome"),
    [
        (swallows_its_end, Outcome.INCONCLUSIVE),
        (swallows_a_deadlock, Outcome.FAILS),
        (fails_because_it_is_ended, Outcome.INCONCLUSIVE),
    ],
)
def test_a_run_that_was_ended_is_judged_by_that_whatever_the_program_makes_of_it(
    main: Program, outcome: Outcome
) -> None:
    verdict = explore(main, runs=6, limits=Limits(steps=300))
    assert verdict.outcome is outcome
    assert verdict.counterexample is None or verdict.counterexample.failure == "Deadlock"


async def wrong_when_large(number: int = st.integers(0, 5)) -> None:  # type: ignore[assignment]  # drawn
    await pause()
    assert number < 3


async def right_for_all(number: int = st.integers(0, 500)) -> None:  # type: ignore[assignment]  # drawn
    for _ in range(200):
        await pause()


def test_what_holds_for_some_of_the_inputs_is_no_certificate() -> None:
    fails = explore(wrong_when_large, runs=50, certify=Hold(1))
    assert (fails.outcome, fails.certificates) == (Outcome.FAILS, ())
    unknown = explore(right_for_all, runs=400, certify=Hold(1), seconds=0.2)
    assert (unknown.outcome, unknown.certificates) == (Outcome.INCONCLUSIVE, ())


async def right_for_both(flag: bool = st.booleans()) -> None:  # type: ignore[assignment]  # drawn
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pause)
        nursery.start_soon(pause)
    assert flag in (False, True)


def test_a_certificate_of_drawn_inputs_says_of_how_many() -> None:
    verdict = explore(right_for_both, runs=50, certify=Hold(1))
    [certificate] = verdict.certificates
    assert certificate.inputs == 2
    assert str(verdict).endswith("such schedules were run for the 2 inputs drawn")


def test_a_certificate_says_whether_time_was_let_pass() -> None:
    [with_ticks] = explore(right_for_both, runs=4, certify=Hold(1)).certificates
    [without] = explore(right_for_both, runs=4, certify=Hold(1), may_tick=False).certificates
    assert (with_ticks.ticks, without.ticks) == (True, False)
    assert "hold (until nothing else can run), tick or fault: all" in str(with_ticks)
    assert "hold (until nothing else can run) or fault, and no tick: all" in str(without)


async def right_for_one(number: int = st.just(7)) -> None:  # type: ignore[assignment]  # drawn
    await right_for_both(number == 7)


@pytest.mark.parametrize(("program", "runs"), [(right_for_one, 50), (right_for_both, 51), (right_for_all, 7)])
def test_the_runs_are_divided_among_the_inputs_there_are(program: Program, runs: int) -> None:
    verdict = explore(program, runs=runs, strategy="random", examples=5)
    assert (verdict.outcome, verdict.schedules) == (Outcome.HOLDS, runs)


def test_no_inputs_are_nothing_to_explore() -> None:
    with pytest.raises(HarnessError, match="1 or more, not 0"):
        explore(right_for_both, examples=0)


def test_what_is_left_over_from_other_runs_is_told_as_such() -> None:
    shops._LEFT_OVER.clear()
    verdict = verdict_on(exploration_of(shops.leaks))
    assert (verdict.outcome, verdict.exit_code) == (Outcome.NONDETERMINISM, 2)
    assert verdict.counterexample is None


def test_a_failure_is_seen_again_in_a_fresh_process_before_it_is_told() -> None:
    verdict = verdict_on(exploration_of(shops.sold_twice))
    assert verdict.counterexample is not None
    assert verdict.counterexample.is_confirmed


def test_a_decorated_test_raises_the_report_or_returns() -> None:
    with pytest.raises(ProgramFails, match=r"FAILS shops\.py:sold_twice: AssertionError: sold twice") as raised:
        shops.sold_twice()
    assert raised.value.verdict.outcome is Outcome.FAILS
    shops.sold_once()
    shops.through_anyio()
    with overridden(Overrides(runs=10_000, seconds=0.01)), pytest.raises(Inconclusive, match="the time was over"):
        shops.sold_once()


def test_inputs_shrink_together_with_the_schedule() -> None:
    with pytest.raises(ProgramFails) as raised:
        shops.sums()
    found = raised.value.verdict.counterexample
    assert found is not None
    assert found.inputs == {"amounts": [1, 1]}
    assert found.is_confirmed
    assert replayed(exploration_of(shops.sums), found.token).outcome is Outcome.FAILS


async def looks_at_the_clock_and_fails() -> None:
    await pause()
    if time.time() > 0:
        raise ValueError


def test_a_fresh_process_allows_what_was_allowed_here() -> None:
    found = explore(looks_at_the_clock_and_fails, runs=5, allow=Allow(clock=True)).counterexample
    assert found is not None
    assert found.is_confirmed


class FullWorld(World):
    is_full = True


async def fails_in_a_full_world(world: FullWorld) -> None:
    await pause()
    if world.is_full:
        raise ValueError


def test_a_world_that_a_fresh_process_does_not_know_is_no_nondeterminism() -> None:
    verdict = explore(fails_in_a_full_world, runs=5, world=FullWorld)
    assert verdict.outcome is Outcome.FAILS
    assert verdict.counterexample is not None
    assert not verdict.counterexample.is_confirmed


RUNS = [0]


async def fails_once(number: int = st.integers(0, 5)) -> None:  # type: ignore[assignment]  # drawn
    RUNS[0] += 1
    await pause()
    if RUNS[0] == 7:
        raise ValueError(number)


NUMBERS: Any = st.lists(st.integers(), min_size=2)


async def eats_its_input(numbers: list[int] = NUMBERS) -> None:
    await pause()
    numbers.pop()
    if not numbers:
        raise ValueError("another run has eaten of it")


def test_each_run_has_its_own_copy_of_what_is_drawn() -> None:
    assert explore(eats_its_input, runs=50).outcome is Outcome.HOLDS


def test_with_drawn_inputs_too_what_is_left_over_from_other_runs_is_told() -> None:
    assert explore(fails_once, runs=50).outcome is Outcome.NONDETERMINISM


async def counts_until_it_is_ended() -> None:
    number = 0
    while True:
        await pause()
        number += 1


async def waits_for_a_file() -> None:
    await trio.lowlevel.wait_readable(0)


@pytest.mark.parametrize("main", [counts_until_it_is_ended, waits_for_a_file])
def test_a_token_of_what_is_cut_off_or_reaches_out_is_no_failure_either(main: Program) -> None:
    exploration = exploration_of(main, plan=Plan(limits=Limits(steps=200)))
    token = str(Token(fingerprint=exploration.fingerprint, play=Form(), inputs={}))
    verdict = replayed(exploration, token)
    assert (verdict.outcome, bool(verdict.reason)) == (Outcome.INCONCLUSIVE, True)
    steps = stepped(exploration, token)
    assert (steps.outcome, steps.paragraphs[-1].startswith("nothing is known: ")) == (Outcome.INCONCLUSIVE, True)


@pytest.mark.parametrize("certify", [-1, Hold(1, Base.FIFO), Hold(1, shard=(0, 2))])
def test_a_certificate_is_of_every_schedule_or_of_none(certify: Any) -> None:
    with pytest.raises(HarnessError, match="over both orders"):
        explore(shops.sold_once, certify=certify)


CALLED = [0]


async def takes_a_step_more_each_time() -> None:
    CALLED[0] += 1
    for _ in range(CALLED[0]):
        await pause()


async def shares_something_the_first_time() -> None:
    CALLED[0] += 1
    called = CALLED[0]

    async def use(name: str) -> None:
        shared(name if called > 1 else "the same")
        await pause()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(use, "a")
        nursery.start_soon(use, "b")


@pytest.mark.parametrize("program", [takes_a_step_more_each_time, shares_something_the_first_time])
def test_a_program_without_choices_that_becomes_another_one_is_told(program: Program) -> None:
    CALLED[0] = 0
    verdict = explore(program, runs=10, may_tick=False)
    assert (verdict.outcome, "more" in verdict.reason) == (Outcome.NONDETERMINISM, True), verdict


@pytest.mark.parametrize("name", ["strict", "shuffle", "random", "pct"])
def test_the_rate_of_a_failure_is_that_of_a_search_with_the_strategy(name: str) -> None:
    exploration = exploration_of(shops.sold_twice)
    plan = evolve(exploration.plan, seed=3, runs=30, certify=0)
    whole = verdict_on(evolve(exploration, plan=evolve(plan, strategy="portfolio"))).counterexample
    assert whole is not None
    [rate] = [one for one in whole.rates if one.strategy.lower().startswith(name)]
    found = verdict_on(evolve(exploration, plan=evolve(plan, strategy=name))).counterexample
    first = 31 if found is None else found.found_after
    assert (rate.failures > 0) == (first <= rate.runs) or rate.runs > 30


def test_a_report_says_why_nothing_was_seen_in_a_fresh_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "once.py").write_text(
        "import os, trio\n\nasync def test_fails():\n    await trio.lowlevel.checkpoint()\n"
        "    assert False, 'always'\n\nassert 'ONCE' not in os.environ, 'only once'\nos.environ['ONCE'] = '1'\n"
    )
    monkeypatch.delenv("ONCE", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    found = explore(load(str(tmp_path / "once.py")).test_fails, runs=5).counterexample
    monkeypatch.delenv("ONCE")
    assert found is not None
    assert "it ended there before it had answered" in found.unconfirmed
    assert "only once" in found.unconfirmed
    assert "only once" in " ".join(text(found).split())


def test_what_is_printed_at_the_exit_of_a_fresh_process_is_not_its_answer(tmp_path: Path) -> None:
    (tmp_path / "prints.py").write_text(
        "import atexit, sys, trio\n\nif sys.argv[0] == '-c':\n    atexit.register(print, 'good bye')\n"
        "\nasync def test_fails():\n    await trio.lowlevel.checkpoint()\n    assert False, 'always'\n"
    )
    found = explore(load(str(tmp_path / "prints.py")).test_fails, runs=5).counterexample
    assert found is not None
    assert found.is_confirmed


def test_a_token_replays_and_one_of_another_source_says_so() -> None:
    exploration = exploration_of(shops.sold_twice)
    found = verdict_on(exploration).counterexample
    assert found is not None
    again = replayed(exploration, found.token)
    assert again.outcome is Outcome.FAILS
    assert again.counterexample is not None
    assert (again.counterexample.failure, again.reason) == (found.failure, "")
    _, _, rest = found.token.split(".", 2)
    stale = replayed(exploration, f"ka1.0000000000.{rest}")
    assert stale.outcome is Outcome.FAILS
    assert "the source was changed" in stale.reason
    for damaged in ("ka1.x", "ka1.a.h.AAAA", f"{found.token[:-4]}", "ka2.a.h.b", "ka1.a.q.b"):
        with pytest.raises(BadToken):
            token_of(damaged)


def test_inputs_that_are_no_literals_stay_out_of_a_token() -> None:
    form = Form(base=Base.STAY, events=(HoldEvent("main/a#2", 3),))
    assert token_of(str(Token(fingerprint="f", play=form, inputs={"a": [1, "x"]}))).inputs == {"a": [1, "x"]}
    assert token_of(str(Token(fingerprint="f", play=form, inputs=None))).inputs is None
    assert token_of(str(Token(fingerprint="f", play=form, inputs={}))).play == form


def test_a_strategy_of_ones_own_is_two_methods() -> None:
    class Newest:
        def begin(self, run: RunInfo) -> None:
            self.number = run.number

        def choose(self, ready: Ready, *, may_tick: bool, step: int) -> int:
            return len(ready) - 1

    assert explore(BUGS["late_result"](fixed=True), runs=3, strategy=Newest).schedules == 3


@pytest.mark.parametrize("name", ["portfolio", "strict", "shuffle", "random", "pct", "pct5", "pos", "surw", "hold2"])
def test_every_named_strategy_explores(name: str) -> None:
    assert explore(BUGS["lost_update"](fixed=True), runs=10, strategy=name).outcome is Outcome.HOLDS


def test_shares_of_an_exhaustive_search_are_the_whole_of_it() -> None:
    def played(shard: tuple[int, int]) -> set[object]:
        walk, seen = Hold(1, shard=shard), set()
        while not walk.is_exhausted:
            walk.begin(RunInfo(number=0, rng=None, length=9))  # type: ignore[arg-type]
            execute(BUGS["late_result"](fixed=True), walk)
            assert walk.form not in seen
            seen.add(walk.form)
        return seen

    whole, shares = played((0, 1)), [played((at, 3)) for at in range(3)]
    assert set().union(*shares) == whole
    for one in shares:
        assert len(one) < len(whole)
    plain = {Form(base=base) for base in Base}
    assert set.intersection(*shares) == plain


def test_unknown_strategies_are_refused() -> None:
    with pytest.raises(Exception, match="there is no strategy 'clever'"):
        strategy_named("clever")


def test_the_decorator_gives_a_world_and_fixtures() -> None:
    worlds: list[object] = []

    def world() -> object:
        worlds.append(object())
        return worlds[-1]

    @explore(runs=5, world=world)
    async def test(world: object, fixture: int, *, kept: int = 7) -> None:
        assert world is worlds[-1]
        assert (fixture, kept) == (3, 7)
        await trio.lowlevel.checkpoint()

    test(fixture=3)
    assert len(worlds) >= 5


def test_the_plugin_has_one_line_that_replays(tmp_path) -> None:  # type: ignore[no-untyped-def]
    tests = tmp_path / "test_it.py"
    tests.write_text(
        "import trio\nfrom kesoku_actors.harness import explore\n\n"
        "@explore(runs=50)\nasync def test_fails(number):\n    await trio.sleep(0)\n"
        "    assert number == 4, 'not four'\n"
        "\n@explore(runs=50)\nasync def test_holds():\n    await trio.sleep(0)\n"
        "\nimport pytest\n\n@pytest.fixture\ndef number():\n    return 3\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "kesoku_actors.harness.pytest_plugin", "test_it.py"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    [line] = [line for line in done.stdout.splitlines() if line.startswith("pytest test_it.py::test_fails")]
    token = line.split()[-1]
    for option, said in ((f"--harness-replay={token}", "not four"), ("--harness-runs=3", "not four")):
        again = subprocess.run([*command, option], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert said in again.stdout


def test_a_bare_assertion_fails_under_pytest_as_in_a_fresh_process(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "test_it.py").write_text(
        "import trio\nfrom hypothesis import strategies as st\nfrom kesoku_actors.harness import explore\n\n"
        "@explore(runs=50)\nasync def test_plain():\n    await trio.sleep(0)\n    x = 1\n"
        "    assert (\n        x\n        == 2\n    )\n\n"
        "@explore(runs=50)\nasync def test_drawn(x=st.integers(0, 9)):\n    await trio.sleep(0)\n    assert x < 3\n"
    )
    plugin = ["-p", "kesoku_actors.harness.pytest_plugin", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *plugin, "test_it.py"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "2 failed" in done.stdout, done.stdout
    assert "FAILS test_it.py:test_plain: AssertionError at test_it.py:9" in done.stdout
    assert "FAILS test_it.py:test_drawn: AssertionError at test_it.py:17" in done.stdout


def test_faults_are_found_named_and_missed_when_they_never_happen() -> None:
    @explore(runs=300)
    async def test(world: World) -> None:
        await pause()
        assert not world.fault("cut"), "a cut"

    with pytest.raises(ProgramFails, match="let the fault `cut` happen the 1st time it may"):
        test()

    @explore(runs=5)
    async def never(world: World) -> None:
        await pause()
        world.fault("cut", rate=0)

    with pytest.raises(Inconclusive, match="the fault `cut` never happened"):
        never()


def test_what_reaches_out_is_no_verdict_unless_it_is_allowed() -> None:
    async def main() -> None:
        time.monotonic()
        await pause()

    verdict = explore(main, runs=5)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "test_verdicts.py" in verdict.reason
    assert explore(main, runs=5, allow=Allow(clock=True)).outcome is Outcome.HOLDS
