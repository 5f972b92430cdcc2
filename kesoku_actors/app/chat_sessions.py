"""Sessions of the terminal: which one a chat goes on with. Reads only, owns nothing (C6)."""

from __future__ import annotations

from kesoku_actors.app.chat_request import TERMINAL, ChatRequest, TalkRequest
from kesoku_actors.app.history.finding import reading, the_session
from kesoku_actors.clock import World
from kesoku_actors.errors import NotFound
from kesoku_actors.protocol import Channel, SessionInfo, SessionState

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


async def talked_in(request: ChatRequest | TalkRequest, world: World) -> tuple[Channel, str | None]:
    """Return the channel the chat talks in, and the model a person chose for it, unless this request names one.

    Raises `NotFound` for a session that cannot be gone on with.
    """
    channel = await channel_of(request, world)
    if request.names_model or (request.session is None and not request.latest):
        return channel, None
    async with reading(request.settings) as reader:
        return channel, await reader.chosen_model(channel) if reader else None


async def _wanted(request: ChatRequest | TalkRequest) -> SessionInfo:
    async with reading(request.settings) as reader:
        if request.session is not None:
            return await the_session(reader, request.session, request.settings.program)
        for session in await reader.sessions(LISTED, TERMINAL) if reader else ():
            if session.state is SessionState.OPEN:
                return session
        raise NotFound("there is no session to go on with yet; begin one without -z")
