"""The janitor: finishes clears (M7), also those that a crash left half done.

A clear begins with its stored command: the session is `closed` and what it holds is stopped. When nothing of it is
left to do, its jobs are ended, its folder is moved into the trash, its rows are deleted in one transaction, the trash
is emptied. Each step is found again after a crash: a closed session is swept at every start, and so is the trash. A
worker that still lives is fenced off by the store: what it would commit is refused (C2).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import trio

from kesoku_actors.actors import Cell
from kesoku_actors.gateway import Gateway, Summons
from kesoku_actors.log import Logger
from kesoku_actors.protocol import Activity, ActivityChanged, Channel, SessionInfo, SessionState
from kesoku_actors.store import WipeSession
from kesoku_actors.store.again import until_answered
from kesoku_actors.values import frozen


class Folders(Protocol):
    """The sessions' folders, on a disk or in memory."""

    async def discard(self, session_id: str) -> None:
        """Move a session's folder into the trash, if there is one; at once and whole. Raises `OSError`."""

    async def sweep(self) -> None:
        """Delete what is in the trash."""


@frozen(kw_only=True)
class JanitorParts:
    """What the janitor works with."""

    gateway: Gateway
    closed: Summons
    """Sessions whose clear has begun, or may have come to its end."""
    folders: Folders
    end_jobs: Callable[[str], Awaitable[None]]
    """Ends the jobs of a session, and what its commands left running, and waits until all has ended."""
    log: Logger
    probe: Callable[[str], None]
    """Told the names of the points where a crash matters."""


async def janitor(cell: Cell[None], *, parts: JanitorParts) -> None:
    """Finish what an earlier life left, then each clear that comes to its end, until stopped."""
    for session_id in await until_answered(parts.gateway.reader.closed_sessions, parts.log, "read the clears"):
        parts.closed.call(session_id)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_work, parts)
        cell.started()
        await cell.stopping.wait()
        nursery.cancel_scope.cancel()


async def _work(parts: JanitorParts) -> None:
    await _sweep(parts)
    while True:
        session_id = await parts.closed.next()
        session = await _to_wipe(parts, session_id)
        if session is not None:
            await _wipe(parts, session)


async def _to_wipe(parts: JanitorParts, session_id: str) -> SessionInfo | None:
    """Return the session when it is closed and nothing of it is left to do."""
    reader = parts.gateway.reader
    session = await until_answered(partial(reader.session, session_id), parts.log, "read a session")
    if session is None or session.state is not SessionState.CLOSED:
        return None
    # What is left to do is done first: the end of its stop calls again.
    is_runnable = await until_answered(partial(reader.is_runnable, session_id), parts.log, "look for work")
    return None if is_runnable else session


async def _wipe(parts: JanitorParts, session: SessionInfo) -> None:
    session_id = session.id
    parts.probe("clear.before_jobs_end")
    await parts.end_jobs(session_id)
    parts.probe("clear.before_discard")
    try:
        await parts.folders.discard(session_id)
    except OSError as error:
        # The session stays closed; the next start tries again.
        parts.log.error("a cleared session's folder cannot be moved", session=session_id, error=str(error))
        return
    parts.probe("clear.before_wipe")
    wipe = partial(parts.gateway.store.wipe, WipeSession(session_id=session_id))
    rows = await until_answered(wipe, parts.log, "wipe a session")
    parts.log.info("session cleared", session=session_id, rows=rows)
    idle = ActivityChanged(session_id=session_id, activity=Activity.IDLE)  # listeners heard that it is being cleared
    parts.gateway.hint(idle, Channel(chatbot_id=session.chatbot_id, channel_id=session.channel_id))
    await _sweep(parts)


async def _sweep(parts: JanitorParts) -> None:
    parts.probe("clear.before_sweep")
    try:
        await parts.folders.sweep()
    except OSError as error:
        parts.log.error("the trash cannot be emptied", error=str(error))
