"""What must hold after a kill (C1 to C5, M7), as lists of sentences about what does not. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from scripts.crashes.remains import Remains
from scripts.crashes.script import SCRIPT, TOOLS, Edit, Say

MAY_BE_CUT: Final = frozenset({"cake-1", "pie-1", "log-1"})
"""Messages that a later one interrupts, or that are stopped."""
EDITS: Final = {step.id: step.text for steps in SCRIPT.values() for step in steps if isinstance(step, Edit)}
FILES: Final = {step.id: step.file for steps in SCRIPT.values() for step in steps if isinstance(step, Say)}
OUTCOMES: Final = frozenset({"ok", "error", "interrupted", "unknown", "background"})
_KNOWN_TOOLS: Final = frozenset(name for batch in TOOLS.values() for name in batch)


def after_kill(left: Remains) -> Iterator[str]:
    """What does not hold of the files a killed life left."""
    if left.integrity != "ok":
        yield f"C8: the database is not sound: {left.integrity}"
    yield from _nothing_lost(left)
    yield from _rewritten(left)
    yield from _results(left, are_complete=False)
    yield from _jobs(left, are_complete=False)


def after_term(left: Remains) -> Iterator[str]:
    """What does not hold of the files a life left that was asked to end, when no life before it was killed (C7)."""
    if left.attempts:
        yield f"C7: after an end in order a turn is at attempt {left.attempts}"
    held = [row["external_id"] or row["id"] for row in left.messages if row["status"] == "processing"]
    if held:
        yield f"C7: a life that ended in order kept {held}"


def at_the_end(left: Remains, kills: Sequence[Remains]) -> Iterator[str]:
    """What does not hold when the last life had everything it wanted; `kills` are what each killed life left."""
    yield from after_kill(left)
    yield from _results(left, are_complete=True)
    yield from _jobs(left, are_complete=True)
    yield from _answered(left)
    yield from _tools(left)
    yield from _deliveries(left, kills)
    yield from _cleared(left)


def _nothing_lost(left: Remains) -> Iterator[str]:
    there = {row["id"] for row in left.messages}
    for external_id, (message_id, session_id) in left.posted.items():
        was_cleared = left.sessions.get(session_id) in ("closed", "tombstone")
        if message_id not in there and not was_cleared and external_id not in left.withdrawn:
            yield f"C1: {external_id} was accepted and is lost"


def _rewritten(left: Remains) -> Iterator[str]:
    for row in left.messages:
        external_id = row["external_id"]
        if external_id in left.edited and row["content"] != EDITS[external_id]:
            yield f"M6: {external_id} was edited and reads {row['content']!r}"
        if left.withdrawn.get(external_id):
            yield f"M6: {external_id} was withdrawn and is there"
    for external_id, content in left.attached.items():
        if content != FILES[external_id]:
            yield f"M8: the file of {external_id} was saved and holds {content!r}"


def _results(left: Remains, *, are_complete: bool) -> Iterator[str]:
    calls = {row["id"] for row in left.messages if row["type"] == "tool_call"}
    results = Counter(row["parent_id"] for row in left.messages if row["type"] == "tool_result")
    for call_id, count in results.items():
        if count > 1 or call_id not in calls:
            yield f"O4: call {call_id} has {count} results"
    if are_complete and calls - set(results):
        yield f"O4: calls without a result: {sorted(calls - set(results))}"
    for row in left.messages:
        if row["type"] == "tool_result" and row["metadata"]["outcome"] not in OUTCOMES:
            yield f"M4: a result has the outcome {row['metadata']['outcome']}"


def _jobs(left: Remains, *, are_complete: bool) -> Iterator[str]:
    """A job is told of once, and never before the result of its call (I8)."""
    place = {row["id"]: number for number, row in enumerate(left.messages)}
    result_of = {row["parent_id"]: row["id"] for row in left.messages if row["type"] == "tool_result"}
    for session_id, job, call_id, state in left.jobs:
        told = [row for row in left.messages if (row["session_id"], row["metadata"].get("job")) == (session_id, job)]
        notices = [row["id"] for row in told if row["role"] == "system"]
        if len(notices) != (state == "told"):
            yield f"I8: {job} is {state} and has {len(notices)} notices"
        if notices and place[notices[0]] < place.get(result_of.get(call_id, ""), len(place)):
            yield f"I8: {job} was told of before its result"
        if are_complete and state != "told":
            yield f"I8: {job} is {state} in the end"


def _answered(left: Remains) -> Iterator[str]:
    for row in left.messages:
        if row["role"] != "user":
            continue
        wanted = {"processed", "interrupted"} if row["external_id"] in MAY_BE_CUT else {"processed"}
        if row["status"] not in wanted:
            yield f"C2: {row['external_id']} is {row['status']} ({row['metadata'].get('reason')})"
        answers = [one for one in left.messages if one["root_id"] == row["id"] and one["status"] == "delivered"]
        wanted_answers = 1 if row["root_id"] == row["id"] else 0  # an adopted one is answered with its root
        if row["status"] == "processed" and len(answers) != wanted_answers:
            yield f"C4: {row['external_id']} is processed and has {len(answers)} answers"


def _tools(left: Remains) -> Iterator[str]:
    for tool, count in left.runs.items():
        if count > 1:
            yield f"C3: {tool} ran {count} times"
        if tool not in _KNOWN_TOOLS:
            yield f"{tool!r} is no tool of the script"
    for row in left.messages:
        if row["type"] == "tool_result" and row["metadata"]["outcome"] == "ok":
            tool = row["content"].partition(" ")[0]
            if tool in _KNOWN_TOOLS and not left.runs[tool]:
                yield f"C3: {tool} is said to have run and did not"


def _deliveries(left: Remains, kills: Sequence[Remains]) -> Iterator[str]:
    for row in left.messages:
        parts = [part for part in left.sent if part[0] == row["id"]]
        if row["status"] == "delivered" and not parts:
            yield f"C5: {row['id']} is delivered and was never sent"
        if row["status"] in ("pending", "undeliverable"):
            yield f"C5: {row['id']} is {row['status']}"
    for part, count in left.sent.items():
        excused = sum(part in killed.unrecorded for killed in kills)
        if count > 1 + excused:
            yield f"C5: {part} was sent {count} times, and {excused} kills fell between a send of it and the record"


def _cleared(left: Remains) -> Iterator[str]:
    for session_id in left.cleared:
        if left.sessions.get(session_id) != "tombstone":
            yield f"M7: the cleared session {session_id} is {left.sessions.get(session_id)}"
        if any(row["session_id"] == session_id for row in left.messages):
            yield f"M7: rows of the cleared session {session_id} are left"
        if session_id in left.folders:
            yield f"M7: the folder of the cleared session {session_id} is left"
    if ".trash" in left.folders:
        yield "M7: the trash is not emptied"


def resent(left: Remains) -> int:
    """How many parts were sent more than once."""
    return sum(count - 1 for count in left.sent.values())
