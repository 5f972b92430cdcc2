"""Compaction: the older turns of a session are summarised by its model, in a task of their own.

It belongs to the session, not to a turn: a child of its own supervisor, at most one for a session. A person's message
that ends a turn does not touch it; whoever builds the next prompt waits for it; a stop cancels it. What it makes is
stored in one transaction or not at all, so a crash leaves nothing half, and the store refuses a summary of what is not
over. The text of a summary is foreign: only its words are taken, calls in it are ignored (T1).

Invariants: a session in which it failed, or saved too little, twice in a row is left alone until a person asks, and
people are told once. Nothing waits for a compaction that has ended.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final

import trio
from attrs import field

from kesoku_actors.actors import ActorStopped, Cell, ChildExit, ChildSpec, Dynamic, Restart
from kesoku_actors.clock import World
from kesoku_actors.errors import NotFound
from kesoku_actors.gateway import Gateway
from kesoku_actors.log import Logger
from kesoku_actors.protocol import Channel
from kesoku_actors.session.brain import Brain
from kesoku_actors.session.histories import Histories
from kesoku_actors.session.summarising import Compacted, CompactionFailed, NothingOld, TooLittle, Verdict, compact
from kesoku_actors.store import PostNotice
from kesoku_actors.store.again import until_answered
from kesoku_actors.values import define, frozen

MOST_MISSES: Final = 2
REMEMBERED: Final = 1_024
"""Sessions whose misses are counted."""
NOTICE: Final = "compaction"
_SHUTDOWN_S: Final = 1.0


@frozen
class CompactionStopped:
    """It was cancelled, and nothing of it was kept."""


CompactionEnd = Verdict | CompactionStopped


def receipt(end: CompactionEnd) -> str:
    """Return one line about what came of a compaction."""
    match end:
        case Compacted(turns=turns, before=before, after=after):
            of = "1 turn" if turns == 1 else f"{turns} turns"
            return f"summarised {of}: about {before:,} tokens before, {after:,} now"
        case NothingOld():
            return "there is nothing to summarise: what was said is short, or part of a turn that goes on"
        case TooLittle(before=before, after=after):
            return f"not kept: of about {before:,} tokens the summary would have left {after:,}"
        case CompactionFailed(why=why):
            return f"nothing was summarised: {why}"
        case CompactionStopped():
            return "stopped; nothing was summarised"


@define(eq=False)
class Compaction:
    """One that is under way, or was."""

    session_id: str
    is_asked: bool
    """Whether a person wants it."""
    over: trio.Event = field(factory=trio.Event)
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    end: CompactionEnd = CompactionStopped()
    listeners: list[Callable[[CompactionEnd], None]] = field(factory=list)
    """Called when it is over; they neither wait nor raise."""

    async def wait(self) -> CompactionEnd:
        """Wait until it is over, and return how it ended."""
        await self.over.wait()
        return self.end


@frozen(kw_only=True)
class CompactionParts:
    """What compactions work with."""

    gateway: Gateway
    histories: Histories
    line_for: Callable[[Channel], tuple[Brain, ...]]
    """Who is asked, in order, one when those before it are lost (P2)."""
    world: World
    log: Logger


class Compactions:
    """The face: begins, ends and finds compactions. Outlives the tasks that carry them out."""

    def __init__(self, parts: CompactionParts) -> None:
        self.dynamic = Dynamic("compactions", on_exit=self._exited)
        self._parts = parts
        self._under_way: dict[str, Compaction] = {}
        self._misses: OrderedDict[str, int] = OrderedDict()

    def under_way(self, session_id: str) -> Compaction | None:
        """Return the compaction of a session, if one is under way."""
        return self._under_way.get(session_id)

    def is_given_up(self, session_id: str) -> bool:
        """Tell whether only a person may begin another one."""
        return self._misses.get(session_id, 0) >= MOST_MISSES

    def begin(self, session_id: str, *, is_asked: bool = False) -> Compaction:
        """Begin to compact a session, or join what is under way; returns at once."""
        known = self._under_way.get(session_id)
        if known is not None:
            return known
        compaction = self._under_way[session_id] = Compaction(session_id=session_id, is_asked=is_asked)
        child = ChildSpec(
            id=session_id,
            start=partial(self._run, compaction=compaction),
            restart=Restart.TEMPORARY,
            shutdown_s=_SHUTDOWN_S,
        )
        try:
            self.dynamic.start_nowait(child)
        except ActorStopped:  # the program ends
            self._settle(compaction)
        return compaction

    def end(self, session_id: str) -> bool:
        """Cancel the compaction of a session; return whether one was under way."""
        known = self._under_way.get(session_id)
        if known is not None:
            known.scope.cancel()
        return known is not None

    async def _run(self, cell: Cell[None], *, compaction: Compaction) -> None:
        cell.on_stop = compaction.scope.cancel
        cell.started()
        if cell.stopping.is_set():
            compaction.scope.cancel()
        parts = self._parts
        with compaction.scope:
            verdict = await compact(
                compaction.session_id,
                gateway=parts.gateway,
                histories=parts.histories,
                line_for=parts.line_for,
                world=parts.world,
                log=parts.log,
                is_asked=compaction.is_asked,
            )
            compaction.end = verdict
            parts.log.info("compacted", session=compaction.session_id, verdict=str(verdict))
            await self._count(compaction.session_id, verdict)

    async def _count(self, session_id: str, verdict: Verdict) -> None:
        """Count the misses in a row, and tell people of the one that is the last (case: a summary at every turn)."""
        match verdict:
            case Compacted():
                self._misses.pop(session_id, None)
                return
            case NothingOld():
                return
            case TooLittle():
                why = "summarising its older part saved less than a tenth"
            case CompactionFailed(why=reason):
                why = f"summarising its older part failed ({reason})"
        self._misses[session_id] = misses = self._misses.pop(session_id, 0) + 1
        if len(self._misses) > REMEMBERED:
            self._misses.popitem(last=False)
        if misses == MOST_MISSES:
            text = (
                f"This conversation is long, and {why}, {MOST_MISSES} times in a row. I do not try again by myself: "
                "what is oldest is left out of what I read. /compact tries again."
            )
            notice = PostNotice(session_id=session_id, content=text, metadata={"notice": NOTICE})
            tell = partial(self._parts.gateway.store.notice, notice)
            try:
                await until_answered(tell, self._parts.log, "tell of compactions")
            except NotFound:
                self._parts.log.info("the session was cleared: nobody is told", session=session_id)

    def _exited(self, exit: ChildExit) -> None:
        compaction = self._under_way.get(exit.id)
        if compaction is not None:
            if exit.error is not None:
                compaction.end = CompactionFailed(why="through a fault of mine")
            self._settle(compaction)

    def _settle(self, compaction: Compaction) -> None:
        del self._under_way[compaction.session_id]
        compaction.over.set()
        for listener in compaction.listeners:
            listener(compaction.end)
