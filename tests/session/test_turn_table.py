"""The turn machine's table: what each phase makes of each kind of news (I2, I3, I7, C3, C7, C10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from kesoku_actors.protocol import BusyMode, CallState, Channel, Outcome, Reason, Status, Stop
from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.turn import Misfit, TurnLimits, begin, step
from kesoku_actors.session.turn_state import (
    Aborting,
    BackingOff,
    Batch,
    Committing,
    Done,
    Inferring,
    Phase,
    Prompting,
)
from kesoku_actors.store.port import Registered
from tests.session.turns import KEY, Session, call, ends, notice, person, reply, thinking, working

QUEUE = BusyMode.QUEUE
STOP = Stop(seq=90, session_id="s", root_id="m9", covers=frozenset({"m9"}))
RESUMED = v.Resumed(
    Registered(
        channel=Channel(chatbot_id="bot", channel_id="room"),
        mode=QUEUE,
        waiting=(),
        returned=(),
        returned_began=None,
        stops=(),
        self_started=0,
    )
)


def aborting() -> Session:
    """Somebody who interrupted and is gone."""
    return thinking().hear(v.PersonSpoke(person(8)), v.MessageWithdrawn("m8"), v.ModeSwitched(QUEUE))


LIVE: Mapping[type[Phase], Callable[[], Session]] = {
    Prompting: lambda: Session(person(1), mode=QUEUE).stand(),
    Inferring: lambda: thinking(mode=QUEUE),
    Aborting: aborting,
    BackingOff: lambda: thinking(mode=QUEUE).fail().stand(),
    Committing: lambda: thinking(mode=QUEUE).say(reply("", call())),
    Batch: lambda: working("c1", mode=QUEUE),
}
HINTS: tuple[v.Event, ...] = (
    v.PersonSpoke(person(7)),
    v.NoticeArrived(notice(7)),
    v.MessageWithdrawn("m7"),
    v.StopRequested(STOP),
    v.ModeSwitched(BusyMode.STEER),
    v.ShutdownRequested(),
)
TOOLS: tuple[v.Event, ...] = (v.ToolStarted("c7"), v.ToolWaiting("c7"), v.ToolSettled("c7", Outcome.OK))
OTHERS: tuple[v.Event, ...] = (v.ForceRequested(), v.BudgetSpent("m7"))

in_each_phase = pytest.mark.parametrize("phase", LIVE, ids=lambda phase: phase.__name__)


def named(event: v.Event) -> str:
    return type(event).__name__


def heard(phase: type[Phase], *events: v.Event) -> Session:
    session = LIVE[phase]()
    assert type(session.state.phase) is phase
    return session.hear(*events)


@in_each_phase
def test_a_worker_is_registered_once(phase: type[Phase]) -> None:
    with pytest.raises(Misfit, match="Resumed"):
        heard(phase, RESUMED)


@pytest.mark.parametrize("event", [*HINTS, *TOOLS, *OTHERS], ids=named)
def test_nothing_is_heard_before_the_registration(event: v.Event) -> None:
    with pytest.raises(Misfit, match=named(event)):
        step(begin(KEY, TurnLimits()), event)


@pytest.mark.parametrize("event", [RESUMED, *HINTS, *TOOLS, *OTHERS], ids=named)
def test_nothing_is_heard_after_the_end(event: v.Event) -> None:
    session = thinking().say(reply("hi")).stand()
    over = session.state
    assert isinstance(over.phase, Done)
    assert (session.hear(event).state, session.effects) == (over, ())


@in_each_phase
def test_who_speaks_or_leaves_is_known_in_every_phase(phase: type[Phase]) -> None:
    session = heard(phase, v.PersonSpoke(person(7)), v.NoticeArrived(notice(6)))
    assert set(session.state.session.waiting) == {"m7", "n6"}
    session.hear(v.MessageWithdrawn("m7"))
    assert set(session.state.session.waiting) == {"n6"}


@in_each_phase
def test_stops_modes_and_the_shutdown_are_known_in_every_phase(phase: type[Phase]) -> None:
    assert heard(phase, v.StopRequested(STOP)).state.session.stops == (STOP,)
    assert heard(phase, v.ModeSwitched(BusyMode.STEER)).state.session.mode is BusyMode.STEER
    assert heard(phase, v.ShutdownRequested()).state.session.shutdown


@pytest.mark.parametrize("phase", [Prompting, BackingOff], ids=lambda phase: phase.__name__)
def test_a_shutdown_or_an_interrupting_mode_ends_a_prompt_and_a_backoff_at_once(phase: type[Phase]) -> None:
    assert heard(phase, v.ShutdownRequested()).commit.give_back
    session = heard(phase, v.PersonSpoke(person(7)))
    assert not session.effects
    claim = session.hear(v.ModeSwitched(BusyMode.INTERRUPT)).commit.claim
    assert claim is not None
    assert claim.message_id == "m7"


@pytest.mark.parametrize("phase", [Prompting, Inferring, Aborting, BackingOff], ids=lambda phase: phase.__name__)
@pytest.mark.parametrize("event", [*TOOLS, v.BudgetSpent("m7")], ids=named)
def test_news_of_calls_and_time_that_are_not_the_turns_changes_no_thought(phase: type[Phase], event: v.Event) -> None:
    before = heard(phase).state
    session = heard(phase, event)
    assert (session.state, session.effects) == (before, ())


@pytest.mark.parametrize("phase", [Prompting, Inferring, BackingOff], ids=lambda phase: phase.__name__)
def test_there_is_nothing_to_force_in_a_turn_that_thinks(phase: type[Phase]) -> None:
    before = heard(phase).state
    session = heard(phase, v.ForceRequested())
    assert (session.state, session.effects) == (before, ())


def test_force_ends_the_jobs_of_a_stopped_turn_while_its_inference_is_aborted() -> None:
    session = thinking().stop("m1")
    assert session.has(v.AbortModel)
    assert session.hear(v.ForceRequested()).effects == (v.EndJobs("m1"),)


def test_a_stop_heard_while_an_inference_is_aborted_is_obeyed_after_it() -> None:
    session = LIVE[Aborting]()
    session.stop("m1").hear(v.ModelAborted(session.asked(v.CallModel).ticket, "openai", "gpt", 1.0))
    assert ends(session.commit) == {"m1": (Status.INTERRUPTED, Reason.STOPPED)}


def test_time_spent_while_an_inference_is_aborted_ends_the_turn_after_it() -> None:
    session = LIVE[Aborting]()
    session.hear(v.BudgetSpent("m1"), v.ModelAborted(session.asked(v.CallModel).ticket, "openai", "gpt", 1.0))
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.BUDGET)}


def test_c3_a_call_that_started_or_waits_while_its_turn_is_claimed_is_not_committed_any_more() -> None:
    session = Session(returned=("m1",)).hear(v.ToolStarted("c1")).stand("c1")
    assert not session.has(v.StartTools)
    session = Session(returned=("m1",)).hear(v.ToolWaiting("c1")).stand("c1")
    assert session.has(v.HoldBudget)
    assert session.state.phase.turn.calls == {"c1": CallState.WAITING}
