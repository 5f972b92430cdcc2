"""What has to hold of a run of the daemon: the checkers of the harness over its notes, and looks at what is stored.

Each takes the notes, or the truth of the end, or both, and raises `AssertionError`. A row that a later life shows
again, as it was, counts once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from attrs import evolve

from kesoku_actors.harness.checks import Span, never_killed, ordered, prompt, terminal
from kesoku_actors.harness.notes import Note
from kesoku_actors.protocol import (
    ENDED,
    AttachmentState,
    Message,
    Outcome,
    Reason,
    Role,
    Status,
    Type,
    attachments_in,
    awaits_attachments,
)
from tests.properties.daemon.truth import Truth

Notes = Sequence[Note]
CLOCK_S: Final = 1e-6
"""As exact as sums of seconds are."""


def rows_seen(notes: Notes) -> Iterator[Note]:
    """Yield the notes of rows, each state of a row once."""
    seen = set[tuple[str, int]]()
    for note in notes:
        if note.kind == "row" and (state := (note["id"], note["rev"])) not in seen:
            seen.add(state)
            yield note


def people(truth: Truth) -> list[Message]:
    """Return the messages of people."""
    return [row for row in truth.rows if row.role is Role.USER]


def reason(row: Message) -> str:
    """Return why a message was taken or ended."""
    return str(row.metadata.get("reason", ""))


# messages


def ends_once(notes: Notes, truth: Truth) -> None:
    """Every message of a person that was accepted comes to one end and to no second one (C1); what is deleted may have
    ended before."""
    accepted = {note["id"] for note in notes if note.kind == "accepted" and note["is_person"]}
    assert accepted - truth.removed == {row.id for row in people(truth)}, "an accepted message is lost"
    assert all(row.status in ENDED for row in people(truth))
    ended = set[str]()
    told: list[Note] = []
    for note in rows_seen(notes):
        if note["id"] in accepted and not (note["status"] == "removed" and note["id"] in ended):
            told.append(evolve(note, kind=note["status"]))
            ended |= {note["id"]} if note["status"] in ENDED else set()
    terminal(told, begins="pending_agent", ends={*ENDED, "removed"}).demand()


def posted_once(notes: Notes, truth: Truth) -> None:
    """An event of the platform is one message, however often it comes (M5)."""
    ids = defaultdict[str, set[str]](set)
    for note in notes:
        if note.kind == "accepted":
            ids[note["external"]].add(note["id"])
    assert {external: found for external, found in ids.items() if len(found) > 1} == {}
    stored = Counter((row.chatbot_id, row.external_id) for row in truth.rows if row.external_id is not None)
    assert [key for key, count in stored.items() if count > 1] == []


def numbered(notes: Notes, truth: Truth) -> None:
    """A number is given once, also over crashes, and time never runs back within a session (M1)."""
    states = dict[int, tuple[str, str]]()
    for note in rows_seen(notes):
        state = (note["id"], note["status"])
        assert states.setdefault(note["rev"], state) == state, f"the rev {note['rev']} was given twice"
    assert len({row.rev for row in truth.rows}) == len({row.seq for row in truth.rows}) == len(truth.rows)
    for session_id in truth.sessions:
        times = [row.timestamp for row in sorted(truth.rows, key=_seq) if row.session_id == session_id]
        assert times == sorted(times), "a timestamp is before the last one of the session"


def one_open_session(truth: Truth) -> None:
    """A channel has one open session at most (M6)."""
    open_ones = Counter(info.channel_id for info in truth.sessions.values() if info.state == "open")
    assert [channel for channel, count in open_ones.items() if count > 1] == []


# order


def history_stands(notes: Notes, truth: Truth) -> None:
    """Nothing moves in front of what a model has read, and what it read is the history (O1)."""
    last: dict[str, Note] = {}
    for note in notes:
        if note.kind != "thinks":
            continue
        before = last.get(note["session"])
        if before is not None:
            read, now = before["read"], note["read"]
            assert now[: len(read)] == read, f"{read} was read, then {now}"
        last[note["session"]] = note
    for session_id, history in truth.histories.items():
        stored = [row.id for row in history.messages]
        if session_id in last:
            read = [each for each in stored if each in last[session_id]["read"]]
            assert tuple(read) == last[session_id]["read"]


def heard_in_order(truth: Truth) -> None:
    """People are heard in the order in which they spoke (O2)."""
    for history in truth.histories.values():
        heard = [row.seq for row in history.messages if row.role is Role.USER]
        assert heard == sorted(heard)


def delivered_in_order(notes: Notes, truth: Truth, *, once: bool) -> None:
    """What leaves is shown whole and in order (O2, C5): `once`, where nothing crashed or failed; else at least once, a
    part under one name."""
    shown = [note for note in notes if note.kind == "shown"]
    ordered(shown, "shown", key="order", by="room").demand()
    names = defaultdict[tuple[str, int], list[str]](list)
    for note in shown:
        names[note["message"], note["order"][1]].append(note["nonce"])
    for row in truth.rows:
        assert row.status not in (Status.PENDING, Status.UNDELIVERABLE)
        if row.status is Status.DELIVERED:
            for index in range(len(row.content.split())):
                nonces = names[row.id, index]
                assert len(set(nonces)) == 1, "a part was not shown, or shown again under another name"
                assert not once or len(nonces) == 1, "a part was shown twice"


def told_whole(notes: Notes, truth: Truth) -> None:
    """A listener hears changes in `rev` order, and of every row how it is in the end (B1)."""
    ordered([note for note in notes if note.kind == "row"], "row", key="rev", by="life", strictly=True).demand()
    lives = [note["life"] for note in notes if note.kind == "begins"]
    heard = {note["id"]: note["rev"] for note in notes if note.kind == "row" and note["life"] == lives[-1]}
    assert {row.id: row.rev for row in truth.rows if heard.get(row.id) != row.rev} == {}, "a change was not heard"


# workers


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


def thinks_no_longer(notes: Notes) -> None:
    """An inference that has not read a person's message ends before time passes; so does one that was stopped (I2, I7,
    I9). For runs in which time passes only when nobody can run, in the mode `interrupt`."""
    told: list[Note] = []
    thinking: dict[str, Note] = {}
    for note in notes:
        match note.kind:
            case "thinks":
                thinking[note["session"]] = note
            case "thought" | "cancelled" | "failed":
                told.append(evolve(note, kind="closed", fields={"inference": note["inference"]}))
                thinking.pop(note["session"], None)
            case "accepted" | "stopped":
                one = thinking.get(note["session"])
                is_meant = note.kind == "stopped" or note["is_person"]
                if one is not None and is_meant and note.fields.get("id") not in one["read"]:
                    told.append(evolve(note, kind="due", fields={"inference": one["inference"]}))
            case _:
                pass
    prompt(told, "due", "closed", by="inference", within_s=0.0).demand()


def starts_no_more(notes: Notes, truth: Truth) -> None:
    """After a person spoke no call of the turn before starts (I3, I4); as above, in the mode `interrupt`."""
    spoke = defaultdict[str, list[Note]](list)
    roots = {row.id: row.root_id for row in truth.rows if row.type is Type.TOOL_CALL}
    seqs = {row.id: row.seq for row in truth.rows}
    for note in notes:
        if note.kind == "accepted" and note["is_person"]:
            spoke[note["session"]].append(note)
        elif note.kind == "began" and (root := roots.get(note["call"])) is not None:
            newer = [one for one in spoke[note["session"]] if one["seq"] > seqs[root] and one.time < note.time]
            assert newer == [], f"a call began after a newer message: {note}"


def tools_live(notes: Notes) -> None:
    """A tool that has begun ends by itself (I3)."""
    never_killed(notes, Span(begin="began", end="ended", by="call"), killed="killed").demand()


def tools_run_once(notes: Notes, truth: Truth, *, is_whole: bool = False) -> None:
    """A call runs once at most, and has one result that says how it went (C3, O4); `is_whole`: nothing crashed."""
    begun = Counter(note["call"] for note in notes if note.kind == "began")
    ended = {note["call"] for note in notes if note.kind == "ended"}
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
        if is_whole:
            assert outcome != Outcome.UNKNOWN, "nothing crashed, and an outcome is not known"


def results_stand_together(truth: Truth) -> None:
    """The results of a batch stand together, in the order of their calls (O3)."""
    for history in truth.histories.values():
        calls = sorted((row for row in history.messages if row.type is Type.TOOL_CALL), key=_seq)
        results = {row.parent_id: row.seq for row in history.messages if row.type is Type.TOOL_RESULT}
        for one, other in pairwise(calls):
            if other.seq == one.seq + 1:
                assert results[other.id] == results[one.id] + 1, "a batch's results stand apart"


def stops_end_what_they_cover(notes: Notes, truth: Truth) -> None:
    """A stop ends all it covers, and what only waited starts no turn; it ends nothing else (I7)."""
    rows = {row.id: row for row in truth.rows}
    states = list(rows_seen(notes))
    for stop in truth.stops:
        assert None not in stop.covers.values(), "a stop is done and something it covers is not"
        for message_id in stop.covers:
            before = [note for note in states if note["id"] == message_id and note["rev"] < stop.seq]
            waited = bool(before) and before[-1]["status"] == "pending_agent" and before[-1]["root"] is None
            if waited and message_id in rows and rows[message_id].role is Role.USER:
                assert rows[message_id].status is Status.INTERRUPTED, "a covered message was answered"
    covered = {message_id for stop in truth.stops for message_id in stop.covers}
    stopped = {row.id for row in people(truth) if reason(row) in (Reason.STOPPED, Reason.FORCED, Reason.CLEARED)}
    assert stopped <= covered, "a stop ended what it does not cover"


def sessions_rest(notes: Notes) -> None:
    """When everything is done no session has a worker (B3)."""
    assert [note["workers"] for note in notes if note.kind == "rests"] == [0]


def deltas_fit(notes: Notes, truth: Truth) -> None:
    """Pieces of an answer come in order, a later attempt replaces an earlier one, and what was stored in the end says
    the same (B2)."""
    whole = {note["inference"] for note in notes if note.kind == "thought"}
    stored = defaultdict[tuple[str, str], list[str]](list)
    for row in truth.rows:
        if row.role is Role.ASSISTANT and row.root_id is not None:
            stored[row.root_id, row.type.value].append(row.content)
    pieces = [note for note in notes if note.kind == "delta"]
    attempts: dict[str, int] = {}
    ends = defaultdict[tuple[str, str], int](int)
    for note in pieces:
        assert note["attempt"] >= attempts.get(note["root"], 0), f"a piece of an attempt that is over: {note}"
        attempts[note["root"]] = note["attempt"]
        end = ends[note["inference"], note["what"]]
        assert note["offset"] >= end, f"a piece came twice, or behind a later one: {note}"
        ends[note["inference"], note["what"]] = note["offset"] + len(note["text"])
        texts = stored[note["root"], note["what"]]
        if note["inference"] in whole and texts:
            assert any(text[note["offset"] :].startswith(note["text"]) for text in texts), f"it was never said: {note}"


# notices and jobs


def notices_wait(notes: Notes) -> None:
    """No notice ends an inference (I6): only a person's message does that it has not read; for runs without stops."""
    spoke = defaultdict[str, set[str]](set)
    for note in notes:
        if note.kind == "accepted" and note["is_person"]:
            spoke[note["session"]].add(note["id"])
        elif note.kind == "cancelled":
            assert spoke[note["session"]] - set(note["read"]), f"nobody spoke, and it was cancelled: {note}"


