"""What has to hold of turns in a run of the daemon: who is taken, where rows stand, what calls come to.

As `checks` does, each takes the notes, or the truth of the end, or both, and raises `AssertionError`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby, pairwise

from kesoku_actors.harness.notes import Note
from kesoku_actors.protocol import (
    ASKS,
    LEAVES,
    BusyMode,
    DeltaKind,
    Message,
    Outcome,
    Reason,
    Role,
    Status,
    StepState,
    Type,
)
from kesoku_actors.tools.options import DEADLINE_S
from tests.properties.daemon.checks import CLOCK_S, Notes, reason
from tests.properties.daemon.truth import Truth

_BY_A_STOP = frozenset({Reason.STOPPED, Reason.FORCED, Reason.CLEARED})


def states(notes: Notes) -> list[Note]:
    """Return the states of rows that listeners were told, by `rev`: each once, as it was told first."""
    told: dict[tuple[str, int], Note] = {}
    for note in notes:
        if note.kind in ("row", "told") and note["status"] != "removed":
            told.setdefault((note["id"], note["rev"]), note)
    return sorted(told.values(), key=lambda note: int(note["rev"]))


def takings(notes: Notes) -> dict[str, Note]:
    """Return the first state of each row in which it is of a turn."""
    first: dict[str, Note] = {}
    for state in states(notes):
        if state["root"] is not None:
            first.setdefault(state["id"], state)
    return first


# order


def stands_where_it_was_put(notes: Notes, truth: Truth) -> None:
    """A row gets its turn and its place once; an adopted one a new place, every other one its number; the history is
    in the order of turns, then of places (O1)."""
    put: dict[str, tuple[str, int]] = {}
    for state in states(notes):
        if state["root"] is not None:
            where = (state["root"], state["place"])
            assert put.setdefault(state["id"], where) == where, f"a row was moved: {state}"
    seqs = {row.id: row.seq for row in truth.rows}
    numbers = {row.seq for row in truth.rows}
    for history in truth.histories.values():
        keys = [(seqs[row.root_id or ""], row.place or 0) for row in history.messages]
        assert keys == sorted(set(keys)), "the history is not in order"
        for row in history.messages:
            if _is_adopted(row):
                assert row.place is not None
                assert row.place > row.seq, f"it stands where it was said, not where it was read: {row}"
                assert row.place not in numbers, f"its place is the number of another row: {row}"
            else:
                assert row.place == row.seq, f"nobody adopted it, and it has another place: {row}"


def calls_are_answered(notes: Notes, truth: Truth) -> None:
    """Whatever a model reads has behind the calls of a step all their results, in the order of the calls and nothing in
    between (O3, O4): no inference begins while a call has no result (I4)."""
    rows = {row.id: row for row in truth.rows}
    results = {row.parent_id: row.id for row in truth.rows if row.type is Type.TOOL_RESULT}
    for note in notes:
        if note.kind != "thinks":
            continue
        known = [rows[each] for each in note["read"] if each in rows]
        for is_batch, batch in groupby(enumerate(known), key=lambda placed: placed[1].type is Type.TOOL_CALL):
            if is_batch:
                calls = list(batch)
                behind = calls[-1][0] + 1
                read = [row.id for row in known[behind : behind + len(calls)]]
                assert read == [results.get(call.id) for _place, call in calls], f"calls without their results: {note}"


def steps_are_whole(truth: Truth) -> None:
    """What a model said in one step was stored in one piece, and the results of its calls in another, in the order of
    the calls (O3)."""
    for history in truth.histories.values():
        rows = {row.id: row for row in history.messages}
        results = {row.parent_id: row for row in history.messages if row.type is Type.TOOL_RESULT}
        for stored in history.steps:
            said = [rows[each] for each in stored.message_ids if each in rows]
            answers = [results[row.id] for row in said if row.type is Type.TOOL_CALL]
            for piece in (said, answers):
                assert all(other.seq == one.seq + 1 for one, other in pairwise(piece)), f"stored in pieces: {piece}"


def outcomes_are_true(notes: Notes, truth: Truth) -> None:
    """A result says what became of its call: `ok` of one that ended, `interrupted` of one that was ended or never
    began, `unknown` of one that had begun, or was about to, in a life that is over or with a worker that crashed too
    often (O4, C2, C3)."""
    given_up = {row.id for row in truth.rows if reason(row) == Reason.ATTEMPTS}
    lives: dict[str, int] = {}
    last, ended, killed = 0, set[str](), set[str]()
    for note in notes:
        match note.kind:
            case "begins":
                last = note["life"]
            case "began":
                lives[note["call"]] = last
            case "ended":
                ended.add(note["call"])
            case "killed":
                killed.add(note["call"])
            case _:
                pass
    for row in truth.rows:
        if row.type is not Type.TOOL_RESULT:
            continue
        outcome, call = row.metadata["outcome"], row.parent_id or ""
        match outcome:
            case Outcome.OK:
                assert call in ended, f"it did not end, and counts as done: {row}"
            case Outcome.INTERRUPTED:
                assert call not in lives or call in killed, f"it began, and counts as never begun: {row}"
            case Outcome.UNKNOWN:
                assert lives.get(call, 0) < last or row.root_id in given_up, (
                    f"it began in this life, and nobody knows what became of it: {row}"
                )
            case Outcome.BACKGROUND:
                assert call in lives, f"it never began, and goes on: {row}"
            case _:
                pass


# who is taken


def taken_as_the_mode_says(notes: Notes, first: BusyMode) -> None:
    """Who waits is taken as the busy mode says that holds at the boundary (I5). For runs with one room and no crash, in
    which time passes only when nobody can run: what came, or was set, in the very moment may count or not."""
    first_states = takings(notes)
    came = {note["id"]: note for note in reversed(notes) if note.kind == "accepted" and note["is_person"]}
    for state in first_states.values():
        mode = _mode_at(notes, state.time, first)
        if mode is None or state["id"] not in came or state["reason"] in _BY_A_STOP:
            continue
        left = [
            one
            for one in came.values()
            if one.time < state.time and one["id"] in first_states
            and first_states[one["id"]]["rev"] > state["rev"]
            and first_states[one["id"]]["reason"] not in _BY_A_STOP
        ]  # fmt: skip
        match state["reason"]:
            case Reason.SUPERSEDED | Reason.INTERRUPTED:
                assert mode is BusyMode.INTERRUPT, f"nobody interrupts here: {state}"
            case Reason.STEERED:
                assert mode is BusyMode.STEER, f"nobody steers here: {state}"
            case Reason.COLLECTED:
                assert mode in (BusyMode.COLLECT, BusyMode.STEER), f"nobody is collected here: {state}"
            case _:
                pass
        if state["root"] == state["id"] and state["status"] == Status.PROCESSING:
            assert [one for one in left if one["seq"] < state["seq"]] == [] or mode in (
                BusyMode.COLLECT,
                BusyMode.STEER,
            ), f"somebody spoke before: {state}"
            if mode is BusyMode.INTERRUPT:
                assert left == [], f"a turn begins, and somebody who interrupts is left waiting: {state}"
            if mode in (BusyMode.COLLECT, BusyMode.STEER):
                roots = {first_states[one["id"]]["root"] for one in left}
                assert roots <= {state["root"]}, f"somebody waits, and is not in the turn: {state}"


def thinks_with_all(notes: Notes, first: BusyMode) -> None:
    """In the modes `interrupt` and `steer` a model reads whoever had spoken (I2, I5); in all modes but `interrupt` an
    inference is cancelled by nothing but a stop. For runs as above."""
    spoke: list[Note] = []
    begun: dict[str, Note] = {}
    stops: list[Note] = []
    for note in notes:
        mode = _mode_at(notes, note.time, first)
        match note.kind:
            case "accepted" if note["is_person"]:
                spoke.append(note)
            case "stopped":
                stops.append(note)
            case "thinks":
                begun[note["inference"]] = note
                if mode in (BusyMode.INTERRUPT, BusyMode.STEER):
                    unread = [one for one in spoke if one.time < note.time and one["id"] not in note["read"]]
                    assert unread == [], f"an inference begins without somebody who waits: {note}"
            case "cancelled" if mode not in (BusyMode.INTERRUPT, None):
                since = begun[note["inference"]].time
                assert [stop for stop in stops if stop.time >= since] or _dies(notes, note), f"cancelled: {note}"
            case _:
                pass


def ends_together(truth: Truth) -> None:
    """People's messages of a turn take every status together (I5)."""
    for history in truth.histories.values():
        ends = defaultdict[str | None, set[tuple[str, str]]](set)
        for row in history.messages:
            if row.role is Role.USER:
                ends[row.root_id].add((row.status, reason(row)))
        mixed = {root: found for root, found in ends.items() if len({status for status, _reason in found}) > 1}
        assert mixed == {}, "messages of one turn came to different ends"


