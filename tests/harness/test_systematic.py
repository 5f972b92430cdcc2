"""`Hold(b)`: every schedule with at most so many events is played, each once, and what it counts is a certificate."""

from __future__ import annotations

import gc
import random
from itertools import combinations
from typing import Any

import pytest
import trio

from kesoku_actors.harness import Hold as HoldUpTo
from kesoku_actors.harness import Outcome, explore
from kesoku_actors.harness.control import Run, execute
from kesoku_actors.harness.faults import Fire
from kesoku_actors.harness.hold import Base, Decision, Form, Hold, Tick
from kesoku_actors.harness.strategy import RunInfo
from kesoku_actors.harness.systematic import HoldBound
from kesoku_actors.harness.world import World, fault

from .programs import BUGS, Program


def play(program: Program, strategy: HoldBound) -> Run:
    strategy.begin(RunInfo(number=0, rng=random.Random(0), length=100))
    return execute(program, strategy)


def played(program: Program, strategy: HoldBound) -> list[tuple[Form, Run, bool]]:
    """Return every run with its form, and whether it counts."""
    runs = []
    while not strategy.is_exhausted:
        before = strategy.played
        run = play(program, strategy)
        assert strategy.form is not None
        runs.append((strategy.form, run, strategy.played > before))
    return runs


def key(form: Form) -> tuple[Base, frozenset[object]]:
    return form.base, frozenset(form.events)


def events_of(form: Form) -> int:
    return sum(event.times if isinstance(event, Tick) else 1 for event in form.events)


async def pair() -> None:
    async def worker() -> None:
        await trio.lowlevel.checkpoint()
        await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker, name="one")
        nursery.start_soon(worker, name="other")


async def faulty() -> None:
    happened = [fault("a"), fault("b"), fault("a")]
    await trio.lowlevel.checkpoint()
    assert not (happened[2] and fault("c")), "a and c"


@pytest.mark.parametrize("bug", BUGS)
def test_every_form_is_counted_once_and_one_finds_the_bug(bug: str) -> None:
    runs = played(BUGS[bug](), HoldBound(1))
    forms = [key(form) for form, _, counts in runs if counts]
    assert len(forms) == len(set(forms)) == len(runs)
    assert any(run.error is not None for _, run, _ in runs)
    assert not any(run.error is not None for _, run, _ in played(BUGS[bug](fixed=True), HoldBound(1)))


@pytest.mark.parametrize("program", [pair, faulty])
def test_a_round_has_the_forms_with_one_event_more_and_none_comes_twice(program: Program) -> None:
    strategy = HoldBound(3)
    runs = played(program, strategy)
    new = [form for form, _, counts in runs if counts]
    assert len({key(form) for form in new}) == len(new) == strategy.played
    for base in Base:
        sizes = [events_of(form) for form in new if form.base is base]
        assert sizes == sorted(sizes)
    assert strategy.played_within(0) == 2
    smaller = HoldBound(2)
    assert {key(form) for form, _, counts in played(program, smaller) if counts} < {key(form) for form in new}
    assert strategy.played_within(2) == smaller.played


def test_two_different_forms_of_one_order_are_two_different_schedules() -> None:
    runs = [(form, run.schedule) for form, run, counts in played(pair, HoldBound(2)) if counts]
    for (form, schedule), (other, same) in combinations(runs, 2):
        if form.base is other.base and schedule == same:
            holds = [event for event in (*form.events, *other.events) if isinstance(event, Hold)]
            assert holds, f"{form} and {other}: two holds may come to the same, ticks and faults never do"


def test_time_may_pass_more_than_once_at_a_place() -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 1)
            nursery.start_soon(trio.sleep, 2)
            await trio.lowlevel.checkpoint()
            for _ in range(3):
                await trio.lowlevel.checkpoint()

    ticks = [form.events for form, _, _ in played(main, HoldBound(2, Base.FIFO))]
    assert any(isinstance(one, Tick) and one.times == 2 for events in ticks for one in events)


