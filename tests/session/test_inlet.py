"""The queue of a worker: pieces of one answer become one event, and nothing changes places."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.inlet import Inlet


async def listen(inlet: Inlet) -> v.Event:
    """Listen as a worker does."""
    while True:
        with inlet.alarm:
            return await inlet.next()
        if (event := inlet.rang()) is not None:
            return event


async def test_the_words_nobody_has_taken_yet_are_one_event() -> None:
    inlet = Inlet()
    for word in ("It ", "is ", "late."):
        inlet.stream(3, word)
    assert await inlet.next() == v.ModelDelta(3, "It is late.")
    inlet.stream(3, " Good night.")
    assert await inlet.next() == v.ModelDelta(3, " Good night.")


async def test_words_of_two_answers_and_what_came_between_them_stay_apart_and_in_order() -> None:
    inlet = Inlet()
    inlet.stream(3, "a")
    inlet.stream(4, "b")
    inlet.put(v.ShutdownRequested())
    inlet.stream(4, "c")
    heard = [await inlet.next() for _ in range(4)]
    assert heard == [v.ModelDelta(3, "a"), v.ModelDelta(4, "b"), v.ShutdownRequested(), v.ModelDelta(4, "c")]


async def test_what_is_made_of_an_answer_is_made_when_it_is_taken_and_may_be_nothing() -> None:
    inlet, made = Inlet(), []

    def make(event: v.Event | None) -> v.Event | None:
        made.append(event)
        return event

    inlet.put(lambda: make(None))
    inlet.put(lambda: make(v.ShutdownRequested()))
    assert made == []
    assert await inlet.next() == v.ShutdownRequested()
    assert made == [None, v.ShutdownRequested()]


async def test_the_clock_of_a_turn_stands_still_while_it_is_held(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    inlet, spent = Inlet(), v.BudgetSpent("m1")
    heard: list[tuple[v.Event, float]] = []

    async def hear() -> None:
        heard.append((await listen(inlet), trio.current_time()))

    inlet.set_budget(60.0, spent)
    nursery.start_soon(hear)
    await trio.sleep(20)
    inlet.hold_budget()
    inlet.hold_budget()
    await trio.sleep(10_000)
    assert heard == []
    inlet.resume_budget()
    began = trio.current_time()
    await trio.sleep(10_000)
    assert heard == [(spent, began + 40)]


async def test_a_turn_without_a_clock_is_held_in_vain(autojump_clock: MockClock) -> None:
    inlet = Inlet()
    inlet.hold_budget()
    inlet.resume_budget()
    assert inlet.budget is None


async def test_a_new_turn_has_a_clock_of_its_own(autojump_clock: MockClock) -> None:
    inlet = Inlet()
    inlet.set_budget(60.0, v.BudgetSpent("m1"))
    inlet.hold_budget()
    inlet.set_budget(30.0, v.BudgetSpent("m2"))
    inlet.resume_budget()
    assert await listen(inlet) == v.BudgetSpent("m2")


async def test_a_clock_set_anew_in_the_moment_it_runs_out_runs_again(autojump_clock: MockClock) -> None:
    inlet = Inlet()
    inlet.set_budget(10.0, v.BudgetSpent("m1"))
    with inlet.alarm:
        with trio.CancelScope(shield=True):
            await trio.sleep(20)
        inlet.set_budget(30.0, v.BudgetSpent("m2"))
        await inlet.next()
    assert inlet.rang() is None
    began = trio.current_time()
    assert await listen(inlet) == v.BudgetSpent("m2")
    assert trio.current_time() - began == 30
