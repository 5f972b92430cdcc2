"""The tool actor: order of facts, slots, withdrawal, force, deadline, restarts (I1, I3, C3, C7, C9, O3)."""

from __future__ import annotations

import asyncio
import signal
import threading
from contextvars import ContextVar

import pytest
import trio

from kesoku_actors.protocol import CallState, Outcome
from kesoku_actors.tools import Settled, Started, ToolContext, ToolOptions, ToolOutcome, ToolRegistry, ToolStatistics
from tests.tools.journals import MemoryJournal, bench, call


async def nap(seconds: float = 1.0) -> str:
    """Sleep."""
    await trio.sleep(seconds)
    return f"slept {seconds:g}"


async def refuse(text: str) -> str:
    raise ValueError(text)


async def test_each_fact_is_durable_before_it_is_told(autojump_clock):
    async with bench([nap]) as made:
        made.start(call("a", "nap"))
        await made.heard(Settled, "a")
    assert made.journal.facts == ["started a", "Started a", "staged a ok", "Settled a"]
    assert made.outcome("a").content == "slept 1"
    assert made.outcome("a").duration_s == 1.0


@pytest.mark.parametrize("parallel", [1, 2, 5])
async def test_calls_take_slots_in_order_and_never_more_than_the_bound(autojump_clock, parallel):
    busy: list[int] = []
    order: list[int] = []

    async def work(number: int) -> int:
        order.append(number)
        busy.append(number)
        assert len(busy) <= parallel
        await trio.sleep(1 + number % 3)
        busy.remove(number)
        return number

    async with bench([work]) as made:
        made.start(*(call(f"c{n}", "work", number=n) for n in range(7)), parallel=parallel)
        await made.heard(Settled, *(f"c{n}" for n in range(7)))
    # Those that share a moment are entered as trio likes; none is entered before one that had its slot earlier.
    assert all(abs(order.index(number) - number) < parallel for number in range(7))
    assert [made.outcome(f"c{n}").content for n in range(7)] == [str(n) for n in range(7)]


async def test_sessions_do_not_wait_for_each_other(autojump_clock):
    async with bench([nap]) as made:
        made.start(call("a", "nap", seconds=100.0), parallel=1)
        made.tools.attach("other", made.sink)
        made.start(call("b", "nap", session_id="other"), parallel=1)
        await made.heard(Settled, "b")
        assert [running.call_id for running in made.tools.running("s")] == ["a"]
        await made.heard(Settled, "a")


async def test_a_withdrawn_call_never_runs_and_a_started_one_goes_on(autojump_clock):
    async with bench([nap]) as made:
        made.start(call("a", "nap"), call("b", "nap"), parallel=1)
        await made.heard(Started, "a")
        made.tools.withdraw([call("a", "nap"), call("b", "nap")], workspace=made.workspace)
        await made.heard(Settled, "a", "b")
    assert made.outcome("b").outcome is Outcome.INTERRUPTED
    assert made.outcome("a").outcome is Outcome.OK
    assert "started b" not in made.journal.facts
    assert Settled(call_id="b", outcome=Outcome.INTERRUPTED) in made.events


async def test_a_call_that_was_never_queued_here_is_withdrawn_all_the_same(autojump_clock):
    async with bench([nap]) as made:
        made.tools.withdraw([call("a", "nap")], workspace=made.workspace)
        await made.heard(Settled, "a")
    assert made.outcome("a").outcome is Outcome.INTERRUPTED


async def test_a_call_withdrawn_while_it_starts_says_that_it_started(autojump_clock):
    async with bench([nap], journal=MemoryJournal(delay_s=0.5)) as made:
        made.start(call("a", "nap"))
        await trio.sleep(0.1)
        made.tools.withdraw([call("a", "nap")], workspace=made.workspace)
        await made.heard(Settled, "a")
    assert [type(event) for event in made.events] == [Started, Settled]
    assert made.outcome("a").outcome is Outcome.OK


async def test_a_call_whose_start_is_not_granted_neither_runs_nor_settles(autojump_clock):
    journal = MemoryJournal(states={"a": CallState.SETTLED})
    async with bench([nap], journal=journal) as made:
        made.start(call("a", "nap"))
        await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(5)
        assert made.tools.running("s") == ()
    assert made.journal.facts == []
    assert made.events == []


