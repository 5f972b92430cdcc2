"""The tool `search_history`: what a model may know of earlier talks.

The rule (P05): a call sees the messages of the channel its session belongs to, those of earlier sessions there too,
and of no other channel; the channel is the session's own, never an argument. On a chatbot whose channels all belong to
one person, the terminal, it sees all of that chatbot's channels: whoever can open the store can read them anyway.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Annotated, Final

import trio

from kesoku_actors.protocol import Outcome, SessionInfo
from kesoku_actors.search.index import IndexUnusable, Scope
from kesoku_actors.search.search import Hit, Search
from kesoku_actors.tools import ToolContext, ToolOutcome

PATIENCE_S: Final = 2.0
"""How long a search waits for the index to know the newest messages."""
MOST: Final = 50

SearchHistory = Callable[..., Awaitable[ToolOutcome]]


def search_tool(search: Search, *, personal: frozenset[str]) -> SearchHistory:
    """Return the tool over `search`. All channels of a chatbot in `personal` belong to one person."""

    async def search_history(
        context: ToolContext,
        query: Annotated[str, 'Words that all have to occur; "a phrase" in double quotes; a word* with any ending.'],
        limit: Annotated[int, f"How many messages to show, at most {MOST}."] = 10,
    ) -> ToolOutcome:
        """Search the earlier messages of this channel, also those of earlier sessions, and show where they match."""
        session = await search.reader.session(context.session_id)
        if session is None:
            return ToolOutcome(outcome=Outcome.ERROR, content="[this session is gone]")
        try:
            with trio.move_on_after(PATIENCE_S):
                await search.catch_up()
        except IndexUnusable as error:
            search.unusable(error)
        try:
            hits = await search.find(query, _scope(session, personal), max(1, min(limit, MOST)))
        except IndexUnusable as error:
            return ToolOutcome(outcome=Outcome.ERROR, content=f"[{error}]")
        return ToolOutcome(outcome=Outcome.OK, content="\n".join(_lines(hits)) or "[nothing was found]")

    return search_history


def _scope(session: SessionInfo, personal: frozenset[str]) -> Scope:
    is_personal = session.chatbot_id in personal
    return Scope(chatbot_id=session.chatbot_id, channel_id=None if is_personal else session.channel_id)


def _lines(hits: Iterable[Hit]) -> Iterable[str]:
    for hit in hits:
        message = hit.message
        when = datetime.fromtimestamp(message.timestamp, UTC).strftime("%Y-%m-%d %H:%M UTC")
        place = f"session {message.session_id}, message {message.id}"
        yield f"{when}, {message.sender} ({place}): {hit.excerpt.text}"