def self_started(truth: Truth) -> int:
    """Return how many turns in a row no person was in, at the most (I6)."""
    longest = 0
    for history in truth.histories.values():
        turns = defaultdict[str, set[Role]](set)
        for row in history.messages:
            if row.role in (Role.USER, Role.SYSTEM) and row.status in ENDED and row.root_id is not None:
                turns[row.root_id].add(row.role)
        in_a_row = 0
        for roles in turns.values():
            in_a_row = 0 if Role.USER in roles else in_a_row + 1
            longest = max(longest, in_a_row)
    return longest


def jobs_are_told_once(truth: Truth) -> None:
    """A call that went on in the background has a result that says so, then one notice of its end (I8)."""
    behind = {
        (row.session_id, row.metadata["job"]): row.seq
        for row in truth.rows
        if row.type is Type.TOOL_RESULT and row.metadata["outcome"] == Outcome.BACKGROUND
    }
    notices = [row for row in truth.rows if row.role is Role.SYSTEM and "job" in row.metadata]
    told = Counter((row.session_id, row.metadata["job"]) for row in notices)
    assert told == Counter(dict.fromkeys(behind, 1)), "a job's end is not told, or twice"
    assert all(row.seq > behind[row.session_id, row.metadata["job"]] for row in notices), "told before its result"