def test_a_form_is_played_again_only_to_be_continued() -> None:
    runs = played(pair, HoldBound(2))
    again = [form for form, _, counts in runs if not counts]
    assert {len(form) for form in again} == {1}
    assert {key(form) for form in again} <= {key(form) for form, _, counts in runs if counts}
    assert len(again) < len(runs) / 2


def test_what_the_loop_starts_for_itself_is_never_held() -> None:
    forms = [form for form, _, _ in played(pair, HoldBound(2))]
    named = {str(event) for form in forms for event in form.events}
    assert named
    assert not [said for said in named if "run_sync_soon" in said or "<init>" in said]


def test_faults_are_events_like_the_others() -> None:
    runs = played(faulty, HoldBound(2, Base.FIFO))
    fired = {run.fired for _, run, _ in runs}
    assert {(), (Fire("a", 1),), (Fire("b", 1),), (Fire("a", 2),)} <= fired
    assert (Fire("a", 2), Fire("c", 1)) in fired
    assert max(map(len, fired)) == 2
    [failing] = [run for _, run, _ in runs if run.error is not None]
    assert failing.fired == (Fire("a", 2), Fire("c", 1))


def test_a_certificate_of_one_event_says_nothing_of_two_faults() -> None:
    def verdict(bound: int) -> Any:
        return explore(faulty, runs=1, strategy="hold", certify=bound)

    one = verdict(1)
    assert one.outcome is Outcome.INCONCLUSIVE  # the fault `c` is asked for only behind another one, and never happens
    assert verdict(2).outcome is Outcome.FAILS


def test_a_certificate_counts_faults() -> None:
    async def main() -> None:
        await trio.lowlevel.checkpoint()
        if fault("slow"):
            await trio.lowlevel.checkpoint()

    verdict = explore(main, runs=1, strategy="strict", certify=HoldUpTo(1))
    assert verdict.outcome is Outcome.HOLDS
    [certificate] = verdict.certificates
    assert str(certificate) in str(verdict)
    assert str(certificate) == (
        "no failure with at most 1 hold (until nothing else can run), tick or fault: all 4 such schedules were run"
    )


def test_a_power_cut_is_tried_at_each_step_that_asks_for_it() -> None:
    cuts: set[int] = set()

    async def main() -> None:
        world, done = World(), [0]

        async def app() -> None:
            for _ in range(5):
                await trio.lowlevel.checkpoint()
                done[0] += 1

        if not await world.life(app, may_crash=True):
            cuts.add(done[0])

    played(main, HoldBound(1))
    assert cuts >= {2, 3, 4}


@pytest.mark.parametrize("bound", [1, 2])
def test_shares_together_play_what_one_alone_plays(bound: int) -> None:
    def forms(strategy: HoldBound) -> list[Any]:
        return [key(form) for form, _, counts in played(pair, strategy) if counts]

    whole = forms(HoldBound(bound))
    shares = [form for share in range(3) for form in forms(HoldBound(bound, shard=(share, 3)))]
    assert len(shares) == len(whole)
    assert set(shares) == set(whole)


@pytest.mark.parametrize("skip", [0, 1, 7, 40])
def test_what_was_played_before_is_skipped(skip: int) -> None:
    whole = [key(form) for form, _, counts in played(pair, HoldBound(2)) if counts]
    rest = HoldBound(2, skip=skip)
    left = [key(form) for form, _, counts in played(pair, rest) if counts]
    assert rest.played == len(whole)
    assert set(whole[skip:]) <= set(left)
    assert len(left) <= len(whole) - skip + 2


def decisions() -> int:
    gc.collect()
    return sum(isinstance(one, Decision) for one in gc.get_objects())


def test_places_are_kept_for_one_form_of_each_length_alone() -> None:
    strategy = HoldBound(3)
    before, kept = decisions(), list[int]()
    steps: list[int] = []
    for number in range(60):
        steps.append(play(pair, strategy).steps)
        if number % 6 == 5:
            kept.append(decisions() - before)
    assert strategy.played > 40
    assert max(kept) <= 4 * len(Base) * max(steps)


def test_the_end_is_an_error_to_begin_behind() -> None:
    strategy = HoldBound(0)
    assert len(played(pair, strategy)) == 2
    with pytest.raises(Exception, match="every schedule was played"):
        play(pair, strategy)
