"""Asking for a person's yes (T7): one task per call that needs one, from its queueing until it is known.

What is true is stored: whether the call waits, until when, who said what. The task reads it when it begins, whenever it
is told to look, and at the expiry; so it does not matter what was heard or missed, nor how often the program started
again. A call that was withdrawn or dropped meanwhile is nobody's here any more, and nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from kesoku_actors.actors import Cell
from kesoku_actors.clock import Clock
from kesoku_actors.protocol import CallState, Outcome, Standing
from kesoku_actors.tools.approval import ApprovalRules
from kesoku_actors.tools.board import Board, Run
from kesoku_actors.tools.patience import until_it_stands
from kesoku_actors.tools.port import Journal, Settled, ToolOutcome
from kesoku_actors.tools.registry import Asking, Tool
from kesoku_actors.values import define

_UNDECIDED: Final = frozenset({CallState.COMMITTED, CallState.WAITING})


@define(kw_only=True, eq=False)
class Asker:
    """Asks for calls of one tool actor."""

    rules: ApprovalRules
    board: Board
    journal: Journal
    clock: Clock
    settle: Callable[[Run, ToolOutcome], Awaitable[None]]
    """Stages an outcome of a call that is not run, and lets it go."""
    advance: Callable[[], None]
    """Starts what has a slot."""
    tell: Callable[[str], None]
    """Told, one line each, of calls that nobody could be asked about."""

    async def ask(self, cell: Cell[Any], *, run: Run, tool: Tool, arguments: dict[str, Any]) -> None:
        """Bring the call to where it may start, or is settled; returns early when the program stops."""
        cell.started()
        cell.on_stop = run.look
        asking = await tool.preview(arguments) if tool.preview is not None else Asking()
        if isinstance(asking, ToolOutcome):
            await self._settle(run, asking)
            return
        expires = self.clock.wall() + self.rules.within_s if self.rules.can_ask else None
        while self._is_ours(cell, run):
            looked = trio.Event()
            run.look = cell.on_stop = looked.set
            standing = await until_it_stands(lambda: self.journal.waiting(run.call.call_id, expires, asking.parts))
            if self._is_ours(cell, run) and not await self._act(run, tool, standing, looked):
                return

    async def settings_allow(self, run: Run) -> bool:
        """Say yes for a call that waits although the settings, changed since, ask nobody about it. False: it does not.

        Raises what the journal raises.
        """
        standing = await self.journal.waiting(run.call.call_id, None, None)
        return standing.state is CallState.WAITING and await self.journal.allow(run.call.call_id)

    def _is_ours(self, cell: Cell[Any], run: Run) -> bool:
        return self.board.find(run.call.call_id) is run and not cell.stopping.is_set()

    async def _act(self, run: Run, tool: Tool, standing: Standing, looked: trio.Event) -> bool:
        """Do what follows from how the call stands; return whether it is to be looked at again."""
        if standing.is_approved:
            self.board.clear(run)
            self.advance()
        elif standing.state in _UNDECIDED and not self.rules.can_ask:
            setting = self.rules.named(tool, run.call.channel)
            self.tell(f"{tool.name} was denied: {setting} asks for a person's yes and nobody can be asked here")
            await self._settle(run, _nobody(setting, tool))
        elif standing.state is CallState.WAITING:
            await self._wait(run, standing, looked)
            return True
        else:
            self._over(run, standing)
        return False

    async def _wait(self, run: Run, standing: Standing, looked: trio.Event) -> None:
        assert standing.expires is not None, "what waits has an expiry"
        self.board.set_aside(run)
        self.advance()
        with trio.move_on_after(max(0.0, standing.expires - self.clock.wall())) as patience:
            await looked.wait()
        if patience.cancelled_caught and self.board.find(run.call.call_id) is run:
            await until_it_stands(lambda: self.journal.expired(run.call.call_id))

    def _over(self, run: Run, standing: Standing) -> None:
        """It was settled, or runs already in another life of ours: there is nothing to start."""
        self.board.withdraw(run.call.call_id)
        if standing.outcome is not None:
            settled = Settled(call_id=run.call.call_id, outcome=standing.outcome)
            self.board.tell(run.call.session_id, settled)
        self.advance()

    async def _settle(self, run: Run, outcome: ToolOutcome) -> None:
        if self.board.withdraw(run.call.call_id) is not None:
            await self.settle(run, outcome)
            self.advance()


def _nobody(setting: str, tool: Tool) -> ToolOutcome:
    return ToolOutcome(
        outcome=Outcome.ERROR,
        content=(
            f"[not run: denied, because {setting} asks for a person's yes and nobody can be asked here. A person can "
            f'say yes in an interactive talk, or set [tools.rules] {tool.name} = "never".]'
        ),
        metadata={"reason": "denied"},
    )
