"""The face of search: it keeps the index up to date and answers from it.

Invariants:

* the store's reader is all it has of the store: it can neither change nor hold up a message;
* each step, a batch of rows or a query, is one call in a thread, and no two run at once;
* an index that is damaged, gone, of another store or of another format is made anew, and people are told once; one
  that cannot be written is told of once, and searched as it is;
* what is found is read from the store, as it is now: a message that has left it is never shown, wherever the index
  stands, and neither is one of a session that is being cleared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import trio
from attrs import field

from kesoku_actors.errors import Fault
from kesoku_actors.log import Logger
from kesoku_actors.protocol import Message, SessionInfo
from kesoku_actors.search.excerpt import Excerpt, excerpt
from kesoku_actors.search.index import (
    EVERYWHERE,
    Index,
    IndexDamaged,
    IndexUnusable,
    Scope,
    discard,
    open_index,
    text_of,
)
from kesoku_actors.search.query import parse
from kesoku_actors.store import Reader
from kesoku_actors.store.access import in_thread
from kesoku_actors.values import define, frozen

T = TypeVar("T")

BATCH: Final = 256
"""Rows of the store that one step takes at most."""
MOST_HITS: Final = 100


@frozen(kw_only=True)
class Hit:
    """A message that was found."""

    message: Message
    session: SessionInfo
    excerpt: Excerpt


@define(eq=False, kw_only=True)
class Search:
    """One process's way to the index at `path`; without a path the index lives in memory, for one search."""

    path: Path | None
    reader: Reader
    log: Logger
    pause_s: float = 0.01
    """Between two batches: others want the processor too."""
    quiet_s: float = 1.0
    """How long the indexer gathers changes: who streams an answer is not slowed down by every word of it."""
    _index: Index | None = field(default=None, init=False)
    _one: trio.Lock = field(factory=trio.Lock, init=False)
    _is_told: bool = field(default=False, init=False)

    async def catch_up(self) -> None:
        """Bring the index to where the store is. Raises `IndexUnusable` and what the reader does."""
        store = await self.reader.birth()
        anchor = await self._step(Index.newest)
        if anchor is not None and not await self._is_of_store(*anchor):
            await self._anew()
        while True:
            known, rev = await self._step(Index.cursor)
            batch = await self.reader.changes(rev, BATCH)
            if known not in (None, store) or batch.rev < rev:
                await self._anew()
            elif batch.rev == rev:
                return
            else:
                await self._step(partial(Index.take, store=store, batch=batch))
                await trio.sleep(self.pause_s)

    async def find(self, text: str, scope: Scope = EVERYWHERE, limit: int = 10) -> tuple[Hit, ...]:
        """Return the messages that match what a person typed, the best first. Raises as `catch_up` does."""
        query, limit = parse(text), max(1, min(limit, MOST_HITS))
        if not query.expression:
            return ()
        ids = await self._step(lambda index: index.find(query.expression, scope, limit))
        return tuple(
            Hit(message=message, session=session, excerpt=excerpt(text_of(message), query.parts))
            for message, session in await self.reader.in_open_sessions(ids)
        )

    async def lag(self) -> int:
        """Return how many changes of the store the index does not know yet, at most. Raises as `catch_up` does."""
        _, rev = await self._step(Index.cursor)
        return max(0, await self.reader.head() - rev)

    async def check(self) -> None:
        """Look whether an index that is there is sound, and make it anew if not. Raises `IndexUnusable`."""
        if self.path is not None and self.path.exists():
            await self._step(Index.check)

    async def close(self) -> None:
        """Close the file; a later call opens it again."""
        async with self._one:
            await self._in_thread(self._let_go)

    def unusable(self, error: Fault) -> None:
        """Tell people, once, that the index cannot be kept up to date."""
        if not self._is_told:
            self.log.warning("search does not find the newest messages", error=str(error))
        self._is_told = True

    def usable(self) -> None:
        """Take note that the index could be written again."""
        self._is_told = False

    async def _is_of_store(self, message_id: str, seq: int) -> bool:
        """Tell whether the store knows the index's newest entry: a store that was put back may not."""
        message = await self.reader.message(message_id)
        return message.seq == seq if message is not None else await self.reader.is_removed(message_id)

    async def _anew(self) -> None:
        """Begin again: what is there was made from another store."""
        async with self._one:
            await self._in_thread(self._discard)
        self._tell("it was made from another store")

    async def _step(self, step: Callable[[Index], T]) -> T:
        """Run a step on the index, on a new one if it is damaged."""
        async with self._one:
            result, damage = await self._in_thread(partial(self._run, step))
        if damage is not None:
            self._tell(damage)
        return result

    def _tell(self, why: str) -> None:
        self.log.warning("the search index is made anew", reason=why, path=str(self.path))

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await in_thread(call)

    def _run(self, step: Callable[[Index], T]) -> tuple[T, str | None]:
        try:
            return step(self._open()), None
        except IndexDamaged as error:
            self._discard()
            try:
                return step(self._open()), str(error)
            except IndexDamaged as again:
                raise IndexUnusable(f"the search index cannot be used: a new one is damaged too: {again}") from again

    def _open(self) -> Index:
        if self._index is not None and not self._index.is_there():
            self._let_go()
        if self._index is None:
            self._index = open_index(self.path)
        return self._index

    def _discard(self) -> None:
        self._let_go()
        if self.path is not None:
            discard(self.path)

    def _let_go(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None
