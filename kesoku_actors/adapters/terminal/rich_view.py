"""The view for a terminal: markdown as it streams, thoughts dimmed, tool calls as cards.

The lower end of what is shown is the *live* region, at most one line less than the window: streamed text that may
still be replaced, running calls, what the session does. All above it is printed for good. An event changes only
the state here; lines are drawn by `refresh`, and at once when a leaf is written or the chat ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, assert_never

from attrs import define, evolve, field
from rich.cells import cell_len
from rich.text import Text

from kesoku_actors.adapters.terminal.cards import Card
from kesoku_actors.adapters.terminal.harmless import harmless
from kesoku_actors.adapters.terminal.markdown import Flow, Painter, document, plain
from kesoku_actors.adapters.terminal.output import Output
from kesoku_actors.adapters.terminal.redraw import redraw
from kesoku_actors.adapters.terminal.render import (
    Append,
    Begin,
    Drop,
    EndCall,
    Gap,
    OpenCall,
    Operation,
    Receipt,
    Screen,
    Settle,
    StartCall,
    Work,
    close,
    step,
)
from kesoku_actors.adapters.terminal.summary import TurnSummary, summary_line
from kesoku_actors.adapters.terminal.view import Leaf
from kesoku_actors.clock import Clock
from kesoku_actors.protocol import Activity, DeltaKind, Event

Size = Callable[[], tuple[int, int]]
"""Columns and lines of the window."""

_SMALLEST: Final = (10, 4)
_THOUGHT_LINES: Final = 4
_THOUGHT_CHARACTERS: Final = 2_000
_WORKING: Final = {
    Activity.THINKING: "thinking",
    Activity.TOOLS: "using tools",
    Activity.STOPPING: "stopping; Ctrl-C again ends what still runs",
    Activity.CLEARING: "clearing",
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
    _painter: Painter = field(init=False)
    _screen: Screen = field(factory=Screen, init=False)
    _answer: Flow = field(factory=Flow, init=False)
    _raw: dict[DeltaKind, list[str]] = field(factory=dict, init=False)
    """What was streamed, in pieces as they came."""
    _broken: set[DeltaKind] = field(factory=set, init=False)
    _is_thought_printed: bool = field(default=False, init=False)
    """Whether the thought of this inference stands above the live region already."""
    _cards: dict[str, Card] = field(factory=dict, init=False)
    _activity: Activity = field(default=Activity.IDLE, init=False)
    _since: float = field(init=False)
    """When the activity began."""
    _printing: list[str] = field(factory=list, init=False)
    """Lines to be printed for good at the next drawing."""
    _live: list[str] = field(factory=list, init=False)
    """The lines of the live region as they are on the screen."""

    def __attrs_post_init__(self) -> None:
        self._painter = Painter(max(_SMALLEST[0], self.size()[0]), self.no_color)
        self._since = self.clock.monotonic()

    async def show(self, event: Event, *, is_ours: bool) -> None:
        """Take an event; all turns of the session are shown alike."""
        self._screen, operations = step(self._screen, event)
        for operation in operations:
            self._do(operation)

    async def leave(self, leaf: Leaf) -> None:
        """Write an answer in place of what was streamed of it, or a notice."""
        if leaf.label is not None:
            self._print(Text(f"({leaf.label})", "dim italic"))
        if not leaf.is_answer:
            self._print(Text(f"⚠ {harmless(leaf.text)}", "yellow"))
        elif self._screen.stream is not None and self._screen.stream.root_id == leaf.message.root_id:
            self._settle(leaf.text)
            self._screen = close(self._screen)
        else:
            self._printing += document(harmless(leaf.text), self._painter)
        await self.refresh()

    async def refresh(self) -> None:
        """Draw what has changed, or changes with time."""
        columns, lines = (max(least, now) for least, now in zip(_SMALLEST, self.size(), strict=True))
        if columns != self._painter.columns:
            self._painter = Painter(columns, self.no_color)
        live, room = self._live_lines(), lines - 1
        fixed = self._answer.fix(room, len(live))
        if fixed:
            self._settle_thought(self._streamed(DeltaKind.THOUGHT))
            self._printing += fixed
            live = self._live_lines()
        live = live[-room:]
        change = redraw(self._live, [*self._printing, *live], columns, _cells)
        self._printing, self._live = [], live
        if change:
            await self.out.write(change)

    async def finish(self, summary: TurnSummary) -> None:
        """Write the last line; nothing live remains."""
        self._drop()
        self._cards.clear()
        self._activity = Activity.IDLE
        self._print(Text(summary_line(summary), "dim"))
        await self.refresh()

    def _do(self, operation: Operation) -> None:
        match operation:
            case Begin() | Drop():
                self._drop()
            case Append(kind=kind, text=text):
                self._raw.setdefault(kind, []).append(text)
            case Gap(kind=kind):
                self._broken.add(kind)
            case Settle(kind=DeltaKind.THOUGHT, text=text):
                self._settle_thought(text)
            case Settle(text=text, is_partial=is_partial):
                self._settle(text)
                if is_partial:
                    self._print(Text("(interrupted)", "dim italic"))
            case OpenCall(call_id=call_id, name=name, command=command):
                self._drop()
                self._cards[call_id] = Card(name=name, command=command)
            case StartCall(call_id=call_id):
                if call_id in self._cards:
                    self._cards[call_id] = evolve(self._cards[call_id], since=self.clock.monotonic())
            case EndCall(call_id=call_id, outcome=outcome, duration_s=duration_s, text=text):
                card = self._cards.pop(call_id, None) or Card(name="a call made earlier", command="")
                self._print(*card.ended(outcome, duration_s, text), Text(""))
            case Work(activity=activity):
                self._activity, self._since = activity, self.clock.monotonic()
            case Receipt(lines=lines):
                self._print(*(Text(harmless(line), "yellow") for line in lines))
            case _:
                assert_never(operation)

    def _streamed(self, kind: DeltaKind) -> str:
        return harmless("".join(self._raw.get(kind, ())))

    def _settle_thought(self, text: str) -> None:
        self._raw.pop(DeltaKind.THOUGHT, None)
        self._broken.discard(DeltaKind.THOUGHT)
        if not self._is_thought_printed and text.strip():
            self._print(Text(f"{harmless(text).strip()}\n", "dim italic"))
        self._is_thought_printed = True

    def _settle(self, text: str) -> None:
        lines = self._answer.settle(harmless(text), self._painter)
        if lines is None:
            self._print(Text("(as it was kept)", "dim italic"))
            lines = document(harmless(text), self._painter)
        self._printing += lines
        self._forget()

    def _drop(self) -> None:
        if self._answer.fixed:
            self._print(Text("(broken off)", "dim italic"))
        self._forget()

    def _forget(self) -> None:
        self._answer = Flow()
        self._raw.clear()
        self._broken.clear()
        self._is_thought_printed = False

    def _print(self, *texts: Text) -> None:
        self._printing += [line for text in texts for line in self._painter.lines(text)]

    def _live_lines(self) -> list[str]:
        painter, now = self._painter, self.clock.monotonic()
        thought = self._streamed(DeltaKind.THOUGHT).strip()[-_THOUGHT_CHARACTERS:]
        lines = list(painter.lines(Text(thought, "dim italic"))[-_THOUGHT_LINES:]) if thought else []
        self._answer.text = self._streamed(DeltaKind.TEXT)
        lines += self._answer.live_lines(painter)
        lines += painter.lines(Text("…", "dim")) if self._broken else ()
        lines += [line for card in self._cards.values() for text in card.texts(now) for line in painter.lines(text)]
        words = _WORKING.get(self._activity)
        if words is not None:
            frame = _FRAMES[int(now * 10) % len(_FRAMES)]
            text = Text(
                f"{frame} {words} {max(0.0, now - self._since):.0f} s", "dim", no_wrap=True, overflow="ellipsis"
            )
            lines += painter.lines(text)
        return lines
