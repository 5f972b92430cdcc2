"""Hold form: any run can be written in it, and shrinks to few events that a person can read."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import trio

from kesoku_actors.harness import hold
from kesoku_actors.harness.control import Run, execute
from kesoku_actors.harness.failures import failure_of
from kesoku_actors.harness.hold import Base, Event, Form, Holding, form_of
from kesoku_actors.harness.reduce import reduce
from kesoku_actors.harness.replay import Replay
from kesoku_actors.harness.strategies import PCT, POS, SURW, Random, Shuffle, Strict
from kesoku_actors.harness.strategy import RunInfo

from .programs import BUGS, Program

STRATEGIES = {"strict": Strict, "shuffle": Shuffle, "random": Random, "pct": PCT, "pos": POS, "surw": SURW}


def info(number: int = 0) -> RunInfo:
    return RunInfo(number=number, rng=random.Random(number), length=100)


def played(program: Program, form: Form) -> tuple[Run, Holding]:
    holding = Holding(form)
    holding.begin(info())
    return execute(program, holding, trace=True), holding


def recorded(program: Program, name: str, number: int) -> Run:
    strategy = STRATEGIES[name]()
    strategy.begin(info(number))
    schedule = execute(program, strategy).schedule
    replay = Replay(schedule)
    replay.begin(info())
    return execute(program, replay, trace=True)


def order(run: Run) -> list[object]:
    return [step.lane and (step.lane.label, step.lane_step) for step in run.trace]


@pytest.mark.parametrize("base", Base)
@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("bug", BUGS)
def test_any_run_is_played_exactly_by_its_form(bug: str, name: str, base: Base) -> None:
    program = BUGS[bug]()
    for number in range(10):
        run = recorded(program, name, number)
        again, _ = played(program, form_of(run.trace, base))
        assert order(again) == order(run)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("bug", BUGS)
def test_a_failing_run_of_any_strategy_shrinks_to_an_event_that_none_can_be_taken_from(bug: str, name: str) -> None:
    program = BUGS[bug]()
    failing = [run for number in range(60) if (run := recorded(program, name, number)).error is not None][:3]
    for run in failing:
        assert run.error is not None
        wanted = failure_of(run.error)

        def fails(form: Form, wanted: str = wanted) -> frozenset[Event] | None:
            result, holding = played(program, form)
            is_it = result.error is not None and failure_of(result.error) == wanted
            return frozenset(holding.fired) if is_it else None

        small = reduce(run.trace, fails)
        assert small is not None
        assert small.is_minimal
        assert fails(small.form) is not None
        assert len(small.form) <= 1
        assert "run_sync_soon" not in str(small.form)
        for at in range(len(small.form)):
            rest = Form(base=small.form.base, events=small.form.events[:at] + small.form.events[at + 1 :])
            assert fails(rest) is None


@pytest.mark.parametrize("base", Base)
def test_a_form_of_the_program_alone_names_nothing_that_the_loop_does_for_itself(base: Base) -> None:
    exact, of_program = set(), set()
    for number in range(20):
        run = recorded(BUGS["late_result"](), "surw", number)
        exact |= {str(event) for event in form_of(run.trace, base).events}
        of_program |= {str(event) for event in form_of(run.trace, base, of_program=True).events}
    assert any("run_sync_soon" in said for said in exact)
    assert of_program
    assert not any("run_sync_soon" in said or "<init>" in said for said in of_program)


def test_a_form_reads_as_what_to_do() -> None:
    program = BUGS["late_result"]()
    run = next(run for number in range(60) if (run := recorded(program, "random", number)).error is not None)

    def fails(form: Form) -> frozenset[Event] | None:
        result, holding = played(program, form)
        return frozenset(holding.fired) if result.error is not None else None

    small = reduce(run.trace, fails)
    assert small is not None
    [event] = small.form.events
    assert str(event).startswith("let time pass when `main/")


def crowd(tasks: int) -> Program:
    """Return a program of so many tasks that can all run at once."""

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(tasks):
                nursery.start_soon(trio.lowlevel.checkpoint)

    return main


def calls_in_a_step(act: Callable[[], Run]) -> float:
    """Return how many functions of hold form are called in each step."""
    calls = 0

    def count(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename == hold.__file__

    sys.setprofile(count)
    try:
        run = act()
    finally:
        sys.setprofile(None)
    return calls / run.steps


@pytest.mark.parametrize("base", Base)
def test_a_step_of_a_thousand_held_tasks_costs_no_more_than_one_of_a_few(base: Base) -> None:
    costs = []
    for tasks in (60, 900):
        program = crowd(tasks)
        form = form_of(recorded(program, "random", 3).trace, base)
        assert len(form) > tasks / 2
        costs.append(calls_in_a_step(lambda program=program, form=form: played(program, form)[0]))  # type: ignore[misc]  # defaults bind them
    few, many = costs
    assert many < 2 * few
