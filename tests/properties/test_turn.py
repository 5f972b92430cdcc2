"""Random scripts against the turn machine: every enabled action may come next, and the contract's rules hold.

`READINGS_THAT_LOSE` are readings of the contract that looked right and lose something, each with a short script that
shows it; as the contract is read here the same script is fine.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from kesoku_actors.protocol import Status
from kesoku_actors.session import turn, turn_boundary, turn_commit, turn_stored, turn_thought
from kesoku_actors.session import turn_words as words
from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.turn_state import (
    Committing,
    Done,
    Inferring,
    Phase,
    Prompting,
    State,
    Transition,
    Turn,
    tag,
)
from tests.properties.reference_store import READINGS
from tests.properties.world import World, pick, replay

LONGEST = int(os.environ.get("LENGTH", "60"))
CHOICE = st.tuples(st.sampled_from([0, 0, 1]), st.integers(0, 499))
CHOICES = st.integers(0, LONGEST).flatmap(lambda length: st.lists(CHOICE, min_size=length, max_size=length))


@settings(
    max_examples=int(os.environ.get("EXAMPLES", "300")),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)
@given(st.integers(0, 4), CHOICES)
def test_every_rule_holds_whatever_happens_next(lives: int, choices: list[tuple[int, int]]) -> None:
    world = World(lives=lives)
    try:
        for chaos, number in choices:
            todo = world.chaos() if chaos else world.progress()
            if todo:
                world.do(pick(todo, number))
        world.settle_down()
    except BaseException:
        note("script: " + ";".join(" ".join(action) for action in world.script))
        raise


BEGIN = "say;dispatch 1;deliver 1;commit 1;prompt 1;"
DIE_AND_COME_BACK = ";die 1 lost;dispatch 1;deliver 1;commit 1"

STEP = "model 1 no-slot;commit 1;prompt 1;"

Patch = Callable[[pytest.MonkeyPatch], None]


def store_reads(*names: str) -> Patch:
    """Let the store, the tools or the dispatcher read the rules of these names differently."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        for name in names:
            monkeypatch.setitem(READINGS, name, True)

    return patch


def boundary_first(act: str) -> Patch:
    """Judge the row with this act before every other one."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        rows = sorted(turn_boundary.BOUNDARY, key=lambda row: row[1].__name__ != act)
        monkeypatch.setattr(turn_boundary, "BOUNDARY", tuple(rows))

    return patch


def boundary_act(act: str, other: Callable[[State, Turn], Transition] | None) -> Patch:
    """Do something else where this act would be done, or never do it."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        rows = [
            (applies, other if each.__name__ == act else each)
            for applies, each in turn_boundary.BOUNDARY
            if other or each.__name__ != act
        ]
        monkeypatch.setattr(turn_boundary, "BOUNDARY", tuple(rows))

    return patch