async def test_force_ends_what_runs_as_interrupted(autojump_clock):
    async with bench([nap]) as made:
        made.start(call("a", "nap", seconds=1e6), call("b", "nap"), parallel=1)
        await made.heard(Started, "a")
        made.tools.end(["a", "b"])
        await made.heard(Settled, "a", "b")
    assert {made.outcome(id).outcome for id in "ab"} == {Outcome.INTERRUPTED}
    assert made.outcome("a").metadata["reason"] == "forced"


async def test_force_keeps_what_the_tool_had_to_say_so_far(autojump_clock):
    async def chatty(context: ToolContext) -> str:
        context.watch(lambda: ToolOutcome(outcome=Outcome.OK, content="half of it"))
        await trio.sleep_forever()
        return "all of it"

    async with bench([chatty]) as made:
        made.start(call("a", "chatty"))
        await made.heard(Started, "a")
        made.tools.end(["a"])
        await made.heard(Settled, "a")
    assert made.outcome("a").content == "half of it\n[ended by force]"


async def test_a_call_forced_while_it_starts_is_never_entered(autojump_clock):
    entered: list[str] = []

    async def mark() -> None:
        entered.append("entered")

    async with bench([mark], journal=MemoryJournal(delay_s=0.5)) as made:
        made.start(call("a", "mark"))
        await trio.sleep(0.1)
        made.tools.end(["a"])
        await made.heard(Settled, "a")
    assert entered == []
    assert made.outcome("a").outcome is Outcome.INTERRUPTED


async def test_the_deadline_ends_a_call_as_an_error(autojump_clock):
    async with bench([nap], options=ToolOptions(deadline_s=300)) as made:
        made.start(call("a", "nap", seconds=301.0), call("b", "nap", seconds=299.0))
        await made.heard(Settled, "a", "b")
    assert made.outcome("a").outcome is Outcome.ERROR
    assert made.outcome("a").metadata["reason"] == "deadline"
    assert made.outcome("a").duration_s == 300.0
    assert made.outcome("b").outcome is Outcome.OK


async def test_a_tool_that_raises_is_an_error_the_model_can_read(autojump_clock):
    async with bench([refuse]) as made:
        made.start(call("a", "refuse", text="no such city"))
        await made.heard(Settled, "a")
    assert made.outcome("a").outcome is Outcome.ERROR
    assert made.outcome("a").content == "ValueError: no such city"


