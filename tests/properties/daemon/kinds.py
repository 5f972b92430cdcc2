"""What happened in the runs of a property: how often people did what was drawn, and how often that took effect.

A kind that is drawn and never happens shows nothing, as a fault that never happens does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from attrs import define, field

from kesoku_actors.harness.notes import Note
from kesoku_actors.protocol import Outcome
from tests.properties.daemon.script import Clear, File, Force, Mode, Notice, Race, Repeat, Say, Skew, Stop
from tests.properties.daemon.seams import DaemonWorld

_ACTIONS: Final = {
    Say: "message",
    Race: "message",
    File: "file",
    Stop: "stop",
    Force: "force",
    Clear: "clear",
    Mode: "mode",
    Notice: "notice",
    Repeat: "repeat",
    Skew: "skew",
}
EFFECTS: Final[Mapping[str, Callable[[Note], bool]]] = {
    "message": lambda note: note.kind == "accepted" and note["is_person"] and note["is_new"],
    "file": lambda note: note.kind == "settled",
    "stop": lambda note: note.kind == "stopped" and note["reply"] == "Stop",
    "force": lambda note: note.kind == "forced",
    "clear": lambda note: note.kind == "cleared",
    "mode": lambda note: note.kind == "mode",
    "notice": lambda note: note.kind == "accepted" and not note["is_person"],
    "repeat": lambda note: note.kind == "accepted" and not note["is_new"],
    "skew": lambda note: note.kind == "did" and isinstance(note["action"], Skew),
    "approval": lambda note: note.kind == "answered" and note["counts"],
    "call": lambda note: note.kind in ("ended", "killed"),
    "call ended": lambda note: note.kind == "killed",
    "call in the background": lambda note: note.kind == "over" and note["outcome"] == Outcome.BACKGROUND,
    "inference cut": lambda note: note.kind in ("cancelled", "failed"),
    "end of a life": lambda note: note.kind == "dies",
    "restart": lambda note: note.kind == "begins" and note["life"] > 0,
}
"""By kind: what shows that it took effect."""


@define(eq=False)
class Tally:
    """Counts over the runs of one property."""

    runs: int = 0
    drawn: Counter[str] = field(factory=Counter)
    happened: Counter[str] = field(factory=Counter)
    _last: DaemonWorld | None = None

    def world(self) -> DaemonWorld:
        """Return the world of the next run; that of the one before is counted."""
        self.count()
        self._last = DaemonWorld()
        return self._last

    def count(self) -> None:
        """Count the last run, once."""
        world, self._last = self._last, None
        if world is None:
            return
        self.runs += 1
        for note in world.notes:
            self.happened.update(kind for kind, shows in EFFECTS.items() if shows(note))
            self.drawn.update(_drawn_by(note))

    @property
    def never(self) -> list[str]:
        """The kinds that were drawn and never happened."""
        return sorted(kind for kind in self.drawn if not self.happened[kind])

    def __str__(self) -> str:
        return ", ".join(f"{kind} {self.happened[kind]}" for kind in EFFECTS if self.happened[kind])


def _drawn_by(note: Note) -> Iterator[str]:
    if note.kind == "did" and (kind := _ACTIONS.get(type(note["action"]))):
        yield kind
    elif note.kind == "asks":
        yield "approval"
    elif note.kind == "began":
        yield "call"
    elif note.kind == "dies":
        yield "restart"