def transition(phase: type, handler: Callable[[State, Any, Any], Transition], *events: type) -> Patch:
    """Handle these events differently in a phase."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        for event in events:
            monkeypatch.setitem(turn.TRANSITIONS, (phase, event), handler)

    return patch


def both(*patches: Patch) -> Patch:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        for each in patches:
            each(monkeypatch)

    return patch


def return_with_text(state: State, turn: Turn) -> Transition:
    return turn_commit.send(state, turn, None, step=turn.ended, insert=words.partial(turn.text), give_back=True)


def answer_even_if_empty(state: State, phase: Inferring, event: v.ModelFinished) -> Transition:
    step = words.finished(tag(state, phase.ticket), event.reply, event.duration_s)
    ends = turn_commit.endings(phase.turn, Status.PROCESSED)
    return turn_commit.send(state, phase.turn, None, step=step, insert=words.answer(event.reply), ends=ends)


def give_up(state: State, _phase: Committing, _event: v.CommitRefused) -> Transition:
    return evolve(state, phase=Done(clean=False)), (v.Finish(clean=False),)


def forget_stop_of_answered(state: State, phase: Committing, event: v.CommitStands) -> Transition:
    return turn_stored.stand(state, phase if phase.next_turn else evolve(phase, meanwhile=()), event)


def hear_own(state: State, phase: Phase, event: v.PersonSpoke) -> Transition:
    forgetful = evolve(state, session=evolve(state.session, known=frozenset()))
    return turn_thought.rethink(forgetful, phase, event)  # type: ignore[arg-type]  # only used while prompting


READINGS_THAT_LOSE: dict[str, tuple[str, str, Patch]] = {
    "a message that gets no inference has no turn": (
        r"I5: superseded",
        "say;say;dispatch 1;deliver 1;commit 1;prompt 1",
        store_reads("superseded"),
    ),
    "the first claim needs no worker": (
        r"C2: nobody works",
        "say;dispatch 1;deliver 1;die 1 later;ghost 0",
        store_reads("first-claim"),
    ),
    "what a stop covers can be taken": (
        r"I7: .* was answered",
        "say;dispatch 1;deliver 1;commit 1;say;deliver 1;stop 1;commit 1;prompt 1;prompt 1;model 1 text;deliver 1;"
        "commit 1",
        store_reads("stop-take"),
    ),
    "a stop is over when its turn was answered": (
        r"I7: .* was answered",
        f"mode queue;{BEGIN}model 1 text;say;deliver 1;stop 1;deliver 1;commit 1;commit 1;prompt 1;model 1 text;"
        "commit 1",
        both(store_reads("stop-take"), transition(Committing, forget_stop_of_answered, v.CommitStands)),
    ),
    "a stop covers only people": (
        r"O1: history read before",
        "say;dispatch 1;deliver 1;notice;say;stop 1;commit 1;commit 1;commit 1;prompt 1;model 1 text;commit 1;say",
        store_reads("stop-people"),
    ),
    "an approved call starts at once": (
        r"I1: parallel_tools",
        f"{BEGIN}model 1 risky;commit 1;tool 4;tool 5;approve 4",
        store_reads("approve-start"),
    ),
    "queued calls outlive their worker": (
        r"I3, C3",
        f"{BEGIN}model 1 call;commit 1;die 1 lost;tool 4",
        store_reads("dead-queue"),
    ),
    "only open calls are settled at the end": (
        r"O4: turn",
        f"{BEGIN}model 1 call;commit 1;tool 4;tool-end 4 ok{2 * DIE_AND_COME_BACK};die 1 lost",
        store_reads("open-calls"),
    ),
    "running tools outlive a turn given up": (
        r"I3: the turn is over",
        f"{BEGIN}model 1 call;commit 1;tool 4{2 * DIE_AND_COME_BACK};die 1 lost",
        store_reads("orphan-tool"),
    ),
    "a message seen before is stored": (r"2", "say;withdraw 2;repost p1", store_reads("repost")),
    "a notice that does not wake starts a worker": (r"livelock", "passive", store_reads("idle-notice")),
    "a hint is always news": (
        r"I2: a turn pivots to itself",
        "say;dispatch 1;repost p1;deliver 1;commit 1;deliver 1;commit 1",
        transition(Prompting, hear_own, v.PersonSpoke),
    ),
    "a returned message is news": (
        r"I2: a turn pivots to itself",
        "say;dispatch 1;deliver 1;commit 1;die 1 lost;dispatch 1;repost p1;deliver 1;commit 1;deliver 1;commit 1",
        transition(Prompting, hear_own, v.PersonSpoke),
    ),
    "steering comes before a stop": (
        r"I7: .* later than every stop",
        f"mode steer;{BEGIN}model 1 call;commit 1;tool 4;tool-end 4 ok;stop 1;say;deliver 1;deliver 1;deliver 1;"
        "deliver 1;commit 1;commit 1;commit 1",
        boundary_first("adopt"),
    ),
    "steering comes before the budget": (
        r"B4: .* unread",
        f"mode steer;{BEGIN}{STEP}{STEP}say;deliver 1;model 1 no-slot;commit 1;commit 1",
        boundary_first("adopt"),
    ),
    "text is kept when a turn is returned": (
        r"P1: nothing to answer",
        f"{BEGIN}model 1 delta;shutdown;deliver 1;aborted 1;commit 1;exit;restart;dispatch 1;deliver 1;commit 1;"
        "prompt 1",
        boundary_act("give_back", return_with_text),
    ),
    "an empty reply is an answer": (
        r"P1: empty content",
        f"{BEGIN}model 1 empty;commit 1;say;dispatch 1;deliver 1;commit 1;prompt 1",
        transition(Inferring, answer_even_if_empty, v.ModelFinished),
    ),
    "calls not started can be left": (
        r"P1: nothing to answer",
        f"{BEGIN}model 1 call;say;deliver 1;commit 1;withdraw 4;commit 1;prompt 1",
        boundary_act("take_up", None),
    ),
    "news of a call not known yet is dropped": (
        r"liveness",
        f"{BEGIN}model 1 call;commit 1;tool 4;die 1 applied;dispatch 1;deliver 1;commit-slow 1;tool-end 4 ok;"
        "deliver 1;reply 1",
        transition(Committing, turn.moot, v.ToolStarted, v.ToolWaiting, v.ToolSettled),
    ),
    "what moved ends the worker": (
        r"C10",
        f"{BEGIN}say;deliver 1;aborted 1;withdraw 4;commit 1",
        transition(Committing, give_up, v.CommitRefused),
    ),
}


@pytest.mark.parametrize("name", READINGS_THAT_LOSE)
def test_a_reading_that_looked_right_loses_something(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, script, patch = READINGS_THAT_LOSE[name]
    replay(script)
    patch(monkeypatch)
    with pytest.raises((AssertionError, KeyError), match=broken):
        replay(script, judged=False)


def judged_before(act: str, other: str) -> Patch:
    """Let one act of the boundary come before another."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        rows = {row[1].__name__: row for row in turn_boundary.BOUNDARY}
        names = [name for name in rows if name != act]
        names.insert(names.index(other), act)
        monkeypatch.setattr(turn_boundary, "BOUNDARY", tuple(rows[name] for name in names))

    return patch


