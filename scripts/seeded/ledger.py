"""What was carried out, a line for each piece of work, so that it is not done again.

Invariants: a line is of one state of the sources, and counts for no other one; a line that was cut off, as its writer
was killed, is taken away, and nothing is changed in a file of something else. What ended without an outcome is kept
to be told, and is to be done again. Two who work at the same time have a file each.
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

import hypothesis
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
    LEFT = "not all was done"
    STOPPED = "stopped"


class NoLedger(Exception):
    """A file holds something else."""


def state_of_sources(root: Path = ROOT) -> str:
    """Return a digest of all that decides what a piece finds.

    That is the program, its harness, the properties and who explores them, and the Python and libraries they run on.
    """
    digest = hashlib.sha256(f"{sys.version}\n{trio.__version__}\n{hypothesis.__version__}".encode())
    folders = (root / PACKAGE, root / DAEMON.relative_to(ROOT), root / Path(__file__).parent.relative_to(ROOT))
    for file in sorted(file for folder in folders for file in folder.rglob("*") if file.suffix in _KINDS):
        digest.update(f"\n{file.relative_to(root)}\n".encode() + file.read_bytes())
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
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise NoLedger(f"{self.path} is no file of this kind of work: name another one") from error
        if not _is_cut_off(rest):
            raise NoLedger(f"{self.path} is no file of this kind of work: name another one")
        if rest:
            with self.path.open("r+b") as file:
                file.truncate(len(whole) + len(end))

    def left_of(self, pieces: Iterable[P]) -> list[P]:
        """Return the pieces that are to be done: those that nothing is known of."""
        return [piece for piece in pieces if piece not in self.found or not self.found[piece].is_known]

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
        piece, told = line["piece"], line["finding"]
        if line["sources"] != self.sources:
            self.others += 1
            return
        self.found[self.kind(**piece)] = evolve(Finding(ended=Ended(told.pop("ended"))), **told)


def _is_cut_off(tail: bytes) -> bool:
    """Return whether this is the begin of a line of a ledger, or nothing."""
    try:
        json.loads(tail)
    except ValueError:
        return _BEGIN.startswith(tail[: len(_BEGIN)])
    return False


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
                print(f"[{number}/{len(left)}] {piece} {finding.short}", file=sys.stderr, flush=True)
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
