"""Drawn inputs: each run has its own, tokens and jobs carry those that are no literals, portfolios go round them."""

from __future__ import annotations

import json
import math
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve
from click.testing import CliRunner, Result
from hypothesis import given, reject
from hypothesis import strategies as st

from kesoku_actors.cli.check import command
from kesoku_actors.harness import Portfolio, Random, explore
from kesoku_actors.harness.choices import CannotDraw, drawn_again, why_not
from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.exploration import exploration_of
from kesoku_actors.harness.exploring import replayed
from kesoku_actors.harness.front import verdict_on
from kesoku_actors.harness.hold import Form
from kesoku_actors.harness.inputs import Draws, is_literal
from kesoku_actors.harness.rerun import inputs_of
from kesoku_actors.harness.search import KNOWN
from kesoku_actors.harness.token import Token, token_of
from kesoku_actors.harness.verdict import Outcome, Verdict
from tests.harness import carts, shops
from tests.harness.carts import CARTS, Cart

ROOT = Path(__file__).parents[2]
FILE = str(Path(carts.__file__))


def check(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


@pytest.fixture(scope="module")
def overcharged() -> Verdict:
    return verdict_on(exploration_of(carts.overcharged))


def token_in(verdict: Verdict) -> str:
    assert verdict.counterexample is not None
    return verdict.counterexample.token


def test_each_run_has_objects_of_its_own() -> None:
    assert verdict_on(exploration_of(carts.emptied)).outcome is Outcome.HOLDS


def test_objects_shrink_and_are_told_as_they_were_before_any_run(overcharged: Verdict) -> None:
    assert overcharged.counterexample is not None
    [[one, other]] = overcharged.counterexample.inputs.values()
    assert [one, other] == [carts.Cart("", [carts.Item(carts.Kind.BOOK, price)]) for price in (0, 1)]
    assert overcharged.counterexample.found_by != KNOWN
    assert overcharged.counterexample.is_confirmed


def test_a_token_of_objects_is_replayed_by_the_command_that_was_printed(overcharged: Verdict) -> None:
    done = check(f"{FILE}:overcharged", "--replay", token_in(overcharged), "--json")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["counterexample"]["failure"]) == (1, "AssertionError: wrong sum")
    assert overcharged.counterexample is not None
    assert told["counterexample"]["inputs"] == {
        name: repr(value) for name, value in overcharged.counterexample.inputs.items()
    }
    steps = check(f"{FILE}:overcharged", "--replay", token_in(overcharged), "--step")
    assert (steps.exit_code, "the program fails: AssertionError: wrong sum" in steps.stdout) == (1, True)


def test_two_jobs_find_what_fails_with_objects() -> None:
    done = check(f"{FILE}:overcharged", "--jobs", "2", "--json")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["outcome"], told["counterexample"]["is_confirmed"]) == (1, "fails", True)


def test_a_token_whose_strategies_were_changed_is_stale(overcharged: Verdict) -> None:
    token = token_of(token_in(overcharged))
    assert token.draws is not None
    whole = exploration_of(carts.overcharged)
    others = evolve(whole, drawn={"carts": st.lists(st.builds(carts.Cart, st.text("ab")), max_size=1)})
    verdict = replayed(others, str(token))
    assert "the strategies that draw its inputs were changed since the token was written" in verdict.reason
    assert verdict.outcome in (Outcome.HOLDS, Outcome.NONDETERMINISM)
    mapped = evolve(whole, drawn={"carts": carts.CARTS.map(lambda some: some[:1])})
    verdict = replayed(mapped, str(token))
    assert (verdict.outcome, "the strategies that draw its inputs were changed" in verdict.reason) == (
        Outcome.HOLDS,
        True,
    )
    renamed = evolve(whole, drawn={"baskets": carts.CARTS})
    assert replayed(renamed, str(evolve(token, draws=None))).outcome is Outcome.NONDETERMINISM