def forget_meanwhile(handler: Callable[[State, Committing, Any], Transition]) -> Callable[..., Transition]:
    return lambda state, phase, event: handler(state, evolve(phase, meanwhile=()), event)


CALL_AND_SAY = "model 1 call;say;deliver 1;commit 1;"
STEP_TWICE = f"{BEGIN}{STEP}{STEP}"

ORDERS_THAT_SHOW: dict[str, tuple[str, str, Patch]] = {
    "calls start before a pivot": (
        "I4: calls wait",
        f"{BEGIN}{CALL_AND_SAY}",
        judged_before("take_up", "pivot"),
    ),
    "a budget ends before calls start": (
        "I5: budget instead of start",
        f"{STEP_TWICE}{CALL_AND_SAY}withdraw 4;commit 1",
        judged_before("end_over_budget", "take_up"),
    ),
    "a shutdown comes before a stop": (
        "I5: shutdown instead of stop",
        f"{BEGIN}stop 1;shutdown;deliver 1;deliver 1;aborted 1",
        judged_before("give_back", "obey_stop"),
    ),
    "a pivot comes before stale": (
        "I5: pivot instead of stale",
        "say;dispatch 1;deliver 1;commit 1;crash lost;restart-late;dispatch 1;deliver 1;say;deliver 1;commit 1",
        judged_before("pivot", "end_stale"),
    ),
    "a message is forgotten that came while a refusal was on its way": (
        "O2: a message is not known",
        f"{BEGIN}say;deliver 1;aborted 1;withdraw 4;commit-slow 1;say;deliver 1;deliver 1;reply 1",
        transition(Committing, forget_meanwhile(turn_stored.refuse), v.CommitRefused),
    ),
    "a mode is forgotten that came while a commit was on its way": (
        "I5: the machine has another mode",
        "say;dispatch 1;deliver 1;commit-slow 1;mode queue;deliver 1;reply 1",
        transition(Committing, forget_meanwhile(turn_stored.stand), v.CommitStands),
    ),
    "a stop is forgotten that came while a commit was on its way": (
        "I7: a stop is not known",
        "say;dispatch 1;deliver 1;commit-slow 1;stop 1;deliver 1;reply 1",
        transition(Committing, forget_meanwhile(turn_stored.stand), v.CommitStands),
    ),
}


@pytest.mark.parametrize("name", ORDERS_THAT_SHOW)
def test_another_order_shows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, script, patch = ORDERS_THAT_SHOW[name]
    replay(script)
    patch(monkeypatch)
    with pytest.raises(AssertionError, match=broken):
        replay(script)
