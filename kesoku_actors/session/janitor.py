"""The janitor: finishes clears (M7), also those that a crash left half done.

A clear begins with its stored command: the session is `closed` and what it holds is stopped. When nothing of it is
left to do, its folder is moved into the trash, its rows are deleted in one transaction, the trash is emptied. Each
step is found again after a crash: a closed session is swept at every start, and so is the trash. A worker that still
lives is fenced off by the store: what it would commit is refused (C2).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Protocol

import trio
from attrs import frozen

from kesoku_actors.actors import Cell
from kesoku_actors.gateway import Gateway
from kesoku_actors.log import Logger
from kesoku_actors.protocol import Activity, ActivityChanged, Event, StopEnded
from kesoku_actors.session.again import until_answered
from kesoku_actors.store import WipeSession


class Folders(Protocol):
    """The sessions' folders, on a disk or in memory."""

    async def discard(self, session_id: str) -> None:
        """Move a session's folder into the trash, if there is one; at once and whole."""

    async def sweep(self) -> None:
        """Delete what is in the trash."""


@frozen(kw_only=True)
class JanitorParts:
    """What the janitor works with."""

    gateway: Gateway
    folders: Folders
    log: Logger
    probe: Callable[[str], None]
    """Told the names of the points where a crash matters."""


async def janitor(cell: Cell[None], *, parts: JanitorParts) -> None:
    """Sweep at the start and whenever a clear may have come to its end, until stopped."""
    async with aclosing(parts.gateway.listen(label="janitor")) as events, trio.open_nursery() as nursery:
        await _sweep(parts)
        cell.started()
        nursery.start_soon(_until_stopped, cell, nursery.cancel_scope)
        async for event in events:
            if _may_end_a_clear(event):
                await _sweep(parts)


async def _until_stopped(cell: Cell[None], scope: trio.CancelScope) -> None:
    await cell.stopping.wait()
    scope.cancel()


def _may_end_a_clear(event: Event) -> bool:
    match event:
        case StopEnded() | ActivityChanged(activity=Activity.CLEARING):
            return True
        case _:
            return False


async def _sweep(parts: JanitorParts) -> None:
    reader, store = parts.gateway.reader, parts.gateway.store
    for session_id in await reader.closed_sessions():
        if await reader.is_runnable(session_id):
            continue  # its stop has not come to its end
        parts.probe("clear.before_discard")
        await parts.folders.discard(session_id)
        parts.probe("clear.before_wipe")
        wipe = partial(store.wipe, WipeSession(session_id=session_id))
        rows = await until_answered(wipe, parts.log, "wipe a session")
        parts.log.info("session cleared", session=session_id, rows=rows)
    parts.probe("clear.before_sweep")
    await parts.folders.sweep()