def test_a_token_with_drawn_inputs_is_none_of_a_program_that_draws_nothing(overcharged: Verdict) -> None:
    verdict = replayed(exploration_of(shops.sold_once), token_in(overcharged))
    assert verdict.outcome is Outcome.NONDETERMINISM
    assert "is of another program" in verdict.reason


def test_a_token_of_another_hypothesis_says_so_when_it_does_not_fit(overcharged: Verdict) -> None:
    token = token_of(token_in(overcharged))
    assert token.draws is not None
    exploration, older = exploration_of(carts.overcharged), evolve(token.draws, version="6.1")
    assert inputs_of(exploration, evolve(token, draws=older), {})[1] == ""
    _, why = inputs_of(exploration, evolve(token, draws=evolve(older, asked="other")), {})
    assert "it was written with Hypothesis 6.1" in why


def test_what_draws_while_it_runs_is_told() -> None:
    verdict = verdict_on(exploration_of(carts.asks_while_it_runs))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "draws from Hypothesis while it runs" in verdict.reason


CHOSEN = st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.integers(2**70, 2**71)


@given(st.lists(CHOSEN, max_size=9))
def test_a_token_keeps_every_choice(chosen: list[Any]) -> None:
    draws = Draws(chosen=tuple(chosen), asked="a", value="b", version="1.2")
    [again] = [token_of(str(Token(fingerprint="f", play=Form(), inputs={}, draws=draws, left_out=("x",))))]
    assert again.draws is not None
    assert [(type(one), repr(one)) for one in again.draws.chosen] == [(type(one), repr(one)) for one in chosen]
    assert (evolve(again.draws, chosen=draws.chosen), again.left_out) == (draws, ("x",))


@pytest.mark.parametrize("value", [math.nan, math.inf, carts.Kind.BOOK, frozenset(), object(), [{"a": {carts.Kind}}]])
def test_what_does_not_come_out_of_its_text_is_no_literal(value: Any) -> None:
    assert not is_literal({"x": value})


@given(st.data())
def test_the_same_choices_make_the_same_value_and_another_object(data: st.DataObject) -> None:
    assert why_not() == ""
    strategies = {"carts": carts.CARTS, "text": st.text()}
    chosen = data.draw(st.lists(st.booleans() | st.integers(0, 5) | st.text("ab"), max_size=20))
    try:
        one, other = (drawn_again(strategies, chosen) for _ in range(2))
    except CannotDraw:
        reject()
    assert (repr(one.values), one.asked, one.fits) == (repr(other.values), other.asked, other.fits)
    assert one.values["carts"] is not other.values["carts"]


SEEN: list[tuple[str, float]] = []


class Noting(Random):
    """Random, and says when it is asked to begin, and by which randomness."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def begin(self, run: Any) -> None:
        super().begin(run)
        SEEN.append((self.name, run.rng.random()))


def rotation() -> Portfolio:
    return Portfolio([Noting(name) for name in "abcd"])


async def right(number: int = st.integers(0, 500)) -> None:  # type: ignore[assignment]  # drawn
    await trio.lowlevel.checkpoint()


def test_the_members_of_a_portfolio_go_round_the_inputs() -> None:
    SEEN.clear()
    assert explore(right, runs=24, examples=12, strategy=rotation).outcome is Outcome.HOLDS
    assert Counter(name for name, _ in SEEN) == dict.fromkeys("abcd", 6)
    assert [name for name, _ in SEEN[:6]] == list("abcdab")
    assert len({number for _, number in SEEN}) == 24  # no two runs by the same randomness
    first = list(SEEN)
    SEEN.clear()
    explore(right, runs=24, examples=12, strategy=rotation)
    assert first == SEEN


WITH_ANOTHER_HYPOTHESIS = """
import hypothesis.core, hypothesis.control
del hypothesis.control.BuildContext
from kesoku_actors.harness.exploration import exploration_of
from kesoku_actors.harness.exploring import replayed
from kesoku_actors.harness.front import verdict_on
from tests.harness import carts

print(verdict_on(exploration_of(carts.emptied)))
found = verdict_on(exploration_of(carts.overcharged)).counterexample
print(found.failure, "|", found.unconfirmed)
try:
    replayed(exploration_of(carts.overcharged), {token!r})
