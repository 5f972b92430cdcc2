"""What has to hold of workers, inferences and tools in a run of the daemon, and of what ends them.

As `checks` does, each takes the notes, or the truth of the end, or both, and raises `AssertionError`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

from attrs import evolve

from kesoku_actors.app.graces import STOP_S, divide
from kesoku_actors.harness.checks import Span, never_killed, ordered, prompt
from kesoku_actors.harness.notes import Note
from kesoku_actors.protocol import ENDED, Message, Outcome, Reason, Role, Status, Type, attachments_in
from kesoku_actors.store import RefusalReason
from kesoku_actors.tools.options import DEADLINE_S
from tests.properties.daemon.checks import CLOCK_S, Notes, by_seq, people, reason, rows_seen
from tests.properties.daemon.truth import Truth


def one_at_a_time(notes: Notes, *, parallel: int) -> None:
    """A session has one worker, one inference and so many tools at a time (I1)."""
    ordered(notes, "event", key="worker", by="session").demand()
    thinking: dict[str, str] = {}
    running = defaultdict[str, set[str]](set)
    for note in notes:
        match note.kind:
            case "begins":
                thinking.clear()
                running.clear()
            case "thinks":
                assert note["session"] not in thinking, f"a second inference: {note}"
                thinking[note["session"]] = note["inference"]
            case "thought" | "cancelled" | "failed":
                assert thinking.pop(note["session"]) == note["inference"]
            case "began":
                running[note["session"]].add(note["call"])
                assert len(running[note["session"]]) <= parallel, f"too many tools: {note}"
            case "ended" | "killed":
                running[note["session"]].discard(note["call"])
            case _:
                pass


def thinks_no_longer(notes: Notes, *, within_steps: int | None = None) -> None:
    """An inference that has not read a person's message ends before time passes, whether it had begun when he spoke or
    begins then; so does one that was stopped (I2, I7, I9). For runs in which time passes only when nobody can run, in
    the mode `interrupt`; for others, it ends within so many steps of its own."""
    told: list[Note] = []
    thinking: dict[str, Note] = {}
    spoke = defaultdict[str, set[str]](set)
    for note in notes:
        match note.kind:
            case "thinks":
                thinking[note["session"]] = note
                if not spoke[note["session"]] <= set(note["read"]):
                    told.append(evolve(note, kind="due", fields={"inference": note["inference"]}))
            case "thought" | "cancelled" | "failed":
                told.append(evolve(note, kind="closed", fields={"inference": note["inference"]}))
                thinking.pop(note["session"], None)
            case "accepted" | "stopped":
                one = thinking.get(note["session"])
                is_meant = note.kind == "stopped" or note["is_person"]
                if note.kind == "accepted" and note["is_person"]:
                    spoke[note["session"]].add(note["id"])
                if one is not None and is_meant and note.fields.get("id") not in one["read"]:
                    told.append(evolve(note, kind="due", fields={"inference": one["inference"]}))
            case _:
                pass
    within_s = 0.0 if within_steps is None else None
    prompt(told, "due", "closed", by="inference", within_s=within_s, within_steps=within_steps).demand()


def starts_no_more(notes: Notes, truth: Truth) -> None:
    """After a person spoke no call of the turn before starts (I3, I4); as above, in the mode `interrupt`."""
    starts_nothing_behind(notes, truth)
    spoke = defaultdict[str, list[Note]](list)
    roots = {row.id: row.root_id for row in truth.rows if row.type is Type.TOOL_CALL}
    seqs = {row.id: row.seq for row in truth.rows}
    for note in notes:
        if note.kind == "accepted" and note["is_person"]:
            spoke[note["session"]].append(note)
        elif note.kind == "began" and (root := roots.get(note["call"])) is not None:
            newer = [one for one in spoke[note["session"]] if one["seq"] > seqs[root] and one.time < note.time]
            assert newer == [], f"a call began after a newer message: {note}"


def starts_nothing_behind(notes: Notes, truth: Truth) -> None:
    """A call that was committed behind a message that waited does not start (I4). For runs without stops and crashes,
    in the mode `interrupt`."""
    calls = {row.id: row for row in truth.rows if row.type is Type.TOOL_CALL}
    roots = {row.id: row.seq for row in truth.rows if row.root_id == row.id}
    for note in notes:
        if note.kind == "began" and (call := calls.get(note["call"])) is not None:
            began, spoke = (
                roots[call.root_id or ""],
                [row.seq for row in people(truth) if row.session_id == call.session_id],
            )
            assert [seq for seq in spoke if began < seq < call.seq] == [], f"it began, and somebody had spoken: {note}"


def tools_live(notes: Notes) -> None:
    """A tool that has begun ends by itself (I3)."""
    never_killed(notes, Span(begin="began", end="ended", by="call"), killed="killed").demand()


def ended_for_a_reason(notes: Notes) -> None:
    """A tool is ended at its deadline, by force, or when the program stops and the grace is over, and not before (I7,
    I8, C7)."""
    began: dict[str, Note] = {}
    forced: set[str] = set()
    stopping: Note | None = None
    for note in notes:
        match note.kind:
            case "began":
                began[note["call"]] = note
            case "forcing":
                forced.add(note["session"])
            case "begins":
                stopping = None
            case "dies":
                stopping = note
            case "killed":
                is_late = note.time - began[note["call"]].time >= DEADLINE_S - CLOCK_S
                is_over = stopping is not None and note.time - stopping.time >= divide(STOP_S).tools_s - CLOCK_S
                assert is_late or is_over or note["session"] in forced, f"ended for no reason: {note}"
            case _:
                pass


def force_takes_a_second(notes: Notes) -> None:
    """Force is accepted no sooner than a second after the stop that waits, and no later (I7). For runs in which time
    passes only when nobody can run."""
    stopped: Note | None = None
    for note in notes:
        if note.kind == "stopped" and note["reply"] == "Stop":
            stopped = note
        elif note.kind == "forced" and note["reply"] != "NothingToStop":
            assert stopped is not None
            is_due = note.time - stopped.time >= 1.0 - CLOCK_S
            assert is_due == (note["reply"] == "Stop"), f"force came too soon, or was refused: {note}"


def force_ends_tools(notes: Notes) -> None:
    """What runs when force is accepted ends before time passes (I7); for runs in which time passes only when nobody can
    run."""
    told: list[Note] = []
    ran = set[str]()
    running = defaultdict[str, set[str]](set)
    for note in notes:
        match note.kind:
            case "began":
                running[note["session"]].add(note["call"])
            case "ended" | "killed":
                running[note["session"]].discard(note["call"])
                told.append(evolve(note, kind="over"))
            case "forcing":
                ran = set(running[note["session"]])
            case "forced" if note["reply"] == "Stop":
                left = sorted(ran & running[note["session"]])  # what the next turn has begun meanwhile is not meant
                told += [evolve(note, kind="due", fields={"call": call}) for call in left]
            case _:
                pass
    prompt(told, "due", "over", by="call", within_s=0.0).demand()


def stops_in_order(notes: Notes) -> None:
    """A program that is to end starts no call and no inference any more, cancels the inferences that run, and is over
    in time (C7); for runs in which time passes only when nobody can run."""
    asked: Note | None = None
    thinking: dict[str, Note] = {}
    for note in notes:
        match note.kind:
            case "begins":
                thinking.clear()
            case "dies":
                asked = note
            case "ends":
                assert asked is None or note.time - asked.time <= STOP_S, "it took too long to stop"
                asked = None
            case "thinks" | "began":
                assert asked is None or note.time == asked.time, f"something began after the stop: {note}"
                if note.kind == "thinks":
                    thinking[note["inference"]] = note
            case "thought" | "cancelled" | "failed":
                del thinking[note["inference"]]
                assert asked is None or note.time == asked.time, f"an inference went on after the stop: {note}"
            case _:
                pass


def tools_run_once(notes: Notes, truth: Truth, *, is_whole: bool = False) -> None:
    """A call runs once at most, and has one result that says how it went (C3, O4); `is_whole`: nothing crashed."""
    begun = Counter(note["call"] for note in notes if note.kind == "began")
    ended = {note["call"] for note in notes if note.kind == "ended"}
    killed = {note["call"] for note in notes if note.kind == "killed"}
    assert [call for call, count in begun.items() if count > 1] == [], "a call ran twice"
    results = Counter(row.parent_id for row in truth.rows if row.type is Type.TOOL_RESULT)
    calls = {row.id: row for row in truth.rows if row.type is Type.TOOL_CALL}
    assert results == Counter(dict.fromkeys(calls, 1)), "a call has no result, or two"
    for row in truth.rows:
        if row.type is not Type.TOOL_RESULT:
            continue
        outcome, call = row.metadata["outcome"], row.parent_id
        if outcome == Outcome.OK:
            assert call in ended, "a result of a call that did not end"
        if outcome == Outcome.INTERRUPTED and call in begun:
            assert call not in ended, "what had ended counts as interrupted"
            assert call in killed, "what nobody ended counts as interrupted"
        if is_whole:
            assert outcome != Outcome.UNKNOWN, "nothing crashed, and an outcome is not known"


def results_stand_together(truth: Truth) -> None:
    """The results of a batch stand together, in the order of their calls (O3)."""
    for history in truth.histories.values():
        calls = sorted((row for row in history.messages if row.type is Type.TOOL_CALL), key=by_seq)
        results = {row.parent_id: row.seq for row in history.messages if row.type is Type.TOOL_RESULT}
        for one, other in pairwise(calls):
            if other.seq == one.seq + 1:
                assert results[other.id] == results[one.id] + 1, "a batch's results stand apart"


def stops_end_what_they_cover(notes: Notes, truth: Truth) -> None:
    """A stop covers and ends all that is open then, and what only waited starts no turn; it ends nothing else (I7)."""
    rows = {row.id: row for row in truth.rows}
    spoken = defaultdict[str, list[Message]](list)
    for row in people(truth):
        spoken[row.session_id].append(row)
    states = defaultdict[str, list[Note]](list)
    for note in rows_seen(notes):
        states[note["id"]].append(note)
    for stop in truth.stops:
        assert None not in stop.covers.values(), "a stop is done and something it covers is not"
        sessions = {rows[message_id].session_id for message_id in stop.covers if message_id in rows}
        open_then = {
            row.id
            for session_id in sessions
            for row in spoken[session_id]
            if row.seq < stop.seq and _ended_after(row, states[row.id], stop.seq)
        }
        assert open_then <= set(stop.covers), "a stop does not cover what is open"
        for message_id in stop.covers:
            before = [note for note in states[message_id] if note["rev"] < stop.seq]
            waited = bool(before) and before[-1]["status"] == "pending_agent" and before[-1]["root"] is None
            if waited and message_id in rows and rows[message_id].role is Role.USER:
                assert rows[message_id].status is Status.INTERRUPTED, "a covered message was answered"
    covered = {message_id for stop in truth.stops for message_id in stop.covers}
    stopped = {row.id for row in people(truth) if reason(row) in (Reason.STOPPED, Reason.FORCED, Reason.CLEARED)}
    assert stopped <= covered, "a stop ended what it does not cover"


def _ended_after(row: Message, states: list[Note], number: int) -> bool:
    """Whether a message was open behind this number. Its end is the last change of it, unless it came with files: one
    may arrive later, and then only a state that was seen says that it had not ended."""
    if not attachments_in(row.metadata):
        return row.rev > number
    return any(state["rev"] > number and state["status"] not in ENDED for state in states)


def interrupted_with_their_turn(notes: Notes, truth: Truth) -> None:
    """Where nobody stops anything, a call counts as interrupted when its turn was, and only then (C7).

    But one that waited for a slot is withdrawn for who interrupts, for good, and the turn goes on if the mode is
    another one at its next boundary (I5, I8).
    """
    ends = {row.id: row.status for row in truth.rows}
    is_switched = any(note.kind == "mode" for note in notes)
    results = [row for row in truth.rows if row.type is Type.TOOL_RESULT]
    interrupted = [row for row in results if row.metadata["outcome"] == Outcome.INTERRUPTED]
    counted = [row for row in interrupted if not (is_switched and row.metadata.get("reason") == "withdrawn")]
    assert [row for row in counted if ends[row.root_id or ""] is not Status.INTERRUPTED] == []


def killed_at_the_end(notes: Notes, truth: Truth) -> None:
    """What still runs when the grace is over is ended and recorded as interrupted (C7)."""
    outcomes = {row.parent_id: row.metadata["outcome"] for row in truth.rows if row.type is Type.TOOL_RESULT}
    is_ending = False
    for note in notes:
        is_ending = (is_ending or note.kind == "dies") and note.kind != "begins"
        if is_ending and note.kind == "killed":
            assert outcomes[note["call"]] == Outcome.INTERRUPTED, f"it does not count as interrupted: {note}"


def text_is_dropped(truth: Truth) -> None:
    """A program that ends keeps no part of an answer (C7): parts are of turns that were interrupted or stopped."""
    ends = {row.id: row.status for row in truth.rows}
    parts = [row for row in truth.rows if row.metadata.get("partial")]
    assert [row for row in parts if ends[row.root_id or ""] is not Status.INTERRUPTED] == []


def given_up_after(notes: Notes, truth: Truth, *, event: str, attempts: int) -> None:
    """A turn that breaks off at this event each time is tried so often, and ends with a word to its channel (C2)."""
    tried = Counter(note["session"] for note in notes if note.kind == "event" and note["what"] == event)
    roots = Counter(row.session_id for row in people(truth) if row.id == row.root_id)
    assert tried == Counter({session: attempts * count for session, count in roots.items()})
    assert [row for row in people(truth) if (row.status, reason(row)) != (Status.ERROR, Reason.ATTEMPTS)] == []
    told = [row.root_id for row in truth.rows if row.role is Role.SYSTEM and reason(row) == Reason.ATTEMPTS]
    assert sorted(map(str, told)) == sorted(row.id for row in people(truth) if row.id == row.root_id)


def answered_what_stood(notes: Notes) -> None:
    """A commit that was stored when its answer was lost is answered as it was, not as one of somebody else (C10)."""
    cleared: set[str] = set()
    lost = False
    for note in notes:
        match note.kind:
            case "injected":
                lost = note["point"].startswith("store.after_commit/Commit")
            case "clearing":
                cleared.add(note["session"])
            case "event" if lost and note["what"] in ("CommitStands", "CommitRefused"):
                is_kept = note["why"] in (None, RefusalReason.MOVED)  # a plan that did not fit is remembered as such
                assert is_kept or note["session"] in cleared, f"what stands was refused: {note}"
                lost = False
            case _:
                pass


def stopped_is_over(notes: Notes) -> None:
    """After a stop nothing is thought and nothing begins before somebody speaks (I7). For runs without crashes, in
    which time passes only when nobody can run."""
    stopped: dict[str, Note] = {}
    spoke = defaultdict[str, int](int)
    for note in notes:
        if note.kind == "stopped" and note["reply"] == "Stop":
            stopped[note["session"]] = note
        elif note.kind in ("accepted", "told") and note["is_person"]:  # who spoke may be answered before he is told so
            spoke[note["session"]] = max(spoke[note["session"]], note["seq"])
        elif note.kind in ("thinks", "began") and (stop := stopped.get(note["session"])) is not None:
            is_over = spoke[note["session"]] < stop["stop"]
            assert not is_over or note.time == stop.time, f"it goes on after a stop: {note}"