# clears and files


def cleared_whole(notes: Notes, truth: Truth, sessions_dir: Path) -> None:
    """Of a session that was cleared nothing is left, and who speaks later is in another one (M7)."""
    cleared: dict[str, set[str]] = defaultdict(set)
    for note in notes:
        if note.kind == "cleared":
            cleared[note["room"]].add(note["session"])
        elif note.kind == "accepted" and note["is_new"]:
            assert note["session"] not in cleared[note["room"]], "a new message came into a closed session"
    gone = set().union(*cleared.values())
    assert gone.isdisjoint(truth.sessions)
    assert [row for row in truth.rows if row.session_id in gone] == []
    left = {path.name for path in sessions_dir.iterdir()} if sessions_dir.exists() else set[str]()
    assert left.isdisjoint(gone), "the folder of a cleared session is there"
    assert ".trash" not in left, "the trash was not swept"


def files_are_waited_for(notes: Notes, truth: Truth) -> None:
    """No prompt has a file that is still expected, a file is given up after a minute and no sooner, and each is settled
    in the end (M8)."""
    assert [note for note in notes if note.kind == "thinks" and note["missing"]] == []
    came = {note["id"]: note.time for note in notes if note.kind == "accepted"}
    for row in truth.rows:
        assert row.role is not Role.USER or not awaits_attachments(row.metadata)
        if any(one.state is AttachmentState.LATE for one in attachments_in(row.metadata)):
            read = [note.time for note in notes if note.kind == "thinks" and row.id in note["read"]]
            assert min(read) - came[row.id] >= 60 - CLOCK_S, "a file was given up too soon"


def _seq(row: Message) -> int:
    return row.seq