def _mode_at(notes: Notes, time: float, first: BusyMode) -> BusyMode | None:
    """Return the mode that holds at a moment; none in the moment of a change."""
    mode = first
    for note in notes:
        if note.kind == "did" and type(note["action"]).__name__ == "Mode" and note.time == time:
            return None
        if note.kind == "mode" and note.time <= time:
            if note.time == time:
                return None
            mode = note["mode"]
    return mode


def _dies(notes: Notes, note: Note) -> bool:
    return any(other.kind == "dies" and other.time == note.time for other in notes)


def _is_adopted(row: Message) -> bool:
    return row.root_id != row.id and row.parent_id is None and row.status in ASKS


# stops and answers


def covered_is_not_taken(notes: Notes, truth: Truth) -> None:
    """What waits when a stop is stored that covers it is taken by no commit that comes later (I7)."""
    by_id = defaultdict[str, list[Note]](list)
    for state in states(notes):
        by_id[state["id"]].append(state)
    for stop in truth.stops:
        for message_id in stop.covers:
            before = [state for state in by_id[message_id] if state["rev"] < stop.seq]
            if not before or before[-1]["root"] is not None:
                continue
            taken = [
                state for state in by_id[message_id] if state["rev"] > stop.seq and state["status"] == Status.PROCESSING
            ]
            assert taken == [], "a message that a stop covers was taken"