except Exception as error:
    print(error)
"""


def test_a_hypothesis_that_keeps_its_choices_otherwise_is_told_and_still_draws(overcharged: Verdict) -> None:
    script = WITH_ANOTHER_HYPOTHESIS.format(token=token_in(overcharged))
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    holds, fails, stale = done.stdout.splitlines()
    assert holds.startswith("holds: 200 schedules")
    assert fails == "AssertionError: wrong sum | its inputs cannot be written down"
    assert stale.startswith(
        "the inputs in this token cannot be drawn again: this harness knows the choices of Hypothesis"
    )
    assert stale.endswith("which has no `hypothesis.control.BuildContext`")


@explore(runs=40, examples=20, strategy=rotation)
async def right_by_turns(carts: list[Cart] = CARTS) -> None:
    for cart in carts:
        await trio.lowlevel.checkpoint()
        cart.items.clear()


def test_a_strategy_of_a_decorator_is_that_of_its_jobs_and_of_its_campaign(tmp_path: Path) -> None:
    here, file = f"{Path(__file__)}:right_by_turns", tmp_path / "campaign.json"
    done = check(here, "--jobs", "2", "--json")
    assert (done.exit_code, json.loads(done.stdout)["schedules"]) == (0, 40)
    command = [sys.executable, "-m", "kesoku_actors", "check", here, "--json", "--resume", str(file)]
    first, again = (json.loads(subprocess.run(command, capture_output=True, cwd=ROOT).stdout) for _ in range(2))
    assert (first["outcome"], first["schedules"]) == ("holds", 40)
    assert (again["outcome"], again["schedules"]) == ("holds", 40)


@pytest.mark.parametrize("strategy", [lambda: Portfolio([Random()]), partial(rotation)], ids=["lambda", "partial"])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_strategy_without_a_name_of_its_own_has_no_campaign(
    strategy: Callable[[], Portfolio], is_there: bool, tmp_path: Path
) -> None:
    file = tmp_path / "campaign.json"
    before = exploration_of(right_by_turns)
    if is_there:
        verdict_on(before, resume=file)
    kept = file.read_bytes() if is_there else b""
    with pytest.raises(HarnessError, match="has no name to know it by"):
        verdict_on(evolve(before, plan=evolve(before.plan, strategy=strategy)), resume=file)
    assert (file.read_bytes() if file.exists() else b"") == kept


FIXTURES = """
import pytest, trio
from hypothesis import strategies as st
from kesoku_actors.harness import explore

class Clock:
    def now(self):
        return 7

@pytest.fixture
def clock():
    return Clock()

@pytest.mark.parametrize("most", [3, 9])
@explore(runs=60)
async def test_small(clock, most, number=st.integers(0, 9)):
    await trio.sleep(0)
    assert clock.now() == 7
    assert number < most or most == 9, "too large"
"""


def test_a_fixture_that_is_no_literal_is_given_again_when_a_token_is_replayed(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(FIXTURES)

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "kesoku_actors.harness.pytest_plugin", *arguments]
        environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        return done.stdout + done.stderr

    said = run("test_it.py")
    assert "1 failed, 1 passed" in said
    assert "what it is given as `clock` cannot be written down" in " ".join(said.split())
    [line] = [line for line in said.splitlines() if line.startswith("pytest 'test_it.py::test_small[3]'")]
    again = run(*shlex.split(line)[1:])
    assert ("FAILS test_it.py:test_small: AssertionError: too large" in again, "1 failed" in again) == (True, True)
    file.write_text(FIXTURES.replace("number < most", "number < most + 9"))
    stale = run(*shlex.split(line)[1:])
    assert ("1 passed" in stale, "was changed since the token was written" in stale) == (True, True), stale
    done = check(f"{file}:test_small", "--replay", line.split()[-1])
    assert (done.exit_code, "needs clock, and the token leaves that out: replay it with pytest" in done.output) == (
        2,
        True,
    )
