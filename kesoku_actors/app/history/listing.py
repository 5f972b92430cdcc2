"""The list of sessions: `history list` and `chat -l`."""

from __future__ import annotations

import json
import sys

import trio

from kesoku_actors.adapters.commands import session_line
from kesoku_actors.adapters.terminal.harmless import one_line
from kesoku_actors.app.chat_request import SessionsRequest
from kesoku_actors.app.history.finding import reading
from kesoku_actors.log import mask_secrets
from kesoku_actors.protocol import SessionInfo, SessionState, Usage

NOTHING = "There are no sessions yet.\n"

Listed = tuple[SessionInfo, Usage]
"""A session, and what it used."""


def list_sessions(request: SessionsRequest) -> int:
    """Print the sessions, newest first, and return the exit code. Raises a store fault."""
    listed = trio.run(_sessions, request)
    mask = mask_secrets(request.settings.secrets())
    if request.json:
        for each in listed:
            sys.stdout.write(mask(json.dumps(_as_data(*each), ensure_ascii=False)) + "\n")
        return 0
    sys.stdout.write("" if listed else NOTHING)
    for session, usage in listed:
        state = "" if session.state is SessionState.OPEN else "  (being cleared)"
        # Spaces are kept: they are the columns.
        sys.stdout.write(f"{'  '.join(map(one_line, mask(session_line(session, usage)).split('  ')))}{state}\n")
    return 0


async def _sessions(request: SessionsRequest) -> tuple[Listed, ...]:
    async with reading(request.settings) as reader:
        if reader is None:
            return ()
        sessions = await reader.sessions(request.limit)
        usage = await reader.usage(tuple(session.id for session in sessions))
        return tuple((session, usage.get(session.id, Usage())) for session in sessions)


def _as_data(session: SessionInfo, usage: Usage) -> dict[str, object]:
    return {
        "session": session.id,
        "channel": f"{session.chatbot_id}/{session.channel_id}",
        "state": session.state.value,
        "turns": session.turns,
        "input_tokens": usage.input or 0,
        "cached_tokens": usage.cached or 0,
        "output_tokens": usage.output or 0,
        "thinking_tokens": usage.thinking or 0,
        "cost": usage.cost,
        "created": session.created,
        "last_activity": session.last_activity,
        "title": session.title,
    }