def receipts_say_what_ended(notes: Notes, truth: Truth) -> None:
    """The receipt of a stop comes once, when all it covers has ended, and says what did and what was answered already
    (I7, I10). For runs without crashes and clears."""
    ended: dict[str, str] = {}
    covers = {stop.seq: set(stop.covers) for stop in truth.stops}
    status = {row.id: row.status for row in truth.rows}
    told: set[int] = set()
    for note in notes:
        if note.kind == "told":
            ended[note["id"]] = note["status"]
        elif note.kind == "receipt":
            covered = covers[note["stop"]]
            assert note["stop"] not in told, f"a stop has two receipts: {note}"
            told.add(note["stop"])
            early = {each for each in covered if ended.get(each) in (Status.PENDING_AGENT, Status.PROCESSING)}
            assert early == set(), f"a receipt came before the end: {note}"
            answered = {each for each in covered if status[each] is Status.PROCESSED}
            assert set(note["answered"]) == answered, f"it says what was answered, and that is not so: {note}"
            assert set(note["ended"]) == covered - answered, f"it says what ended, and that is not so: {note}"


def answers_stand(truth: Truth) -> None:
    """A turn that is processed has one answer, and one that came to another end none (C4, I10)."""
    for history in truth.histories.values():
        answers = defaultdict[str | None, int](int)
        for row in history.messages:
            answers[row.root_id] += row.role is Role.ASSISTANT and row.type is Type.TEXT and row.status in LEAVES
        for row in history.messages:
            if row.root_id == row.id:
                assert answers[row.id] == (row.status is Status.PROCESSED), f"its answer is lost, or too much: {row}"


def handed_over_stands(notes: Notes, truth: Truth) -> None:
    """An answer that a worker took before it heard of anything that ends thought is stored, whatever comes then (I10).
    For runs without crashes, clears and failures."""
    stored = {step.step.inference_id: step for history in truth.histories.values() for step in history.steps}
    status = {row.id: row.status for row in truth.rows}
    for inference in _handed_over(notes):
        step = stored[inference]
        assert step.step.state is StepState.FINISHED, f"an answer was taken and thrown away: {step}"
        assert status[step.root_id] is Status.PROCESSED, f"an answer was withdrawn: {step}"


