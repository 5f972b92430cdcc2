"""The indexer: an actor that brings the index to where the store is, behind everything else.

It hears of changes as any listener does, and takes them for a hint: what to index it reads from the store, beginning
at the index's own cursor. So it may fail, lag or be restarted at any time. A chat that is over before `Search.quiet_s`
never touches the index; only what was deleted is taken out of it before the end.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Final

import trio
from attrs import field

from kesoku_actors.actors import Cell
from kesoku_actors.gateway import Gateway, Listening
from kesoku_actors.protocol import Removed
from kesoku_actors.search.index import IndexUnusable
from kesoku_actors.search.search import Search
from kesoku_actors.store import StoreBusy
from kesoku_actors.values import define

AGAIN_S: Final = 60.0
"""How long an index that cannot be written is left alone."""
LAST_S: Final = 5.0
"""What taking deleted messages out of the index may take at the end."""


@define(eq=False)
class _News:
    """What has been heard and not been dealt with."""

    bell: trio.Event = field(factory=trio.Event)
    has_deletions: bool = False


async def search_actor(cell: Cell[None], *, search: Search, gateway: Gateway) -> None:
    """Keep the index up to date until stopped."""
    news = _News()
    news.bell.set()  # an earlier life may have left something
    async with aclosing(gateway.listen(hints=False, label="search")) as events:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_hear, events, news)
                nursery.start_soon(_work, search, news)
                cell.started()
                await cell.stopping.wait()
                nursery.cancel_scope.cancel()
            if news.has_deletions:
                with trio.move_on_after(LAST_S, shield=True):
                    await _bring_up(search, news)
        finally:
            with trio.CancelScope(shield=True):
                await search.close()


async def _hear(events: Listening, news: _News) -> None:
    async for event in events:
        news.has_deletions = news.has_deletions or isinstance(event, Removed)
        news.bell.set()


async def _work(search: Search, news: _News) -> None:
    await news.bell.wait()
    await trio.sleep(search.quiet_s)
    is_checked = False
    while True:
        try:
            if not is_checked:
                await search.check()
                is_checked = True
        except IndexUnusable as error:
            search.unusable(error)
        await trio.sleep(search.quiet_s if await _bring_up(search, news) else AGAIN_S)
        await news.bell.wait()


async def _bring_up(search: Search, news: _News) -> bool:
    """Bring the index up to date; false when it cannot be written, or the store not be read, now."""
    news.bell = trio.Event()
    had_deletions, news.has_deletions = news.has_deletions, False
    try:
        await search.catch_up()
    except (IndexUnusable, StoreBusy) as error:
        search.unusable(error)
        news.has_deletions = True
        news.bell.set()
        return False
    except trio.Cancelled:
        news.has_deletions = news.has_deletions or had_deletions
        raise
    search.usable()
    return True
