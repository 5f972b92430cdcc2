"""The view for a terminal: markdown as it streams, thoughts dimmed, tool calls as cards.

The lower end of what is shown is the *live* region, at most one line less than the window: streamed text that may
still be replaced, running calls, what the session does. All above it is printed for good. An event changes only
the transcript; lines are drawn by `refresh`, and at once when a leaf is written or the chat ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from attrs import field
from rich.cells import cell_len
from rich.text import Text

from kesoku_actors.adapters.terminal.harmless import one_line
from kesoku_actors.adapters.terminal.markdown import Painter, plain
from kesoku_actors.adapters.terminal.output import Output
from kesoku_actors.adapters.terminal.redraw import redraw
from kesoku_actors.adapters.terminal.summary import TurnSummary, summary_line
from kesoku_actors.adapters.terminal.transcript import Transcript
from kesoku_actors.adapters.terminal.view import Leaf
from kesoku_actors.clock import Clock
from kesoku_actors.protocol import Activity, Event
from kesoku_actors.values import define

Size = Callable[[], tuple[int, int]]
"""Columns and lines of the window."""

_SMALLEST: Final = (10, 4)
_WORKING: Final = {
    Activity.THINKING: "thinking",
    Activity.RETRYING: "asks the model again",
    Activity.TOOLS: "using tools",
    Activity.ASKING: "waiting for a yes",
    Activity.STOPPING: "stopping; Ctrl-C again ends what still runs",
    Activity.CLEARING: "clearing",
    Activity.COMPACTING: "summarising what was said before",
}
_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def _cells(line: str) -> int:
    return cell_len(plain(line))


@define(eq=False)
class RichView:
    """Draws on a terminal."""

    out: Output
    clock: Clock
    size: Size
    no_color: bool
    refresh_s: float = field(default=0.08, init=False)
    _transcript: Transcript = field(init=False)
    _live: list[str] = field(factory=list, init=False)
    """The lines of the live region as they are on the screen."""

    def __attrs_post_init__(self) -> None:
        self._transcript = Transcript(clock=self.clock, painter=self._painter(self.size()[0]))

    async def show(self, event: Event, *, is_ours: bool) -> None:
        """Take an event; all turns of the session are shown alike."""
        self._transcript.show(event)

    async def leave(self, leaf: Leaf) -> None:
        """Write an answer in place of what was streamed of it, or a notice."""
        self._transcript.leave(leaf)
        await self.refresh()

    async def refresh(self) -> None:
        """Draw what has changed, or changes with time."""
        transcript = self._transcript
        columns, lines = (max(least, now) for least, now in zip(_SMALLEST, self.size(), strict=True))
        if columns != transcript.painter.columns:
            transcript.painter = self._painter(columns)
        working = self._working()
        live = [*transcript.live_lines(lines - 1 - len(working)), *working]
        change = redraw(self._live, [*transcript.take(), *live], columns, _cells)
        self._live = live
        if change:
            await self.out.write(change)

    async def finish(self, summary: TurnSummary) -> None:
        """Write the last line; nothing live remains."""
        self._transcript.end()
        self._transcript.print(Text(summary_line(summary), "dim"))
        await self.refresh()

    def _painter(self, columns: int) -> Painter:
        return Painter(max(_SMALLEST[0], columns), self.no_color)

    def _working(self) -> tuple[str, ...]:
        words = _WORKING.get(self._transcript.activity)
        if words is None:
            return ()
        now, transcript = self.clock.monotonic(), self._transcript
        frame, spent = _FRAMES[int(now * 10) % len(_FRAMES)], max(0.0, now - transcript.since)
        if transcript.activity is Activity.RETRYING:
            words, spent = f"{words} in", math.ceil(transcript.left_s)
        why = f": {one_line(transcript.detail)}" if transcript.detail else ""
        text = Text(f"{frame} {words} {spent:.0f} s{why}", "dim", no_wrap=True, overflow="ellipsis")
        return transcript.painter.lines(text)
