"""The view for pipes and files: what was committed, nothing else, never twice.

Standard output gets the answer to this chat's message and the texts said on the way to it; not what is still being
streamed, since a new attempt could not take it back (B2). The kept part of an interrupted text is written when it was
a stop that ended the turn there: nothing follows it. All else, labelled, goes to standard error: notices, answers to
earlier messages, waits for a model that failed, receipts, the last line.
"""

from __future__ import annotations

import math
from contextlib import suppress

from attrs import field

from kesoku_actors.adapters.courier import SurfaceGone
from kesoku_actors.adapters.terminal.harmless import harmless, one_line
from kesoku_actors.adapters.terminal.output import Output
from kesoku_actors.adapters.terminal.render import receipt_lines
from kesoku_actors.adapters.terminal.summary import ChatState, TurnSummary, summary_line
from kesoku_actors.adapters.terminal.view import Leaf
from kesoku_actors.protocol import Activity, ActivityChanged, Changed, Event, Role, Status, StopEnded, Type
from kesoku_actors.values import define


@define(eq=False)
class PlainView:
    """Writes plain text."""

    out: Output
    err: Output
    refresh_s: None = field(default=None, init=False)
    _said: set[str] = field(factory=set, init=False)
    _kept: str = field(default="", init=False)
    """The kept part of the text that was interrupted last."""

    async def show(self, event: Event, *, is_ours: bool) -> None:
        """Write a committed text of our turn once, and receipts."""
        match event:
            case Changed(message=message) if (
                is_ours
                and (message.role, message.type, message.status) == (Role.ASSISTANT, Type.TEXT, Status.RESPONDED)
                and message.id not in self._said
            ):
                self._said.add(message.id)
                if message.metadata.get("partial"):
                    self._kept = message.content
                else:
                    await self.out.write(_ended(message.content))
            case ActivityChanged(activity=Activity.RETRYING, detail=why, for_s=for_s):
                await self._aside(f"({one_line(why)}; asks again in {math.ceil(for_s or 0.0)} s)\n")
            case StopEnded():
                await self._aside("".join(f"{line}\n" for line in receipt_lines(event)))
            case _:
                return

    async def leave(self, leaf: Leaf) -> None:
        """Write our answer to standard output, anything else with its label to standard error."""
        if leaf.is_answer and leaf.is_ours:
            if leaf.label is not None:
                await self._aside(f"({leaf.label})\n")
            await self.out.write(_ended(leaf.text))
            if leaf.ending is not None:
                await self._aside(f"({leaf.ending})\n")
        else:
            label, ending = ("" if words is None else f"({words})\n" for words in (leaf.label, leaf.ending))
            await self.err.write(label + _ended(leaf.text) + ending)

    async def refresh(self) -> None:
        """Do nothing: nothing here changes with time."""

    async def finish(self, summary: TurnSummary) -> None:
        """Write what was kept of the answer if a stop ended it there, and the last line to standard error."""
        if summary.state is ChatState.STOPPED and self._kept:
            await self.out.write(_ended(self._kept))
        await self._aside(f"{summary_line(summary)}\n")

    async def _aside(self, text: str) -> None:
        """Write to standard error what may be lost: the answer does not depend on it."""
        with suppress(SurfaceGone):
            await self.err.write(text)


def _ended(text: str) -> str:
    clean = harmless(text)
    return clean if clean.endswith("\n") else f"{clean}\n"
