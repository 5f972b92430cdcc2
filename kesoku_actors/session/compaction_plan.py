"""What a compaction summarises, in which pieces, and whether it was worth it. Pure.

Invariants: only whole turns that have ended and whose calls all have their results, without a gap from the oldest that
is not summarised yet; the first turn that is anything else pins itself and all behind it. The newest turns stay as they
are, as many as fit in the part of the room that is kept for them. A piece is never longer than what can be asked at
once, and no call is parted from its result by its edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kesoku_actors.protocol import Message, Type
from kesoku_actors.protocol.summaries import Spot
from kesoku_actors.session.reach import tokens_in
from kesoku_actors.session.summary_prompt import QUESTION_TOKENS, written
from kesoku_actors.session.units import Placed, Unit, turns, units
from kesoku_actors.values import frozen

START: Final = 0.8
"""Of the room: a prompt longer than that is compacted before it is sent."""
KEPT: Final = 0.5
"""Of what the conversation may be before it is compacted: what stays of the newest turns."""
SUMMARIES: Final = 0.25
"""Of the same: summaries that are longer together are summarised themselves."""
SUMMARY: Final = 0.12
"""Of the same: one summary."""
LEAST_SAVING: Final = 0.1
"""Of the prompt: what saves less is not kept."""
LARGEST_PIECE: Final = 24_000
LARGEST_SUMMARY: Final = 1_200
SMALLEST_SUMMARY: Final = 60
_UNKNOWN_ROOM: Final = 32_000
_THINKING_REPLY: Final = 8_192

Cost = Callable[[Message], float]


@frozen(kw_only=True)
class Sizes:
    """How long things may be for one model, in tokens."""

    summary: int
    reply: int
    """What the model may write for it: one with much room may think first, and thoughts count."""
    piece: float
    together: float
    """Summaries that are read."""
    kept: float

    @property
    def words(self) -> int:
        """Of a summary."""
        return max(30, int(self.summary * 0.6))


@frozen(kw_only=True)
class Piece:
    """A part of the old turns that is summarised at once."""

    first: Spot
    last: Spot
    log: str
    tokens: float
    """Of the rows as they would be read."""


def sizes(room: float | None, frame: float = 0.0, part: float = 1.0) -> Sizes:
    """Return the sizes for a model with this room, of which the frame of each prompt (the system's text, the tools)
    takes a share; `part` of a piece when the model refused a longer one."""
    reply = _THINKING_REPLY if room is not None and room >= _UNKNOWN_ROOM else 0
    room = _UNKNOWN_ROOM if room is None else room
    talk = max(room / 10, START * room - frame)
    summary = int(min(LARGEST_SUMMARY, max(SMALLEST_SUMMARY, SUMMARY * talk)))
    return Sizes(
        summary=summary,
        reply=max(reply, summary * 5 // 4),
        piece=max(2.0 * SMALLEST_SUMMARY, min(LARGEST_PIECE, 0.9 * room - summary - QUESTION_TOKENS) * part),
        together=max(2.0 * summary, SUMMARIES * talk),
        kept=KEPT * talk,
    )


def old_turns(rows: Sequence[Placed], kept: float, cost: Cost, *, is_asked: bool) -> list[Unit]:
    """Return the turns to summarise, oldest first, of rows that are not summarised yet.

    `is_asked`: a person wants it now, so that of the finished turns only the newest stays.
    """
    finished = _finished(rows)
    room = kept - sum(cost(placed.row) for placed in rows[sum(map(len, finished)) :])
    newest = 0
    for turn in reversed(finished[1:] if is_asked else finished):
        room -= sum(cost(placed.row) for placed in turn)
        if room < 0 or (is_asked and newest):
            break
        newest += 1
    return finished[: len(finished) - newest]


def worth(old: Sequence[Unit], size: float, cost: Cost) -> bool:
    """Tell whether summarising these turns can save enough of a prompt of this size."""
    saved = sum(cost(placed.row) for turn in old for placed in turn)
    return bool(old) and saved >= LEAST_SAVING * size


def pieces(old: Sequence[Unit], most: float, cost: Cost) -> Iterator[Piece]:
    """Part turns into pieces whose logs are at most `most` tokens."""
    gathered, size = list[tuple[Unit, str]](), 0.0
    for turn in old:
        for unit in units(turn):
            log = _log(unit, most)
            tokens = tokens_in(log) + 1
            if gathered and size + tokens > most:
                yield _piece(gathered, cost)
                gathered, size = [], 0.0
            gathered.append((unit, log))
            size += tokens
    if gathered:
        yield _piece(gathered, cost)


def _log(unit: Unit, most: float) -> str:
    """Return a unit as it is read, with its texts as long as they may be together."""
    longest = int(most * 4)
    while longest > 32 and tokens_in(written(unit, longest)) >= most:
        longest //= 2
    return written(unit, longest)


def _piece(gathered: Sequence[tuple[Unit, str]], cost: Cost) -> Piece:
    return Piece(
        first=gathered[0][0][0].spot,
        last=gathered[-1][0][-1].spot,
        log="\n".join(text for _, text in gathered),
        tokens=sum(cost(placed.row) for unit, _ in gathered for placed in unit),
    )


def groups(tokens: Sequence[float], most: float) -> list[range]:
    """Return which neighbours are summarised together: as many as fit, of the oldest first; lone ones stay."""
    found, begin, size = list[range](), 0, 0.0
    for index, each in enumerate(tokens):
        if size and size + each > most:
            found.append(range(begin, index))
            begin, size = index, 0.0
        size += each
    found.append(range(begin, len(tokens)))
    return [group for group in found if len(group) > 1]


def _finished(rows: Sequence[Placed]) -> list[Unit]:
    finished = []
    for turn in turns(rows):
        if not _has_ended(turn):
            break
        finished.append(turn)
    return finished


def _has_ended(turn: Unit) -> bool:
    """Tell whether a turn has ended, with a result for every call: an open call pins its turn."""
    calls = {placed.row.id for placed in turn if placed.row.type is Type.TOOL_CALL}
    results = {placed.row.parent_id for placed in turn if placed.row.type is Type.TOOL_RESULT}
    root = next((placed.row for placed in turn if placed.row.id == placed.row.root_id), None)
    return root is not None and root.has_ended and calls <= results