def _handed_over(notes: Notes) -> Iterator[str]:
    """Yield the inferences that ended with an answer which nothing had come before."""
    answered: dict[str, Note] = {}
    is_clean = defaultdict[str, bool](bool)
    for note in notes:
        if note.kind == "thought":
            answered[note["session"]] = note
        if note.kind != "event":
            continue
        session = note["session"]
        match note["what"]:
            case "PromptBuilt":
                is_clean[session] = True
            case "PersonSpoke" | "StopRequested" | "ModeSwitched" | "ShutdownRequested" | "BudgetSpent":
                is_clean[session] = False
            case "ModelFinished" if is_clean[session] and answered[session]["calls"] == 0:
                yield answered[session]["inference"]
            case _:
                pass


def partial_is_kept(notes: Notes, truth: Truth) -> None:
    """What a model had said before its inference was cancelled is kept as partial where the turn ends by that, and
    nothing else is (I2). For runs without crashes, clears and failures."""
    said = defaultdict[str, list[Note]](list)
    last: dict[str, Note] = {}
    for note in notes:
        if note.kind == "delta" and note["what"] == DeltaKind.TEXT:
            said[note["inference"]].append(note)
            last[note["root"]] = note
    ended = {note["inference"]: note for note in notes if note.kind in ("cancelled", "thought")}
    kept = {row.root_id: row for row in truth.rows if row.metadata.get("partial")}
    for row in truth.rows:
        if row.root_id != row.id or row.id not in last or row.status is not Status.INTERRUPTED:
            continue
        inference = last[row.id]["inference"]
        end = ended[inference]
        before = "".join(piece["text"] for piece in said[inference] if piece.time < end.time)
        if end.kind == "cancelled" and before.strip():
            assert row.id in kept, f"what was said is lost: {row}"
            assert kept[row.id].content.startswith(before), f"a part of what was said is lost: {kept[row.id]}"
    for row in kept.values():
        whole = [
            "".join(piece["text"] for piece in pieces) for pieces in said.values() if pieces[0]["root"] == row.root_id
        ]
        assert any(one.startswith(row.content) for one in whole), f"it was never said: {row}"


def killed_says_why(notes: Notes, truth: Truth) -> None:
    """A call that was ended at its deadline is an `error`, one that was ended by force or a stop of the program
    `interrupted` (I7, I8, C7)."""
    began = {note["call"]: note for note in notes if note.kind == "began"}
    killed = {note["call"]: note for note in notes if note.kind == "killed"}
    for row in truth.rows:
        if row.type is Type.TOOL_RESULT and row.parent_id in killed and row.metadata["outcome"] != Outcome.BACKGROUND:
            lived = killed[row.parent_id].time - began[row.parent_id].time
            meant = Outcome.ERROR if lived >= DEADLINE_S - CLOCK_S else Outcome.INTERRUPTED
            assert row.metadata["outcome"] in (meant, Outcome.UNKNOWN), f"it says another end: {row}"


# approvals


def allowed_before_it_runs(notes: Notes, truth: Truth) -> None:
    """A call that needs a yes runs when a person has given it and not before; the first answer decides, and a call that
    was denied says so (T7). For runs in which nobody waits for longer than a minute."""
    risky = {row.id for row in truth.rows if row.type is Type.TOOL_CALL and row.metadata["tool_name"] == "risky"}
    pressed: dict[str, bool] = {}
    for note in notes:
        if note.kind == "presses":
            pressed.setdefault(note["call"], note["yes"])
        elif note.kind == "began" and note["call"] in risky:
            assert pressed.get(note["call"]), f"nobody said yes: {note}"
    decided = {note["call"]: note["yes"] for note in notes if note.kind == "answered" and note["counts"]}
    for row in truth.rows:
        if row.type is Type.TOOL_RESULT and row.parent_id in risky:
            why = row.metadata.get("reason")
            assert why != "expired", f"it expired within a minute: {row}"
            assert (why == "denied") == (decided.get(row.parent_id or "") is False), f"denied or not: {row}"
