"""What a life of the program takes up of the one before: not what is too old, not what failed too often, and nothing of
channels that are others' (C2)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import strategies as st

from kesoku_actors.harness.notes import Note
from kesoku_actors.protocol import Reason, Role, Status
from tests.properties.daemon import checks, model
from tests.properties.daemon.checks import CLOCK_S, Notes
from tests.properties.daemon.exploring import explored
from tests.properties.daemon.lives import Play, play
from tests.properties.daemon.script import QUICK, TOOLS, End, How, Say, Script, says, scripts
from tests.properties.daemon.seams import DaemonWorld
from tests.properties.daemon.truth import Truth

WITHIN_S: Final = 4.0
ATTEMPTS: Final = 3
UNCLEAN: Final = (How.KILLED, How.CUT)

BROKEN_OFF: Final = st.builds(
    lambda said, after, ends: Script(rooms=((said, *after),), ends=tuple(ends)),
    says(model.TALK, model.TALK, model.WORK),
    st.lists(QUICK, max_size=1),
    st.lists(st.builds(End, st.sampled_from((*UNCLEAN, How.TERMINATED)), st.just(0.7)), min_size=4, max_size=6),
)
"""Lives too short for what is asked."""
TWO_ROOMS: Final = st.builds(
    lambda one, other, after: Script(
        rooms=((one,), (other, Say(model.HELLO, 2.5))), ends=(End(How.KILLED, after), End(How.TERMINATED, 4.0))
    ),
    st.one_of(QUICK, TOOLS),
    st.one_of(QUICK, TOOLS),
    st.sampled_from((0.0, 0.5, 1.5)),
)
"""What both rooms ask is broken off, and the next life works for one of them."""


def turns(notes: Notes, truth: Truth) -> Iterator[tuple[str, Note]]:
    """Yield each inference of a turn, with the turn's root."""
    roots = {row.id: row.root_id for row in truth.rows if row.role in (Role.USER, Role.SYSTEM)}
    for note in notes:
        if note.kind == "thinks" and (asked := [id for id in note["read"] if roots.get(id)]):
            yield str(roots[asked[-1]]), note


def begun(notes: Notes) -> dict[str, Note]:
    """Return by root when its turn was heard to begin."""
    first: dict[str, Note] = {}
    for note in notes:
        if note.kind == "row" and note["status"] == "processing" and note["root"] == note["id"]:
            first.setdefault(note["id"], note)
    return first


def taken_up_in_time(notes: Notes, truth: Truth) -> None:
    """A turn is taken up by a later life unless it began too long ago; then it is ended as stale, and people are told
    once. For runs in which time passes only when nobody can run."""
    first = begun(notes)
    lives = [note for note in notes if note.kind == "begins"]
    for root, thinks in turns(notes, truth):
        if root in first:
            life = [note for note in lives if note.number < thinks.number][-1]
            assert life.time - first[root].time <= WITHIN_S + CLOCK_S, f"taken up too late: {thinks}"
    ends = {note["id"]: note for note in notes if note.kind == "row" and note["status"] == "interrupted"}
    stale = [row for row in checks.people(truth) if checks.reason(row) == Reason.STALE]
    for row in stale:
        assert row.status is Status.INTERRUPTED
        if row.id in first:
            assert ends[row.id].time - first[row.id].time > WITHIN_S - CLOCK_S, f"stale too soon: {row.id}"
    told = Counter(row.session_id for row in truth.rows if row.metadata.get("notice") == Reason.STALE)
    assert told == Counter(row.session_id for row in stale if row.root_id == row.id), "a stale turn is not told once"


def given_up_in_time(notes: Notes, truth: Truth, ends: tuple[End, ...]) -> None:
    """A turn is tried three times at most, not counting lives that ended in order, and given up only then; people are
    told once."""
    unclean = [end.how in UNCLEAN for end in ends] + [False] * (1 + len(ends))
    life = -1
    tried = defaultdict[str, set[int]](set)
    accepted: dict[str, int] = {}
    roots = {note.number: root for root, note in turns(notes, truth)}
    given_up = [row for row in checks.people(truth) if checks.reason(row) == Reason.ATTEMPTS]
    for note in notes:
        match note.kind:
            case "begins":
                life += 1
            case "accepted":
                accepted.setdefault(note["id"], life)
            case "thinks" if (root := roots.get(note.number)) is not None:
                tried[root].add(life)
                failed = [each for each in tried[root] if each < life and unclean[each]]
                assert len(failed) < ATTEMPTS, f"tried again after {len(failed)} lives broke off: {note}"
            case "row" if note["status"] == "error" and note["id"] in {row.id for row in given_up}:
                broke_off = sum(unclean[accepted[note["id"]] : life])
                assert broke_off >= ATTEMPTS, f"given up after {broke_off} lives broke off: {note}"
            case _:
                pass
    assert all(row.status is Status.ERROR for row in given_up)
    told = Counter(
        row.session_id
        for row in truth.rows
        if row.metadata.get("reason") == Reason.ATTEMPTS and row.role is Role.SYSTEM
    )
    assert told == Counter(row.session_id for row in given_up if row.root_id == row.id), "who gave up says so once"


@explored(share=0.25, may_tick=False)
async def test_c2_a_turn_that_began_too_long_ago_is_not_taken_up_and_that_is_said(
    world: DaemonWorld,
    script: Any = scripts(
        QUICK, TOOLS, first=TOOLS, ends=(*UNCLEAN, How.TERMINATED), most_ends=3, settings={"resume_within_s": WITHIN_S}
    ),
) -> None:
    truth = await play(world, script)
    taken_up_in_time(world.notes, truth)
    checks.ends_once(world.notes, truth)


@explored(share=0.25)
async def test_c2_a_turn_is_given_up_after_three_lives_that_broke_off_and_no_sooner(
    world: DaemonWorld, script: Any = BROKEN_OFF
) -> None:
    truth = await play(world, script)
    given_up_in_time(world.notes, truth, script.ends)
    checks.ends_once(world.notes, truth)


@explored(share=0.25)
async def test_c2_what_is_not_ones_own_channel_is_left_as_it_is(world: DaemonWorld, script: Any = TWO_ROOMS) -> None:
    one = Play(world=world, script=script, serves=lambda life: frozenset({"room0"}) if life == 1 else None)
    await one.go()
    truth = one.truth()
    rooms = {row.id: row.channel_id for row in truth.rows}
    sessions = {row.session_id: row.channel_id for row in truth.rows}
    life = -1
    for note in world.notes:
        match note.kind:
            case "begins":
                life += 1
            case "thinks" | "began" | "event" if life == 1:
                assert sessions[note["session"]] == "room0", f"it works for another channel: {note}"
            case "row" if life == 1 and rooms.get(note["id"]) == "room1":
                was_given_back = note["status"] == "pending_agent" and note["root"] is not None
                assert not was_given_back, f"it gives back what is another's: {note}"
            case _:
                pass
    checks.ends_once(world.notes, truth)
