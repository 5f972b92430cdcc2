"""What has to hold of a run of the daemon: the checkers of the harness over its notes, and looks at what is stored.

Each takes the notes, or the truth of the end, or both, and raises `AssertionError`. A row that a later life shows
again, as it was, counts once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from attrs import evolve

from kesoku_actors.harness.checks import ordered, terminal
from kesoku_actors.harness.notes import Note
from kesoku_actors.protocol import (
    ENDED,
    AttachmentState,
    Message,
    Outcome,
    Role,
    Status,
    Type,
    attachments_in,
    awaits_attachments,
)
from tests.properties.daemon.platform import FILE
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


def by_seq(row: Message) -> int:
    """Return the number of a row, to sort by."""
    return row.seq


# messages


def ends_once(notes: Notes, truth: Truth) -> None:
    """Every message of a person that was accepted comes to one end and to no second one (C1); what is deleted may have
    ended before."""
    accepted = {note["id"] for note in notes if note.kind == "accepted" and note["is_person"]}
    assert accepted - truth.removed == {row.id for row in people(truth)}, "an accepted message is lost"
    assert all(row.status in ENDED for row in people(truth))
    last: dict[str, str] = {}
    told: list[Note] = []
    for note in rows_seen(notes):
        before, status = last.get(note["id"], ""), note["status"]
        last[note["id"]] = status
        # A file of a message may be saved when its turn has ended, and what has ended may be cleared.
        if note["id"] not in accepted:
            continue
        if not before and status != "pending_agent":  # who lags hears of a row as it is when it is read
            told.append(evolve(note, kind="pending_agent"))
        if status != before and not (status == "removed" and before in ENDED):
            told.append(evolve(note, kind=status))
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


def seen_before(notes: Notes, truth: Truth) -> None:
    """What comes again is answered with what is stored, as it was sent, or with `Gone` when none is stored any more
    (M5); the id seen last in a channel is that of the last message that was stored (M8)."""
    ids: dict[str, str] = {}
    last: dict[str, tuple[int, str]] = {}
    new: list[str] = []
    for note in notes:
        if note.kind == "accepted":
            ids.setdefault(note["external"], note["id"])
            last[note["room"]] = max(last.get(note["room"], (0, "")), (note["seq"], note["external"]))
            new += [note["external"]] * note["is_new"]
        elif note.kind == "refused":
            assert note["reply"] == "Gone", f"something else is said of what was seen and is no more: {note}"
            assert ids.get(note["external"]) in truth.removed, f"what is stored counts as gone: {note}"
    assert [external for external, count in Counter(new).items() if count > 1] == [], "it was new twice"
    externals = {row.id: row.external_id for row in truth.rows}
    kept = {external: id for external, id in ids.items() if id in externals}
    assert {external: externals[id] for external, id in kept.items()} == {external: external for external in kept}
    assert truth.last_seen == {room: external for room, (_seq, external) in last.items()}, "the last one seen"


def numbered(notes: Notes, truth: Truth) -> None:
    """A number is given once, also over crashes and deletions, and time never runs back within a session (M1)."""
    states = dict[int, tuple[str, str]]()
    given = dict[int, str](truth.numbers)

    def is_its(number: int, whose: str) -> None:
        assert given.setdefault(number, whose) == whose, f"the number {number} was given to {given[number]} and {whose}"

    for note in rows_seen(notes):
        state = (note["id"], note["status"])
        assert states.setdefault(note["rev"], state) == state, f"the rev {note['rev']} was given twice"
        is_its(note["rev"], note["id"])
    for note in notes:
        if note.kind == "accepted":
            is_its(note["seq"], note["id"])
    for row in truth.rows:
        is_its(row.seq, row.id)
        is_its(row.rev, row.id)
    assert len({row.rev for row in truth.rows}) == len({row.seq for row in truth.rows}) == len(truth.rows)
    for session_id in truth.sessions:
        times = [row.timestamp for row in sorted(truth.rows, key=by_seq) if row.session_id == session_id]
        assert times == sorted(times), "a timestamp is before the last one of the session"


def one_open_session(truth: Truth) -> None:
    """A channel has one open session at most (M6)."""
    open_ones = Counter(info.channel_id for info in truth.sessions.values() if info.state == "open")
    assert [channel for channel, count in open_ones.items() if count > 1] == []


def in_its_channel(notes: Notes, truth: Truth) -> None:
    """What was said in a channel is in a session of that channel (M6)."""
    channels = {row.id: row.channel_id for row in truth.rows}
    strayed = [
        note for note in notes if note.kind == "accepted" and channels.get(note["id"], note["room"]) != note["room"]
    ]
    assert strayed == [], "a message is in the session of another channel"


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
    attempts = Counter[tuple[str, int]]()
    for note in notes:
        if note.kind == "sending":
            part = (note["message"], note["part"])
            assert note["attempt"] > attempts[part], f"an attempt was not counted: {note}"
            attempts[part] = note["attempt"]
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
    """A listener hears changes in `rev` order, and of every row how it is in the end, or that it is no more (B1)."""
    ordered([note for note in notes if note.kind == "row"], "row", key="rev", by="life", strictly=True).demand()
    lives = [note["life"] for note in notes if note.kind == "begins"]
    heard = {note["id"]: note["rev"] for note in notes if note.kind == "row" and note["life"] == lives[-1]}
    assert {row.id: row.rev for row in truth.rows if heard.get(row.id) != row.rev} == {}, "a change was not heard"
    gone = {note["id"] for note in notes if note.kind == "row" and note["status"] == "removed"}
    assert truth.removed - gone == set(), "a removal was not heard"


# sessions at rest, pieces of answers


def sessions_rest(notes: Notes) -> None:
    """When everything is done no session has a worker, and no task of one is left (B3)."""
    rests = [note for note in notes if note.kind == "rests"]
    assert rests
    assert [note for note in rests if note["workers"] or note["children"]] == []


def deltas_fit(notes: Notes, truth: Truth) -> None:
    """Pieces of an answer come in order, a later attempt replaces an earlier one, and what was stored in the end says
    the same (B2)."""
    whole = {note["inference"] for note in notes if note.kind == "thought"}
    stored = defaultdict[tuple[str, str], list[str]](list)
    for row in truth.rows:
        if row.role is Role.ASSISTANT and row.root_id is not None:
            stored[row.root_id, row.type.value].append(row.content)
    pieces = [note for note in notes if note.kind == "delta"]
    begun = {note["inference"] for note in notes if note.kind == "thinks"}
    attempts: dict[str, tuple[int, str]] = {}
    ends = defaultdict[tuple[str, str], int](int)
    for note in pieces:
        assert note["inference"] in begun, f"a piece of no inference: {note}"
        attempt, inference = attempts.get(note["root"], (0, ""))
        is_next = note["inference"] != inference
        assert note["attempt"] - attempt >= is_next, f"a piece of an attempt that is over: {note}"
        assert is_next or note["attempt"] == attempt, f"an inference is two attempts: {note}"
        attempts[note["root"]] = note["attempt"], note["inference"]
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


def nothing_crashed(notes: Notes, *, but: str = "") -> None:
    """No part of the program crashed, not even one that is begun again then (C9, C10), `but` for one. What stands for
    adapters may: a delivery that the store does not answer goes on with the next try."""
    paths = {note["path"] for note in notes if note.kind == "crashed"} - {but}
    assert [path for path in paths if not path.startswith("root/broker/edges/")] == []


# clears and files


def cleared_whole(notes: Notes, truth: Truth, sessions_dir: Path) -> None:
    """Of a session that was cleared nothing is left, nothing of it runs when its rows go, and who speaks later is in
    another one (M7)."""
    cleared: dict[str, set[str]] = defaultdict(set)
    for note in notes:
        if note.kind == "cleared":
            cleared[note["room"]].add(note["session"])
        elif note.kind == "accepted" and note["is_new"]:
            assert note["session"] not in cleared[note["room"]], "a new message came into a closed session"
    gone = set().union(*cleared.values())
    assert gone.isdisjoint(truth.sessions)
    said = {note["id"] for note in notes if note.kind == "accepted" and note["session"] in gone}
    assert said <= truth.removed, "nothing tells that it was there"
    assert truth.strayed == set(), "something is left that belongs to nothing"
    nothing_runs_on(notes)
    assert [row for row in truth.rows if row.session_id in gone] == []
    left = {path.name for path in sessions_dir.iterdir()} if sessions_dir.exists() else set[str]()
    assert left.isdisjoint(gone), "the folder of a cleared session is there"
    assert ".trash" not in left, "the trash was not swept"


def nothing_runs_on(notes: Notes) -> None:
    """What was begun in a session has ended when its rows are deleted (M7)."""
    sessions: dict[str, str] = {}
    running = defaultdict[str, set[str]](set)
    for note in notes:
        match note.kind:
            case "begins" | "dies":
                running.clear()
            case "accepted":
                sessions[note["id"]] = note["session"]
            case "began":
                running[note["session"]].add(note["call"])
            case "ended" | "killed":
                running[note["session"]].discard(note["call"])
            case "row" if note["status"] == "removed" and note["id"] in sessions:
                assert not running[sessions[note["id"]]], f"it is deleted while something of it runs: {note}"
            case _:
                pass


def files_are_waited_for(notes: Notes, truth: Truth) -> None:
    """A prompt waits for each file that is still expected, for a minute and no longer; each is settled once, and named
    where it can be read (M8). For runs in which time passes only when nobody can run."""
    assert [note for note in notes if note.kind == "thinks" and note["missing"]] == []
    rows = {row.id: row for row in truth.rows}
    files = {row.id: attachments_in(row.metadata) for row in truth.rows if row.role is Role.USER}
    late = {id for id, found in files.items() if any(one.state is AttachmentState.LATE for one in found)}
    came = {note["id"]: note for note in notes if note.kind == "accepted"}
    last: dict[str, float] = {}
    rooms: dict[str, str] = {}
    for note in notes:
        match note.kind:
            case "thinks":
                waited_s = note.time - last[note["session"]]
                missing = late.intersection(note["read"])
                assert waited_s <= 60 * bool(missing) + CLOCK_S, f"it waited {waited_s} s: {note}"
                early = [id for id in missing if note.time - came[id].time < 60 - CLOCK_S]
                assert early == [], f"a file was given up too soon: {note}"
            case "accepted":
                rooms[note["room"]] = note["session"]
            case _:
                pass
        if (session := _touched(note, came, rooms)) is not None:
            last[session] = note.time
    for id, found in files.items():
        assert not awaits_attachments(rows[id].metadata)
        for one in found:
            assert rows[id].content.count(one.reference) == 1, f"its file is not named: {rows[id]}"
            assert one.path in (None, FILE), "it was settled twice"
    settled = {note["id"] for note in notes if note.kind == "settled" and note["is_there"]}
    assert [id for id, found in files.items() if id in settled for one in found if one.path is None] == []
    named = [row for row in truth.rows if row.role is Role.SYSTEM and attachments_in(row.metadata)]
    arrived = [one.path for id in late for one in files[id] if one.path is not None]
    assert sorted(one.path or "" for row in named for one in attachments_in(row.metadata)) == sorted(map(str, arrived))
    assert [row for row in named if row.wakes] == [], "a file that came late wakes the model"


def _touched(note: Note, came: Mapping[str, Note], rooms: Mapping[str, str]) -> str | None:
    """Return the session whose next prompt may be waited for from now on."""
    match note.kind:
        case "accepted" | "thinks" | "thought" | "cancelled" | "ended":
            return str(note["session"])
        case "settling":
            return str(came[note["id"]]["session"])
        case "mode":
            return rooms.get(note["room"])
        case _:
            return None
