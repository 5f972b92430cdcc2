"""`history search`: also while another process works on the store, which it neither owns nor changes (C6).

It brings the index up to date first, whoever else does so. Where the index cannot be written it makes one in memory,
for this search alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

import trio

from kesoku_actors.adapters.terminal.harmless import harmless, one_line
from kesoku_actors.app.history.finding import reading
from kesoku_actors.app.history.printing import is_coloured, write
from kesoku_actors.app.prelude import stderr_log
from kesoku_actors.app.search import index_path
from kesoku_actors.app.settings import Settings
from kesoku_actors.clock import World
from kesoku_actors.log import Logger, mask_secrets, write_if_open
from kesoku_actors.search import Hit, IndexUnusable, Search
from kesoku_actors.store import Reader
from kesoku_actors.values import frozen

_MANY: Final = 5_000
"""Changes that take a moment to index: a person should know why nothing comes."""


@frozen(kw_only=True)
class SearchRequest:
    """Search all sessions."""

    settings: Settings
    query: str
    limit: int = 10
    json: bool = False


def search_history(request: SearchRequest, world: World) -> int:
    """Print what was found, the best first, and return the exit code. Raises `IndexUnusable`, store faults."""
    mask = mask_secrets(request.settings.secrets())
    sink, level = stderr_log(request.settings, False)
    log = Logger(sink=sink, wall=world.clock.wall, level=level)
    hits = trio.run(_find, request, log)
    for text in _as_json(hits) if request.json else _as_lines(hits, coloured=is_coloured()):
        write(mask(text) + "\n")
    if not hits and not request.json:
        write("Nothing was found.\n")
    return 0


async def _find(request: SearchRequest, log: Logger) -> tuple[Hit, ...]:
    async with reading(request.settings) as reader:
        if reader is None:
            return ()
        search = Search(path=index_path(request.settings.workspace.db_path), reader=reader, log=log, pause_s=0.0)
        try:
            return await _up_to_date(search, request)
        except IndexUnusable as error:
            await search.close()
            log.warning("the search index cannot be kept; one is made for this search alone", error=str(error))
            return await _in_memory(reader, request, log)
        finally:
            await search.close()


async def _in_memory(reader: Reader, request: SearchRequest, log: Logger) -> tuple[Hit, ...]:
    search = Search(path=None, reader=reader, log=log, pause_s=0.0)
    try:
        return await _up_to_date(search, request)
    finally:
        await search.close()


async def _up_to_date(search: Search, request: SearchRequest) -> tuple[Hit, ...]:
    behind = await search.lag()
    if behind > _MANY:
        write_if_open(sys.stderr, f"kesoku-actors: indexing about {behind:,} changes first\n")
    await search.catch_up()
    return await search.find(request.query, limit=request.limit)


def _as_json(hits: Iterable[Hit]) -> Iterator[str]:
    for hit in hits:
        message = hit.message
        shown = {
            "session": message.session_id,
            "title": hit.session.title,
            "channel": f"{message.chatbot_id}/{message.channel_id}",
            "message": message.id,
            "root": message.root_id,
            "sender": message.sender,
            "role": message.role.value,
            "type": message.type.value,
            "time": datetime.fromtimestamp(message.timestamp, UTC).isoformat(timespec="seconds"),
            "excerpt": hit.excerpt.text,
            "matches": hit.excerpt.marks,
        }
        yield json.dumps(shown, ensure_ascii=False)


def _as_lines(hits: Iterable[Hit], *, coloured: bool) -> Iterator[str]:
    for hit in hits:
        message = hit.message
        when = datetime.fromtimestamp(message.timestamp).strftime("%Y-%m-%d %H:%M")
        head = f"{message.session_id}  {when}  {one_line(message.sender)}  {one_line(hit.session.title)}".rstrip()
        yield f"\x1b[2m{head}\x1b[0m" if coloured else head
        yield f"  {_marked(hit) if coloured else one_line(hit.excerpt.text)}"


def _marked(hit: Hit) -> str:
    """Return the excerpt with what was searched for in bold."""
    text, parts, at = hit.excerpt.text, [], 0
    for begin, end in hit.excerpt.marks:
        parts += [harmless(text[at:begin]), f"\x1b[1;33m{harmless(text[begin:end])}\x1b[0m"]
        at = end
    return "".join([*parts, harmless(text[at:])])
