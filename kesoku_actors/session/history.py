"""A session's history as the model reads it, decoded once and grown by appending. Pure.

Invariants (O1): messages stand by (seq of their turn's root, place); a message without a root is not part of it;
a notice to people never is. A row that comes again, changed, takes the place of its earlier state, an older state never
that of a newer one. Since a turn's rows come in the order of their places and turns do not interleave, nearly every row
is appended.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from attrs import field

from kesoku_actors.llm.kept_talk import KeptTalks
from kesoku_actors.llm.port import StepContent
from kesoku_actors.protocol import LEAVES, Message, Role, StoredStep, ToolSchema, awaits_attachments
from kesoku_actors.protocol.summaries import Spot, Summary
from kesoku_actors.session.kept_preparation import KeptPreparation
from kesoku_actors.session.ladder import NOTHING_CUT, Cut
from kesoku_actors.session.units import Placed
from kesoku_actors.store import Commit, Committed
from kesoku_actors.values import define


@define(eq=False)
class History:
    """The rows of one session in order, and the native content of its steps."""

    rows: list[Message] = field(factory=list)
    steps: list[StepContent] = field(factory=list)
    summaries: tuple[Summary, ...] = ()
    """All of the session's, each before those it stands for."""
    cut: Cut = NOTHING_CUT
    """How far what is read of it had to be cut."""
    frame: float = 0.0
    """Tokens of a request beside the history, as it was sent last."""
    framed: tuple[str, tuple[ToolSchema, ...]] = ("", ())
    """The system prompt and the tools that are so many."""
    talks: KeptTalks = field(factory=KeptTalks)
    """What models were sent of it."""
    kept: frozenset[str] = frozenset()
    """Results shown shortened whose whole was kept in a file."""
    prepared: KeptPreparation = field(init=False)
    _keys: list[Spot] = field(factory=list)
    _root_seqs: dict[str, int] = field(factory=dict)
    _by_id: dict[str, Message] = field(factory=dict)
    _awaiting: dict[str, None] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.prepared = KeptPreparation(rows=self.rows, spots=self._keys, steps=self.steps)

    @property
    def placed(self) -> list[Placed]:
        """The rows, each with where it stands."""
        return list(map(Placed, self._keys, self.rows))

    @property
    def awaiting(self) -> tuple[str, ...]:
        """The messages that still await an attachment (M8), in the order they came."""
        return tuple(self._awaiting)

    def add(self, rows: Iterable[Message]) -> None:
        """Take rows that a commit inserted or changed, in `rev` order."""
        for row in rows:
            if row.root_id == row.id:
                self._root_seqs[row.id] = row.seq
        for row in rows:
            if row.root_id is None or row.place is None or not reads(row):
                continue
            known = self._by_id.get(row.id)
            if known is not None and known.rev > row.rev:
                continue
            self._by_id[row.id] = row
            if awaits_attachments(row.metadata):
                self._awaiting[row.id] = None
            else:
                self._awaiting.pop(row.id, None)
            self._place((self._root_seqs[row.root_id], row.place), row)

    def changed(self, row: Message) -> None:
        """Take a row of which the broadcaster tells: mostly one of our own commits, known already."""
        if row.root_id in self._root_seqs and (row.id not in self._by_id or self._by_id[row.id].rev < row.rev):
            self.add((row,))

    def add_steps(self, steps: Iterable[StoredStep]) -> None:
        """Take steps in order; only one with native content is kept."""
        self.steps += [
            StepContent(
                provider=stored.step.provider,
                model=stored.step.model,
                native=stored.step.native,
                message_ids=stored.message_ids,
            )
            for stored in steps
            if stored.step.native is not None
        ]

    def committed(self, commit: Commit, reply: Committed) -> None:
        """Take what a commit of this session's worker did. Sent twice it changes nothing the second time."""
        self.add(reply.rows)
        if commit.step is not None and commit.root_id is not None:
            step = StoredStep(root_id=commit.root_id, index=reply.steps, step=commit.step, message_ids=reply.said)
            self.add_steps([step])

    def summarise(self, summaries: tuple[Summary, ...]) -> None:
        """Take the summaries as they are stored. New ones make room, so that nothing need be cut any more.

        A tree only grows, so a smaller one is an older reading.
        """
        if len(summaries) > len(self.summaries):
            self.summaries, self.cut = summaries, NOTHING_CUT

    def message(self, message_id: str) -> Message:
        """Return a row of the history. Raises `KeyError`."""
        return self._by_id[message_id]

    def _place(self, key: Spot, row: Message) -> None:
        if not self._keys or key > self._keys[-1]:
            self._keys.append(key)
            self.rows.append(row)
            return
        index = bisect_left(self._keys, key)
        self.prepared.changed(index)
        if self._keys[index] == key:
            self.rows[index] = row
        else:
            self._keys.insert(index, key)
            self.rows.insert(index, row)


def reads(row: Message) -> bool:
    """Tell whether the model reads a row: all but the notices to people."""
    return not (row.role is Role.SYSTEM and row.status in LEAVES)
