"""What was carried out, a line for each piece of work, so that it is not done again.

Invariants: a line is of one state of the sources, and counts for no other one; a line that was cut off, as its writer
was killed, is taken away. Two who work at the same time have a file each.
"""

from __future__ import annotations

import hashlib
import json
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from enum import Enum
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any, Final, Generic, TypeVar

import trio
from attrs import asdict, define, evolve, field

from scripts.seeded.server import Piece, carry_out
from scripts.seeded.table import DAEMON, PACKAGE, ROOT
from scripts.seeded.trial import Ended, Finding

P = TypeVar("P", bound=Piece)

_KINDS: Final = frozenset({".py", ".sql", ".toml"})
"""Of the files that decide what a run does."""


_BEGIN: Final = b'{"sources": "'
"""Of each line."""


class Work(Enum):
    """How it ended."""

    DONE = "done"
    LEFT = "the time was over"
    STOPPED = "stopped"


class NoLedger(Exception):
    """A file holds something else."""


def state_of_sources() -> str:
    """Return a digest of the program, its harness and the properties, and of the trio they run on."""
    digest = hashlib.sha256(trio.__version__.encode())
    files = [file for folder in (ROOT / PACKAGE, DAEMON) for file in folder.rglob("*") if file.suffix in _KINDS]
    for file in sorted(files):
        digest.update(f"\n{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


@define(eq=False)
class Ledger(Generic[P]):
    """The findings so far, of these sources."""

    kind: type[P]
    path: Path | None
    """None: it is kept nowhere."""
    found: dict[P, Finding] = field(factory=dict)
    others: int = 0
    """Lines of other sources."""
    sources: str = field(factory=state_of_sources)

    def __attrs_post_init__(self) -> None:
        if self.path is None or not self.path.exists():
            return
        try:
            whole, end, rest = self.path.read_bytes().rpartition(b"\n")
            for line in whole.splitlines():
                self._take(json.loads(line))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NoLedger(f"{self.path} is no file of this kind of work: name another one") from error
        if not _BEGIN.startswith(rest[: len(_BEGIN)]):
            raise NoLedger(f"{self.path} is no file of this kind of work: name another one")
        if rest:
            with self.path.open("r+b") as file:
                file.truncate(len(whole) + len(end))

    def left_of(self, pieces: Iterable[P]) -> list[P]:
        """Return the pieces that are to be done."""
        return [piece for piece in pieces if piece not in self.found]

    def add(self, piece: P, finding: Finding) -> None:
        """Keep what came of a piece."""
        self.found[piece] = finding
        if self.path is not None:
            line = {"sources": self.sources, "piece": asdict(piece), "finding": asdict(finding)}
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def data(self) -> list[dict[str, Any]]:
        """Return it as JSON takes it."""
        return [{**asdict(piece), **asdict(finding)} for piece, finding in self.found.items()]

    def _take(self, line: dict[str, Any]) -> None:
        if line["sources"] != self.sources:
            self.others += 1
            return
        told = line["finding"]
        self.found[self.kind(**line["piece"])] = evolve(Finding(ended=Ended(told.pop("ended"))), **told)


def work_through(ledger: Ledger[P], pieces: Sequence[P], *, jobs: int, minutes: float) -> Work:
    """Carry out what is left of these pieces, and tell of each on standard error; return how it ended.

    Nothing is begun when the minutes are over, and Ctrl-C or SIGTERM end it: what runs then is not kept.
    """
    left, end = ledger.left_of(pieces), monotonic() + 60 * minutes
    if ledger.others:
        print(f"{ledger.others} lines of {ledger.path} are of other sources", file=sys.stderr)

    def within() -> Iterator[P]:
        for piece in left:
            if monotonic() >= end:
                return
            yield piece

    ended, before = Work.DONE, signal.signal(signal.SIGTERM, _stop)
    try:
        with closing(carry_out(within(), jobs)) as done:
            for number, (piece, finding) in enumerate(done, 1):
                ledger.add(piece, finding)
                print(f"[{number}/{len(left)}] {piece} {finding.ended}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        ended = Work.STOPPED
    finally:
        signal.signal(signal.SIGTERM, before)
    many = len(ledger.left_of(pieces))
    if many and ended is Work.DONE:
        ended = Work.LEFT
    print(f"{ended.value}: {many} pieces are left" if many else "all was done", file=sys.stderr)
    return ended


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
