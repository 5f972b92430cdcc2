"""The preparation of a history, kept from request to request: a long talk costs no more than a short one. Pure.

It grows with the lists of a history, which it shares. Finished turns are prepared once; a row that changes takes back
those from its turn on. Invariant: what it gives equals `prepare` of the same rows. A turn that has ended never runs
again, so the one that runs is always behind those that are kept.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from attrs import field

from kesoku_actors.llm.port import StepContent
from kesoku_actors.protocol import Message
from kesoku_actors.protocol.summaries import Spot, Summary
from kesoku_actors.session.preparation import (
    WORTH,
    bare,
    finished,
    misses_its_file,
    savable,
    shown_summaries,
    summarised_up_to,
)
from kesoku_actors.session.reach import row_tokens
from kesoku_actors.values import define, frozen

Cost = Callable[[Message], float]


@frozen(kw_only=True)
class Ready:
    """What a request is made of, and how many tokens its rows are."""

    rows: tuple[Message, ...]
    steps: tuple[StepContent, ...]
    wholes: tuple[Message, ...]
    tokens: float


@frozen(kw_only=True)
class _Turn:
    """A finished turn, and what is true up to its end."""

    begin: int
    end: int
    """Of its rows in the history."""
    shown: int
    """Rows prepared."""
    tokens: float
    old: int
    """Turns that are old."""
    gathered: int
    """Characters that would go, were what came since shortened."""


_NONE = _Turn(begin=0, end=0, shown=0, tokens=0.0, old=0, gathered=0)


@define(eq=False, kw_only=True)
class KeptPreparation:
    """The finished turns of one history as they are read."""

    rows: list[Message]
    spots: list[Spot]
    steps: list[StepContent]
    _turns: list[_Turn] = field(factory=list, init=False)
    _shown: list[Message] = field(factory=list, init=False)
    _wholes: list[tuple[int, Message]] = field(factory=list, init=False)
    """Each with the number of its turn."""
    _old: int = field(default=0, init=False)
    """Turns whose long results are shown shortened."""
    _bare: list[StepContent] = field(factory=list, init=False)

    def changed(self, index: int) -> None:
        """Take note that the row at this place of the history is another one, or new."""
        while self._turns and self._turns[-1].end >= index:
            self._turns.pop()
        if len(self._turns) < self._old:
            self._forget()
        else:
            del self._shown[self._last.shown :]

    def ready(self, summaries: Sequence[Summary], running: str, cost: Cost = row_tokens) -> Ready:
        """Return what the turn with the root `running` reads, and what `cost` says of its length."""
        self._grow(running, cost)
        summarised = summarised_up_to(summaries)
        hidden = bisect_right(self._turns, summarised, key=lambda turn: self.spots[turn.begin])
        before = self._turns[hidden - 1] if hidden else _NONE
        like = shown_summaries(summaries, self.rows[0]) if self.rows else []
        tail = [*self._running(running)]
        front = [placed.row for placed in like]
        tokens = self._last.tokens - before.tokens + sum(map(cost, front)) + sum(map(cost, tail))
        return Ready(
            rows=(*front, *self._shown[before.shown :], *tail),
            steps=(*self._bare, *self.steps[len(self._bare) :]),
            wholes=tuple(row for turn, row in self._wholes if turn >= hidden),
            tokens=tokens,
        )

    @property
    def _last(self) -> _Turn:
        return self._turns[-1] if self._turns else _NONE

    def _forget(self) -> None:
        self._turns.clear()
        self._shown.clear()
        self._wholes.clear()
        self._old = 0

    def _running(self, running: str) -> Iterator[Message]:
        for row in self.rows[self._last.end :]:
            if row.root_id != running:
                return
            yield row

    def _grow(self, running: str, cost: Cost) -> None:
        while self._last.end < len(self.rows) and self.rows[self._last.end].root_id != running:
            self._turns.append(self._turn(self._last, cost))
        if self._last.old > self._old:
            self._shorten(self._last.old, cost)
        self._strip(running)

    def _turn(self, before: _Turn, cost: Cost) -> _Turn:
        """Prepare the turn that begins where the one before ended."""
        begin = end = before.end
        root_id = self.rows[begin].root_id
        while end < len(self.rows) and self.rows[end].root_id == root_id:
            end += 1
        rows = self.rows[begin:end]
        tokens = self._show(rows, cost, is_old=False)
        gathered = before.gathered + savable(rows)
        is_worth = gathered >= WORTH
        return _Turn(
            begin=begin,
            end=end,
            shown=len(self._shown),
            tokens=before.tokens + tokens,
            old=len(self._turns) + 1 if is_worth else before.old,
            gathered=0 if is_worth else gathered,
        )

    def _show(self, rows: Sequence[Message], cost: Cost, *, is_old: bool) -> float:
        shown = [row for each in rows if (row := finished(each, is_old=is_old)) is not None]
        self._shown += shown
        return sum(map(cost, shown))

    def _shorten(self, old: int, cost: Cost) -> None:
        """Prepare anew what has become old, and all behind it."""
        turns = self._turns[self._old :]
        del self._turns[self._old :]
        del self._shown[self._last.shown :]
        for turn in turns:
            is_old, rows = len(self._turns) < old, self.rows[turn.begin : turn.end]
            before = self._last
            tokens = before.tokens + self._show(rows, cost, is_old=is_old)
            if is_old:
                self._wholes += ((len(self._turns), row) for row in rows if misses_its_file(row))
            fields = {"old": turn.old, "gathered": turn.gathered}
            self._turns.append(_Turn(begin=turn.begin, end=turn.end, shown=len(self._shown), tokens=tokens, **fields))
        self._old = old

    def _strip(self, running: str) -> None:
        """Take the native content of the steps of finished turns away; steps come in the order of their turns."""
        mine = {row.id for row in self._running(running)}
        for step in self.steps[len(self._bare) :]:
            if mine.intersection(step.message_ids):
                return
            self._bare.append(bare(step))
