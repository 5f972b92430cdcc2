"""The screen of an interactive talk: the transcript above, the input line and the status line below.

One task paints at a time. What is finished is printed above the region for good; the rest of it changes in place. A
person's message is printed when it is taken, not when it is typed: until then it stands above the input line, so that
the talk reads in the order in which the model read it (O1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import trio
from attrs import evolve, field
from rich.text import Text

from kesoku_actors.adapters.terminal.harmless import harmless, one_line
from kesoku_actors.adapters.terminal.interactive.input_rows import Typed, input_rows, menu_rows
from kesoku_actors.adapters.terminal.interactive.region import Region, repaint
from kesoku_actors.adapters.terminal.interactive.status_line import FRAME_S, Facts, status_line
from kesoku_actors.adapters.terminal.markdown import Painter
from kesoku_actors.adapters.terminal.output import Output
from kesoku_actors.adapters.terminal.transcript import Transcript
from kesoku_actors.adapters.terminal.view import Leaf
from kesoku_actors.clock import Clock
from kesoku_actors.protocol import Activity, Changed, Event, Message
from kesoku_actors.values import define

Size = Callable[[], tuple[int, int]]
"""Columns and lines of the window."""

SMALLEST: Final = (10, 4)
LEAST_PAUSE_S: Final = 0.05
"""Between two paintings: what happens meanwhile is painted together."""
_PASTE_ON: Final = "\x1b[?2004h"
_PASTE_OFF: Final = "\x1b[?2004l"
_WIPE: Final = "\x1b[H\x1b[2J"
_INPUT_ROWS: Final = 6
_MENU_ROWS: Final = 5
_WAITING_ROWS: Final = 3
_QUOTED_LINES: Final = 12
_QUOTED_CHARACTERS: Final = 4_000


@define(eq=False)
class Screen:
    """What a person sees. What paints raises `SurfaceGone`; `close` it at the end whatever happened."""

    out: Output
    clock: Clock
    size: Size
    no_color: bool
    facts: Facts = field(factory=Facts)
    """Of the status line; activity, waiting messages and folding are known here."""
    typed: Typed = field(factory=Typed, init=False)
    seen: set[str] = field(factory=set, init=False)
    """Ids of people's messages printed in this run."""
    _transcript: Transcript = field(init=False)
    _waiting: dict[str, str] = field(factory=dict, init=False)
    _turns: set[str] = field(factory=set, init=False)
    """Ids of the roots that are worked on."""
    _region: Region = field(factory=Region, init=False)
    _foreground: trio.Event = field(factory=trio.Event, init=False)
    _first: str = field(default=_PASTE_ON, init=False)
    """What the next painting begins with."""
    _lock: trio.Lock = field(factory=trio.Lock, init=False)
    _dirty: trio.Event = field(factory=trio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        painter = Painter(self._window()[0] - 1, self.no_color)
        self._transcript = Transcript(clock=self.clock, painter=painter, is_folded=True)
        self._foreground.set()

    @property
    def activity(self) -> Activity:
        """What the session does, as far as is known."""
        return self._transcript.activity

    async def suspend(self) -> None:
        """Give the terminal back for a while; nothing is painted until `resume`."""
        self._foreground = trio.Event()
        await self._remove()

    def resume(self) -> None:
        """Paint again, below whatever was written meanwhile."""
        self._region = Region(window=(0, 0))
        self._first = _PASTE_ON
        self._foreground.set()
        self.touch()

    async def close(self) -> None:
        """Print what is finished, remove the rest, and give the terminal back."""
        self._transcript.end()
        await self._remove()

    async def _remove(self) -> None:
        async with self._lock:
            window = self._window()
            empty = Region(rows=("",), window=window)
            gone = repaint(self._region, empty, self._transcript.take())
            self._region = empty
            await self.out.write(gone + _PASTE_OFF)

    async def keep_painted(self) -> None:
        """Paint whenever something changed, or changes with time."""
        while True:
            is_moving = self.activity is not Activity.IDLE
            with trio.move_on_after(FRAME_S if is_moving else float("inf")):
                await self._dirty.wait()
            await self.paint()
            await trio.sleep(LEAST_PAUSE_S)

    def touch(self) -> None:
        """Something changed: paint soon."""
        self._dirty.set()

    async def paint(self) -> None:
        """Paint what changed; it stands on the screen when this returns. While suspended this waits."""
        while True:
            await self._foreground.wait()
            async with self._lock:
                if self._foreground.is_set():  # else it was suspended while this waited for its turn
                    await self._paint()
                    return

    async def _paint(self) -> None:
        self._dirty = trio.Event()
        window = self._window()
        columns = window[0] - 1
        if columns != self._transcript.painter.columns:
            self._transcript.painter = Painter(columns, self.no_color)
        region = self._drawn(window)
        change = self._first + repaint(self._region, region, self._transcript.take())
        self._first, self._region = "", region
        if change:
            await self.out.write(change)

    def clear(self) -> None:
        """Clear the window and paint anew: something else wrote there."""
        self._region = Region(window=(0, 0))
        self._first = _WIPE
        self.touch()

    def show(self, event: Event) -> None:
        """Take an event."""
        self._transcript.show(event)
        match event:
            case Changed(message=row) if row.is_person:
                self._person(row)
            case _:
                pass
        self.touch()

    async def leave(self, leaf: Leaf) -> None:
        """Write an answer or a notice and return when it is written (C5)."""
        self._transcript.leave(leaf)
        await self.paint()

    def say(self, lines: Sequence[str], style: str = "dim") -> None:
        """Print lines of the program's own."""
        self._transcript.print(*(Text(harmless(line), style) for line in lines))
        self.touch()

    def quote(self, text: str) -> None:
        """Print what a person said; the begin of it when it is long."""
        lines = harmless(text)[:_QUOTED_CHARACTERS].split("\n")[:_QUOTED_LINES]
        shown = "\n  ".join(lines)
        rest = len(text) - sum(len(line) + 1 for line in lines) + 1
        self._transcript.print(Text(f"› {shown}", "bold cyan"))
        self._transcript.print(*([Text(f"  … {rest:,} more characters", "dim")] if rest > 0 else []), Text(""))
        self.touch()

    def turn_page(self) -> None:
        """Forget what belongs to the session shown so far."""
        self._transcript.end()
        self._waiting.clear()
        self._turns.clear()
        self.touch()

    def fold(self) -> None:
        """Fold thoughts, or unfold them and show the last one."""
        if self._transcript.is_folded:
            self._transcript.unfold()
        else:
            self._transcript.is_folded = True
        self.touch()

    def _person(self, row: Message) -> None:
        if row.root_id is None and not row.has_ended:
            self._waiting[row.id] = row.content
            return
        self._waiting.pop(row.id, None)
        if row.id not in self.seen:
            self.seen.add(row.id)
            self.quote(row.content)
        if row.root_id == row.id:
            self._turn(row)

    def _turn(self, root: Message) -> None:
        """Activities are hints and may be lost (B2); a turn that has begun or ended is not."""
        transcript = self._transcript
        if root.has_ended:
            self._turns.discard(root.id)
        else:
            self._turns.add(root.id)
        if not self._turns:
            transcript.activity = Activity.IDLE
        elif transcript.activity is Activity.IDLE:
            transcript.activity, transcript.since = Activity.THINKING, self.clock.monotonic()

    def _drawn(self, window: tuple[int, int]) -> Region:
        columns, lines = window
        typed = input_rows(self.typed, columns, max(1, min(_INPUT_ROWS, lines - 3)))
        room = lines - 2 - len(typed.rows)
        menu = menu_rows(self.typed, columns, min(_MENU_ROWS, room))
        waiting = self._waiting_rows(min(_WAITING_ROWS, room - len(menu)))
        live = self._transcript.live_lines(room - len(menu) - len(waiting))
        rows = (*live, *waiting, *typed.rows, *menu, self._status(columns))
        row = len(live) + len(waiting) + typed.row
        return Region(rows=rows, row=row, column=min(typed.column, columns - 1), window=window)

    def _waiting_rows(self, room: int) -> list[str]:
        lines: list[str] = []
        for content in list(self._waiting.values())[:room]:
            text = Text(f"› {one_line(content[:500])}", "dim", no_wrap=True, overflow="ellipsis")
            lines += self._transcript.painter.lines(text)
        return lines

    def _status(self, columns: int) -> str:
        transcript = self._transcript
        facts = evolve(
            self.facts,
            activity=transcript.activity,
            for_s=self.clock.monotonic() - transcript.since,
            left_s=transcript.left_s,
            detail=transcript.detail,
            waiting=len(self._waiting),
            is_folded=transcript.is_folded,
        )
        return status_line(facts, columns)

    def _window(self) -> tuple[int, int]:
        columns, lines = self.size()
        return max(SMALLEST[0], columns), max(SMALLEST[1], lines)