async def test_an_error_that_cannot_say_what_it_is_is_named_by_its_type(autojump_clock):
    class Broken(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    async def fall() -> None:
        raise Broken

    async with bench([fall]) as made:
        made.start(call("a", "fall"))
        await made.heard(Settled, "a")
    assert made.outcome("a").outcome is Outcome.ERROR
    assert made.outcome("a").content == "Broken"


async def test_a_tool_that_asks_the_program_to_exit_does_not_end_it(autojump_clock):
    async def leave() -> None:
        raise SystemExit(3)

    async with bench([leave, nap]) as made:
        made.start(call("a", "leave"))
        await made.heard(Settled, "a")
        made.start(call("b", "nap"))
        await made.heard(Settled, "b")
    assert made.outcome("a").outcome is Outcome.ERROR


async def test_an_unknown_tool_and_wrong_arguments_settle_without_a_start(autojump_clock):
    async with bench([nap]) as made:
        made.start(
            call("a", "sing"),
            call("b", "nap", seconds="soon"),
            call("c", "nap", minutes=3),
            call("d", "nap", invalid="Expecting ',' at character 7"),
        )
        await made.heard(Settled, "a", "b", "c", "d")
    assert "there is no tool 'sing'; known are: nap" in made.outcome("a").content
    assert "seconds must be a number" in made.outcome("b").content
    assert "no argument 'minutes'" in made.outcome("c").content
    assert "Expecting ','" in made.outcome("d").content
    assert not [fact for fact in made.journal.facts if fact.startswith("started")]


async def test_a_thousand_bad_calls_have_one_error_each(autojump_clock):
    async with bench([nap]) as made:
        made.start(*(call(f"c{n}", "", text=n) for n in range(1000)))
        await made.heard(Settled, *(f"c{n}" for n in range(1000)))
    assert len(made.events) == 1000
    assert {staged.outcome for staged in made.journal.staged.values()} == {Outcome.ERROR}


async def test_an_outcome_waits_for_a_store_that_is_away(autojump_clock):
    async with bench([nap]) as made:
        made.start(call("a", "nap"))
        await made.heard(Started, "a")
        made.journal.away = True
        await trio.sleep(60)
        assert [running.call_id for running in made.tools.running("s")] == ["a"]
        made.journal.away = False
        await made.heard(Settled, "a")
    assert made.outcome("a").content == "slept 1"


async def test_a_start_whose_reply_was_lost_is_settled_and_not_run(autojump_clock):
    async with bench([nap], journal=MemoryJournal(loses_replies=1)) as made:
        made.start(call("a", "nap"))
        await made.heard(Settled, "a")
    assert made.outcome("a").outcome is Outcome.INTERRUPTED
    assert made.journal.facts == ["started a", "staged a interrupted", "Settled a"]


async def test_a_staging_whose_reply_was_lost_stages_once(autojump_clock):
    async with bench([nap]) as made:
        made.start(call("a", "nap"))
        await made.heard(Started, "a")
        made.journal.loses_replies = 1
        await made.heard(Settled, "a")
    assert [fact for fact in made.journal.facts if fact.startswith("staged")] == ["staged a ok"]


async def test_a_worker_that_comes_back_hears_of_the_calls_of_the_one_before(autojump_clock):
    heard: list[object] = []
    async with bench([nap]) as made:
        made.start(call("a", "nap", seconds=10.0), call("b", "nap"), parallel=1)
        await made.heard(Started, "a")
        made.tools.detach("s")
        made.tools.drop("s")
        assert [(running.call_id, running.state) for running in made.tools.running("s")] == [("a", CallState.STARTED)]
        made.tools.attach("s", heard.append)
        await trio.sleep(20)
        assert made.tools.running("s") == ()
    assert heard == [Settled(call_id="a", outcome=Outcome.OK)]
    assert "b" not in made.journal.states


async def test_a_dropped_call_runs_when_a_resumed_turn_starts_it(autojump_clock):
    async with bench([nap]) as made:
        made.start(call("a", "nap"), call("b", "nap"), parallel=1)
        await made.heard(Started, "a")
        made.tools.drop("s")
        made.start(call("b", "nap"), parallel=1)
        await made.heard(Settled, "a", "b")
    assert made.outcome("b").outcome is Outcome.OK


async def test_a_call_started_twice_runs_once(autojump_clock):
    runs: list[str] = []

    async def mark() -> None:
        runs.append("run")
        await trio.sleep(1)

    async with bench([mark]) as made:
        made.start(call("a", "mark"))
        made.start(call("a", "mark"))
        await made.heard(Settled, "a")
    assert runs == ["run"]


async def test_shutdown_lets_started_calls_finish_within_the_grace_and_starts_no_other(autojump_clock):
    async with bench([nap], options=ToolOptions(shutdown_grace_s=180)) as made:
        made.start(call("a", "nap", seconds=100.0), call("b", "nap"), parallel=1)
        await made.heard(Started, "a")
    assert made.outcome("a").outcome is Outcome.OK
    assert "b" not in made.journal.states


async def test_shutdown_ends_what_outlasts_the_grace_as_interrupted(autojump_clock):
    async with bench([nap], options=ToolOptions(shutdown_grace_s=180)) as made:
        made.start(call("a", "nap", seconds=200.0))
        await made.heard(Started, "a")
    assert made.outcome("a").outcome is Outcome.INTERRUPTED
    assert made.outcome("a").metadata["reason"] == "shutdown"
    assert trio.current_time() - made.outcome("a").duration_s < 1


async def test_the_grace_counts_from_the_moment_the_program_is_asked_to_stop(autojump_clock):
    async with bench([nap], options=ToolOptions(shutdown_grace_s=180)) as made:
        made.start(call("a", "nap", seconds=250.0), call("b", "nap"), parallel=1)
        await made.heard(Started, "a")
        made.tools.shut_down()
        made.start(call("c", "nap"))
        asked = trio.current_time()
        await made.heard(Settled, "a")
        assert trio.current_time() - asked == 180
        assert made.tools.running("s") == ()
    assert made.outcome("a").outcome is Outcome.INTERRUPTED
    assert made.journal.states.keys() == {"a"}


async def test_a_session_on_hold_starts_nothing_until_it_is_attended_again(autojump_clock):
    quiet = trio.Event()
    async with bench([nap]) as made:
        made.start(call("a", "nap", seconds=10.0), call("b", "nap"), parallel=1)
        await made.heard(Started, "a")
        made.tools.hold("s", quiet.set)
        assert quiet.is_set()
        made.start(call("c", "nap"))
        await made.heard(Settled, "a")
        assert made.tools.running("s") == ()
        made.tools.attach("s", made.sink)
        made.start(call("b", "nap"))
        await made.heard(Settled, "b")
    assert made.journal.states.keys() == {"a", "b"}


@pytest.mark.parametrize("granted", [True, False])
async def test_a_hold_is_quiet_when_it_is_known_what_started(autojump_clock, granted):
    facts: list[str] = []
    journal = MemoryJournal(delay_s=5.0, states={} if granted else {"a": CallState.SETTLED})
    async with bench([nap], journal=journal) as made:
        made.start(call("a", "nap", seconds=100.0))
        await trio.sleep(1)
        made.tools.hold("s", lambda: facts.extend(("quiet", *(type(event).__name__ for event in made.events))))
        assert facts == []
        await trio.sleep(10)
        assert facts == (["quiet", "Started"] if granted else ["quiet"])


async def test_a_hold_is_quiet_after_a_call_that_cannot_run_is_told(autojump_clock):
    facts: list[str] = []
    async with bench([nap], journal=MemoryJournal(delay_s=5.0)) as made:
        made.start(call("a", "nobody"))
        await trio.sleep(1)
        made.tools.hold("s", lambda: facts.extend(type(event).__name__ for event in made.events))
        await trio.sleep(10)
    assert facts == ["Settled"]


async def test_a_call_that_is_just_over_can_be_asked_for_again_at_once(autojump_clock):
    heard: list[object] = []
    async with bench([nap]) as made:

        def again(event):
            heard.append(event)
            if len(heard) == 2:  # told of the end, while the run's own task is still on its way out
                made.start(call("a", "nap"), call("b", "nap"))

        made.tools.attach("s", again)
        made.start(call("a", "nap"))
        await trio.sleep(10)
        assert made.tools.running("s") == ()
    assert [event for event in heard if event.call_id == "a"] == [
        Started(call_id="a"),
        Settled(call_id="a", outcome=Outcome.OK),
    ]
    assert made.outcome("b").outcome is Outcome.OK


async def test_a_call_withdrawn_twice_while_the_store_is_away_settles_once(autojump_clock):
    async with bench([nap]) as made:
        made.start(call("a", "nap", seconds=100.0), call("b", "nap"), parallel=1)
        await made.heard(Started, "a")
        made.journal.away = True
        made.tools.withdraw([call("b", "nap")], workspace=made.workspace)
        made.start(call("b", "nap"), parallel=1)
        made.tools.withdraw([call("b", "nap")], workspace=made.workspace)
        await trio.sleep(50)
        made.journal.away = False
        await made.heard(Settled, "a", "b")
    assert [fact for fact in made.journal.facts if fact.endswith(" b") or " b " in fact] == [
        "staged b interrupted",
        "Settled b",
    ]


async def test_a_withdrawn_call_that_was_never_queued_settles_once(autojump_clock):
    async with bench([nap]) as made:
        for _ in range(2):
            made.tools.withdraw([call("a", "nap")], workspace=made.workspace)
        await made.heard(Settled, "a")
        assert made.tools.running("s") == ()
    assert made.journal.facts == ["staged a interrupted", "Settled a"]


async def test_an_unknown_id_is_no_fault(autojump_clock):
    async with bench([nap]) as made:
        made.tools.end(["nobody"])
        made.tools.detach("nobody")
        made.tools.drop("nobody")
        assert made.tools.running("nobody") == ()
    assert made.journal.facts == []


@pytest.mark.parametrize(
    "raised",
    [GeneratorExit, KeyboardInterrupt, asyncio.CancelledError, ExceptionGroup("", [ValueError("deep")])],
)
async def test_whatever_a_tool_raises_is_an_error_and_no_crash(autojump_clock, raised):
    async def fail() -> None:
        raise raised

    async with bench([fail, nap]) as made:
        made.start(call("a", "fail"), call("b", "nap"), parallel=1)
        await made.heard(Settled, "a", "b")
    assert made.outcome("a").outcome is Outcome.ERROR
    assert ("ValueError: deep" if isinstance(raised, ExceptionGroup) else raised.__name__) in made.outcome("a").content
    assert made.outcome("b").outcome is Outcome.OK


@pytest.fixture
def heeds_ctrl_c():
    """Python's own handler, also where the tests run with the signal ignored, as a shell's background job does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_a_ctrl_c_while_a_tool_works_is_not_the_tools():
    outcomes: list[Outcome] = []

    async def press() -> str:
        signal.raise_signal(signal.SIGINT)
        return "pressed"

    async def main() -> None:
        async with bench([press]) as made:
            try:
                made.start(call("a", "press"))
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await made.heard(Settled, "a")
                outcomes.append(made.outcome("a").outcome)

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
    assert outcomes == [Outcome.OK]


async def test_a_tool_that_says_nothing_is_told_to_the_model_as_such(autojump_clock):
    async def silent() -> None: ...

    async def blank() -> str:
        return "  \n"

    async def table() -> dict[str, object]:
        return {"ü": [1, None]}

    async with bench([silent, blank, table]) as made:
        made.start(call("a", "silent"), call("b", "blank"), call("c", "table"))
        await made.heard(Settled, "a", "b", "c")
    assert [made.outcome(id).content for id in "abc"] == ["(no output)", "(no output)", '{"ü": [1, null]}']


async def test_the_deadline_of_one_tool_can_be_its_own(autojump_clock):
    registry = ToolRegistry()
    registry.add(nap, owner="tests", name="short", deadline_s=5.0)
    registry.add(nap, owner="tests")
    async with bench([], registry=registry) as made:
        made.start(call("a", "short", seconds=100.0), call("b", "nap", seconds=100.0))
        await made.heard(Settled, "a", "b")
    assert made.outcome("a").content == "[ended at its deadline of 5 s]"
    assert made.outcome("b").outcome is Outcome.OK


async def test_force_while_the_store_is_away_is_told_when_it_is_back(autojump_clock):
    async with bench([nap]) as made:
        made.start(call("a", "nap", seconds=1e6))
        await made.heard(Started, "a")
        made.journal.away = True
        made.tools.end(["a"])
        await trio.sleep(100)
        assert not [event for event in made.events if isinstance(event, Settled)]
        made.journal.away = False
        await made.heard(Settled, "a")
    assert made.outcome("a").outcome is Outcome.INTERRUPTED


async def test_a_start_waits_for_a_store_that_is_away(autojump_clock):
    async with bench([nap], journal=MemoryJournal(away=True)) as made:
        made.start(call("a", "nap"))
        await trio.sleep(60)
        assert made.journal.facts == []
        assert [running.state for running in made.tools.running("s")] == [CallState.COMMITTED]
        made.journal.away = False
        await made.heard(Settled, "a")
    assert made.outcome("a").outcome is Outcome.OK


async def test_shutdown_does_not_wait_for_a_start_that_the_store_never_grants(autojump_clock):
    async with bench([nap], journal=MemoryJournal(away=True)) as made:
        made.start(call("a", "nap"))
        await trio.sleep(1)
        began = trio.current_time()
    assert trio.current_time() - began < 5
    assert made.journal.facts == []


async def test_statistics_and_memory_forget_what_is_over(autojump_clock):
    async with bench([nap]) as made:
        for n in range(20):
            made.tools.attach(f"s{n}", made.sink)
            made.start(*(call(f"{n}.{k}", "nap", session_id=f"s{n}") for k in range(5)), parallel=2)
        reading = made.tools.statistics()
        assert reading.queued + len(reading.running) == 100
        assert len(reading.running) <= 40
        await made.heard(Settled, *(f"{n}.{k}" for n in range(20) for k in range(5)))
        for n in range(20):
            made.tools.detach(f"s{n}")
        assert made.tools.statistics() == ToolStatistics(queued=0, running=(), left_threads=())
        assert all(made.tools.running(f"s{n}") == () for n in range(20))


SETTINGS: ContextVar[str] = ContextVar("settings")


async def test_settings_of_the_run_are_readable_in_async_tools_and_in_threads():
    async def here() -> str:
        return SETTINGS.get()

    def there() -> str:
        return f"{SETTINGS.get()} in {threading.current_thread() is not threading.main_thread()}"

    SETTINGS.set("the run's")
    async with bench([here, there]) as made:
        SETTINGS.set("somebody else's")
        made.start(call("a", "here"), call("b", "there"))
        await made.heard(Settled, "a", "b")
    assert [made.outcome(id).content for id in "ab"] == ["the run's", "the run's in True"]
