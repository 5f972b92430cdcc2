"""Sessions of the terminal: which one a chat goes on with, and their list. Reads only, owns nothing (C6)."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from kesoku_actors.adapters.commands import session_line
from kesoku_actors.app.chat_request import TERMINAL, ChatRequest, SessionsRequest, TalkRequest
from kesoku_actors.app.plan import reading_options
from kesoku_actors.app.settings import Settings
from kesoku_actors.clock import World
from kesoku_actors.errors import NotFound
from kesoku_actors.protocol import Channel, SessionInfo, SessionState
from kesoku_actors.store import Reader, open_reader

LISTED = 50


async def channel_of(request: ChatRequest | TalkRequest, world: World) -> Channel:
    """Return the channel the chat talks in. Raises `NotFound` for a session that cannot be gone on with."""
    if request.session is None and not request.latest:
        return Channel(chatbot_id=TERMINAL, channel_id=world.ids())
    session = await _wanted(request)
    if session.chatbot_id != TERMINAL:
        raise NotFound(f"session {session.id} belongs to {session.chatbot_id}; go on with it there")
    if session.state is not SessionState.OPEN:
        raise NotFound(f"session {session.id} was cleared; begin a new one without -r")
    return Channel(chatbot_id=session.chatbot_id, channel_id=session.channel_id)


async def _wanted(request: ChatRequest | TalkRequest) -> SessionInfo:
    async with _reading(request.settings) as reader:
        if request.session is not None:
            session = await reader.session(request.session) if reader else None
            if session is None:
                raise NotFound(f"there is no session {request.session!r}; list them: kesoku-actors chat -l")
            return session
        for session in await reader.sessions(LISTED, TERMINAL) if reader else ():
            if session.state is SessionState.OPEN:
                return session
        raise NotFound("there is no session to go on with yet; begin one without -z")


def list_sessions(request: SessionsRequest) -> int:
    """Print the sessions, newest first, and return the exit code."""
    sessions = trio.run(_sessions, request.settings)
    if request.json:
        for session in sessions:
            shown = {
                "session": session.id,
                "channel": f"{session.chatbot_id}/{session.channel_id}",
                "state": session.state.value,
                "turns": session.turns,
                "last_activity": session.last_activity,
                "title": session.title,
            }
            sys.stdout.write(json.dumps(shown, ensure_ascii=False) + "\n")
        return 0
    if not sessions:
        sys.stdout.write("There are no sessions yet.\n")
    for session in sessions:
        sys.stdout.write(f"{session_line(session)}\n")
    return 0


async def _sessions(settings: Settings) -> tuple[SessionInfo, ...]:
    async with _reading(settings) as reader:
        return await reader.sessions(LISTED, None) if reader else ()


@asynccontextmanager
async def _reading(settings: Settings) -> AsyncIterator[Reader | None]:
    """Open the store for reading; none while there is no store yet."""
    path = settings.workspace.db_path
    if not path.exists():
        yield None
        return
    reader = open_reader(reading_options(path))
    try:
        yield reader
    finally:
        await reader.close()
