"""Opening the store to read in it, and finding the session that a person means."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from kesoku_actors.app.chat_request import check_session_id
from kesoku_actors.app.settings import Settings
from kesoku_actors.errors import NotFound
from kesoku_actors.protocol import SessionInfo, SessionState
from kesoku_actors.store import Durability, Reader, StoreOptions, open_reader

LAST: Final = "last"
"""Stands for the session that was active last."""
_NAMED: Final = 4


@asynccontextmanager
async def reading(settings: Settings) -> AsyncIterator[Reader | None]:
    """Open the store for reading, owning nothing (C6); none while there is no store yet."""
    path = settings.workspace.db_path
    if not path.exists():
        yield None
        return
    reader = open_reader(StoreOptions(path=path, durability=Durability.FULL))
    try:
        yield reader
    finally:
        await reader.close()


async def the_session(reader: Reader | None, named: str, program: str) -> SessionInfo:
    """Return the session whose id is `named`, begins with it or has it somewhere; or the last one.

    `program` is how its reader calls us. Raises `NotFound`, also when several are meant and for one that is being
    cleared.
    """
    if named == LAST:
        for session in await reader.sessions(1) if reader else ():
            return _open(session)
        raise NotFound(f"there is no session yet; begin one: {program} chat")
    check_session_id(named, program)
    part = named.upper()
    found = await reader.sessions_named(part, _NAMED + 1) if reader else ()
    better = [session for session in found if session.id.startswith(part)] or list(found)
    if not better:
        raise NotFound(f"there is no session {named!r}; list them: {program} history list")
    if len(better) > 1:
        some = ", ".join(session.id for session in better[:_NAMED]) + (" ..." if len(better) > _NAMED else "")
        raise NotFound(f"{named!r} may be one of {some}; type more of it")
    return _open(better[0])


def _open(session: SessionInfo) -> SessionInfo:
    if session.state is not SessionState.OPEN:
        raise NotFound(f"the session {session.id} is being cleared")
    return session
