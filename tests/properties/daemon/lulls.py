"""What has to hold of the daemon whenever time passes: nothing that could be done at once is put off.

For runs in which time passes only when nobody can run (`may_tick=False`), without crashes: then whatever is still open
in a lull waits for something that takes time, and these are few: an inference, a tool, a file, a person.
"""

from __future__ import annotations

from attrs import define, field

from kesoku_actors.harness.notes import Note
from kesoku_actors.protocol import ENDED, BusyMode, CallState, Outcome, Status, Type
from tests.properties.daemon.checks import Notes


@define(eq=False)
class Scene:
    """What is the case in one session, as the notes tell it up to a moment."""

    mode: BusyMode
    waiting: dict[str, Note] = field(factory=dict)
    """People's messages that nobody has taken."""
    revs: dict[str, int] = field(factory=dict)
    """What is known of each row."""
    taken: set[str] = field(factory=set)
    """Messages that are of a turn, or ended without one."""
    at_work: set[str] = field(factory=set)
    """Messages of the turn that goes on."""
    last_stop: int = 0
    """The number of the last stop: it covers whatever is open of before."""
    seqs: dict[str, int] = field(factory=dict)
    thinking: set[str] = field(factory=set)
    calls: set[str] = field(factory=set)
    settled: set[str] = field(factory=set)
    """Calls that have an outcome."""
    answered: set[str] = field(factory=set)
    """Calls that have a result."""
    running: set[str] = field(factory=set)
    """Calls that have begun and hold a slot."""
    asked: set[str] = field(factory=set)
    """Calls that a person has to allow."""

    @property
    def unstarted(self) -> set[str]:
        """The calls that are to start."""
        return self.calls - self.settled - self.answered - self.running

    @property
    def is_stopped(self) -> bool:
        """Whether something is open that a stop covers."""
        return any(self.seqs[each] < self.last_stop for each in (*self.at_work, *self.waiting))

    def hear(self, note: Note) -> None:
        """Take note of what happened."""
        match note.kind:
            case "accepted" if note["is_person"] and note["id"] not in self.taken:
                self.waiting[note["id"]], self.seqs[note["id"]] = note, note["seq"]
            case "mode":
                self.mode = note["mode"]
            case "told" | "row" if note["status"] != "removed" and note["rev"] > self.revs.get(note["id"], 0):
                self.revs[note["id"]] = note["rev"]
                self._row(note)
            case "stopped" if note["stop"] is not None:
                self.last_stop = note["stop"]
            case "thinks":
                self.thinking.add(note["inference"])
            case "thought" | "cancelled" | "failed":
                self.thinking.discard(note["inference"])
            case "began":
                self.running.add(note["call"])
            case "ended" | "killed":
                self.running.discard(note["call"])
            case "over":
                self.settled.add(note["call"])
                if note["outcome"] == Outcome.BACKGROUND:
                    self.running.discard(note["call"])
            case "asks":
                (self.asked.add if note["state"] == CallState.WAITING else self.asked.discard)(note["call"])
            case _:
                pass

    def _row(self, note: Note) -> None:
        message_id, status = note["id"], note["status"]
        self.seqs[message_id] = note["seq"]
        if note["root"] is not None or status in ENDED:
            self.taken.add(message_id)
            self.waiting.pop(message_id, None)
        if status == Status.PROCESSING:
            self.at_work.add(message_id)
        elif status in ENDED:
            self.at_work.discard(message_id)
        if note["type"] == Type.TOOL_CALL:
            self.calls.add(message_id)
        elif note["type"] == Type.TOOL_RESULT:
            self.answered.add(note["of"])

    def check(self, now: Note, parallel: int) -> None:
        """See that nothing is put off that could be done now."""
        stopped = self.is_stopped
        tools = bool(self.running)
        interrupted = self.mode is BusyMode.INTERRUPT and bool(self.waiting)
        assert tools or not interrupted, f"somebody interrupts, and only started tools may go on (I2, I9): {now}"
        assert tools or not stopped, f"a stop waits, and only started tools may go on (I7): {now}"
        assert not (interrupted or stopped) or not self.unstarted, f"what has not begun ends at once (I3): {now}"
        assert not (interrupted or stopped) or not self.thinking, f"nobody thinks any more (I2, I7): {now}"
        assert not self.thinking or self.calls <= self.answered, f"an inference goes on without a result (I4): {now}"
        assert len(self.thinking) <= 1, f"two inferences (I1): {now}"
        assert self.at_work or not self.waiting, f"somebody waits, and nothing is done (I6): {now}"
        ready = self.unstarted - self.asked
        assert not ready or len(self.running) >= parallel, (
            f"a slot is free, and a call that may start waits (I1): {now}"
        )


def nothing_is_put_off(notes: Notes, mode: BusyMode, *, parallel: int = 4) -> None:
    """Whenever time passes, whatever is open waits for a tool that has begun, an inference that nobody interrupts, a
    slot, or a person (I1 to I9, T7). For one room."""
    scene = Scene(mode)
    for before, note in zip((None, *notes), notes, strict=False):
        if before is not None and note.time > before.time:
            scene.check(before, parallel)
        scene.hear(note)
