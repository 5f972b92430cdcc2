"""What has to hold of the commands that calls run: who ends them and how, what is kept of them, what is left of them.

As in `checks`, each takes the notes, or the truth of the end, or both, and raises `AssertionError`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Final

from kesoku_actors.app.graces import STOP_S, divide
from kesoku_actors.harness.notes import Note
from kesoku_actors.protocol import Message, Outcome, Type
from kesoku_actors.tools.shell.kernel import END_GRACE_S
from kesoku_actors.tools.spool import FOLDER
from tests.properties.daemon.checks import CLOCK_S, Notes
from tests.properties.daemon.computer import Computer
from tests.properties.daemon.truth import Truth

HUNT_S: Final = 2.0
"""How long what does not end is hunted, behind the grace."""
OVER: Final = (Outcome.OK, Outcome.ERROR, Outcome.INTERRUPTED)
"""How a call is settled whose command is over, as the program that began it saw."""


def results(truth: Truth) -> Iterator[tuple[str, Outcome, Message]]:
    """Yield every call with a result, and how it went."""
    for row in truth.rows:
        if row.type is Type.TOOL_RESULT:
            assert row.parent_id is not None
            yield row.parent_id, Outcome(row.metadata["outcome"]), row


def signalled_for_a_reason(notes: Notes, truth: Truth) -> None:
    """A process of a command is signalled when its session was forced or cleared since it began, when the program
    stops and no call needs it any more or the grace is over, or by the next life of the program; nobody else's process
    ever is (I3, I7, I8, C3, C7, M7)."""
    jobs = {call for call, outcome, _row in results(truth) if outcome is Outcome.BACKGROUND}
    running: dict[str, Note] = {}
    """By call, as long as its session is left alone."""
    ended: dict[str, float] = {}
    """By session: until when a call that begins is ended with those that run: who starts it has not heard yet."""
    over: set[str] = set()
    stopping: Note | None = None
    for note in notes:
        match note.kind:
            case "begins":
                running, stopping = {}, None
            case "dies" | "rests":
                stopping = note
            case "began" if note.time > ended.get(note["session"], -1.0):
                running[note["call"]] = note
            case "ended" | "killed":
                over.add(note["call"])
            case "forcing" | "clearing":
                ended[note["session"]] = note.time if note.kind == "forcing" else math.inf
                running = {call: one for call, one in running.items() if one["session"] != note["session"]}
            case "stranger":
                raise AssertionError(f"somebody else's process is signalled: {note}")
            case "signal" if note["call"] in running:
                assert stopping is not None, f"signalled for no reason: {note}"
                is_late = note.time - stopping.time >= divide(STOP_S).tools_s - CLOCK_S
                assert is_late or note["call"] in over | jobs, f"signalled before the grace was over: {note}"
            case _:
                pass


def ended_by_the_ladder(notes: Notes, *, in_time: bool) -> None:
    """What is ended is asked once, and killed a grace later and no sooner (I7). For runs in which time passes only when
    nobody can run: `in_time`, or the program was crashed."""
    asked: dict[str, Note] = {}
    by_process: set[int] = set()
    up = defaultdict[str, dict[int, Note]](dict)
    for note in notes:
        for call, first in asked.items() if in_time else ():
            latest = first.time + END_GRACE_S + HUNT_S
            left = [one for one in up[call].values() if one.time <= first.time]
            assert not left or note.time <= latest + CLOCK_S, f"{left} outlived the end of their call"
        match note.kind:
            case "begins":
                asked.clear()
                by_process.clear()
            case "up":
                up[note["call"]][note["pid"]] = note
            case "down":
                up[note["call"]].pop(note["pid"], None)
            case "signal" if note["number"] == SIGTERM:
                assert note["pid"] not in by_process, f"asked twice: {note}"
                by_process.add(note["pid"])
                asked.setdefault(note["call"], note)
            case "signal" if note["number"] == SIGKILL:
                first = asked.get(note["call"], note)
                is_young = up[note["call"]][note["pid"]].time > first.time
                is_due = first is not note and note.time - first.time >= END_GRACE_S - CLOCK_S
                assert is_young or is_due, f"killed and not asked, or too soon: {note}"
            case _:
                pass


def settled_behind_its_end(notes: Notes, truth: Truth) -> None:
    """A result is told when its command is over; of one that was ended, or of an earlier life, when all it started is
    (I7, C3)."""
    told = {row.id: (call, outcome) for call, outcome, row in results(truth)}
    leaders: dict[str, int] = {}
    up = defaultdict[str, set[int]](set)
    for note in notes:
        match note.kind:
            case "up":
                leaders.setdefault(note["call"], note["pid"])
                up[note["call"]].add(note["pid"])
            case "down":
                up[note["call"]].discard(note["pid"])
            case "row" if note["id"] in told:
                call, outcome = told[note["id"]]
                if outcome in (Outcome.INTERRUPTED, Outcome.UNKNOWN):
                    assert not up[call], f"settled while {up[call]} live on: {note}"
                elif outcome is not Outcome.BACKGROUND:
                    assert leaders.get(call) not in up[call], f"settled while its command runs: {note}"
            case _:
                pass


def output_is_whole(truth: Truth, computer: Computer, sessions_dir: Path, *, is_whole: bool = False) -> None:
    """All that a command wrote is in its file, in order, and what the model reads begins with it (I8); of one whose end
    the program did not see, the beginning is. `is_whole`: nothing crashed."""
    for call, outcome, row in results(truth):
        written = computer.written(call)
        if written is None or row.session_id not in truth.sessions:
            continue
        file = sessions_dir / row.session_id / FOLDER / f"{call}.txt"
        kept = file.read_bytes() if file.exists() else b""
        if outcome in OVER or (is_whole and outcome is Outcome.BACKGROUND):
            assert kept == written, f"{kept!r} is kept of {written!r}"
        else:
            assert written.startswith(kept), f"{kept!r} is kept of {written!r}"
        if outcome in OVER:
            said = written.decode().rstrip()
            assert row.content == said or row.content.startswith(f"{said}\n["), f"{row.content!r} is told of {said!r}"


def nothing_is_left(notes: Notes) -> None:
    """A program that has ended in order leaves nothing running that its commands started (C7)."""
    up = set[int]()
    for note in notes:
        match note.kind:
            case "up":
                up.add(note["pid"])
            case "down":
                up.discard(note["pid"])
            case "ends":
                assert not up, f"{up} outlive the program"
            case _:
                pass


def ended_before_it_goes_on(notes: Notes) -> None:
    """What an earlier life left running is ended before the model of its session is asked again (C3)."""
    earlier = set[int]()
    for note, up, sessions in _with_what_is_up(notes):
        if note.kind == "begins":
            earlier = set().union(*up.values())
        elif note.kind == "thinks":
            left = [up[call] & earlier for call, session in sessions.items() if session == note["session"]]
            assert not any(left), f"{left} live on, and the session goes on: {note}"


def cleared_behind_its_end(notes: Notes) -> None:
    """What commands of a session started is over before anything of the session is deleted (M7)."""
    homes: dict[str, str] = {}
    for note, up, sessions in _with_what_is_up(notes):
        if note.kind == "accepted":
            homes[note["id"]] = note["session"]
        elif note.kind == "row" and note["status"] == "removed" and note["id"] in homes:
            left = [pids for call, pids in up.items() if pids and sessions.get(call) == homes[note["id"]]]
            assert not left, f"{left} live on in a session that is deleted: {note}"


def _with_what_is_up(notes: Notes) -> Iterator[tuple[Note, Mapping[str, set[int]], Mapping[str, str]]]:
    """Yield each note with the processes of every call that are up behind it, and the session of every call."""
    up, sessions = defaultdict[str, set[int]](set), dict[str, str]()
    for note in notes:
        match note.kind:
            case "began":
                sessions[note["call"]] = note["session"]
            case "up":
                up[note["call"]].add(note["pid"])
            case "down":
                up[note["call"]].discard(note["pid"])
            case _:
                pass
        yield note, up, sessions
