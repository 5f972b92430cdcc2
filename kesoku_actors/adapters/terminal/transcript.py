"""What a talk looks like so far: lines to print for good, and lines that may still change. No output of its own.

An event changes only the state here. `take` gives the lines that are finished, once; `live_lines` gives what may still
be replaced: streamed text, running calls. The view decides when and where both are drawn.
"""

from __future__ import annotations

from typing import Final, assert_never

from attrs import evolve, field
from rich.text import Text

from kesoku_actors.adapters.terminal.cards import Card
from kesoku_actors.adapters.terminal.harmless import harmless, one_line
from kesoku_actors.adapters.terminal.markdown import Flow, Painter, document
from kesoku_actors.adapters.terminal.render import (
    Append,
    Begin,
    Drop,
    EndCall,
    Gap,
    OpenCall,
    Operation,
    Receipt,
    RestCall,
    Screen,
    Settle,
    StartCall,
    Work,
    close,
    step,
)
from kesoku_actors.adapters.terminal.view import Leaf
from kesoku_actors.clock import Clock
from kesoku_actors.protocol import Activity, DeltaKind, Event
from kesoku_actors.values import define

_THOUGHT_LINES: Final = 4
_THOUGHT_CHARACTERS: Final = 2_000
_THOUGHT: Final = "dim italic"


@define(eq=False)
class Transcript:
    """The talk as a view shows it. `painter` is replaced when the window gets another width."""

    clock: Clock
    painter: Painter
    is_folded: bool = False
    """Whether a thought is one line; the last one is kept, to be shown whole when it is unfolded."""
    activity: Activity = field(default=Activity.IDLE, init=False)
    since: float = field(init=False)
    """When the activity began, monotonic."""
    detail: str = field(default="", init=False)
    """Why the session does that, where it is not obvious."""
    lasts_s: float = field(default=0.0, init=False)
    """How long it will take from its begin, as far as known."""
    cards: dict[str, Card] = field(factory=dict, init=False)
    _screen: Screen = field(factory=Screen, init=False)
    _answer: Flow = field(factory=Flow, init=False)
    _raw: dict[DeltaKind, list[str]] = field(factory=dict, init=False)
    """What was streamed, in pieces as they came."""
    _broken: set[DeltaKind] = field(factory=set, init=False)
    _is_thought_printed: bool = field(default=False, init=False)
    """Whether the thought of this inference stands above the live region already."""
    _last_thought: str = field(default="", init=False)
    """The last thought that was printed folded."""
    _printing: list[str] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.since = self.clock.monotonic()

    def show(self, event: Event) -> None:
        """Take an event; messages that leave come through `leave` alone."""
        self._screen, operations = step(self._screen, event)
        for operation in operations:
            self._do(operation)

    def leave(self, leaf: Leaf) -> None:
        """Take an answer, in place of what was streamed of it, or a notice."""
        if leaf.label is not None:
            self.print(Text(f"({leaf.label})", "dim italic"))
        if not leaf.is_answer:
            self.print(Text(f"⚠ {harmless(leaf.text)}", "yellow"))
        elif self._screen.stream is not None and self._screen.stream.root_id == leaf.message.root_id:
            self._settle(leaf.text)
            self._screen = close(self._screen)
        else:
            self._printing += document(harmless(leaf.text), self.painter)
        if leaf.ending is not None:
            self.print(Text(f"({leaf.ending})", "yellow"))

    def print(self, *texts: Text) -> None:
        """Add lines to be printed for good."""
        self._printing += [line for text in texts for line in self.painter.lines(text)]

    def take(self) -> list[str]:
        """Return the lines to be printed for good, once."""
        lines, self._printing = self._printing, []
        return lines

    def live_lines(self, room: int) -> list[str]:
        """Return what may still be replaced, at most `room` lines; what does not fit any more is printed for good."""
        lines = self._live_lines()
        fixed = self._answer.fix(room, len(lines))
        if fixed:
            self._settle_thought(self._streamed(DeltaKind.THOUGHT))
            self._printing += fixed
            lines = self._live_lines()
        return lines[-room:] if room > 0 else []

    @property
    def left_s(self) -> float:
        """How long the activity still takes, seconds, as far as known."""
        return max(0.0, self.since + self.lasts_s - self.clock.monotonic())

    def unfold(self) -> None:
        """Show thoughts whole from now on, and the last one that was folded at once."""
        self.is_folded = False
        if self._last_thought:
            self.print(Text(f"{self._last_thought}\n", _THOUGHT))
            self._last_thought = ""

    def end(self) -> None:
        """Nothing live remains."""
        self._drop()
        self.cards.clear()
        self.activity = Activity.IDLE

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
                    self.print(Text("(interrupted)", "dim italic"))
            case OpenCall(call_id=call_id, name=name, command=command):
                self._drop()
                self.cards[call_id] = Card(name=name, command=command)
            case StartCall(call_id=call_id):
                if call_id in self.cards:
                    self.cards[call_id] = evolve(self.cards[call_id], since=self.clock.monotonic())
            case RestCall(call_id=call_id, outcome=outcome):
                if call_id in self.cards:
                    self.cards[call_id] = self.cards[call_id].resting(outcome, self.clock.monotonic())
            case EndCall(call_id=call_id, outcome=outcome, duration_s=duration_s, text=text):
                card = self.cards.pop(call_id, None) or Card(name="a call made earlier", command="")
                self.print(*card.ended(outcome, duration_s, text), Text(""))
            case Work(activity=activity, detail=detail, for_s=for_s):
                if activity is not self.activity:
                    self.activity, self.since = activity, self.clock.monotonic()
                    self.detail, self.lasts_s = detail, for_s or 0.0
            case Receipt(lines=lines):
                self.print(*(Text(harmless(line), "yellow") for line in lines))
            case _:
                assert_never(operation)

    def _streamed(self, kind: DeltaKind) -> str:
        return harmless("".join(self._raw.get(kind, ())))

    def _settle_thought(self, text: str) -> None:
        self._raw.pop(DeltaKind.THOUGHT, None)
        self._broken.discard(DeltaKind.THOUGHT)
        thought = harmless(text).strip()
        if not self._is_thought_printed and thought:
            if self.is_folded:
                self._last_thought = thought
                self.print(_folded(thought))
            else:
                self.print(Text(f"{thought}\n", _THOUGHT))
        self._is_thought_printed = True

    def _settle(self, text: str) -> None:
        lines = self._answer.settle(harmless(text), self.painter)
        if lines is None:
            self.print(Text("(as it was kept)", "dim italic"))
            lines = document(harmless(text), self.painter)
        self._printing += lines
        self._forget()

    def _drop(self) -> None:
        if self._answer.fixed:
            self.print(Text("(broken off)", "dim italic"))
        self._forget()

    def _forget(self) -> None:
        self._answer = Flow()
        self._raw.clear()
        self._broken.clear()
        self._is_thought_printed = False

    def _live_lines(self) -> list[str]:
        painter = self.painter
        thought = self._streamed(DeltaKind.THOUGHT).strip()
        lines: list[str] = []
        if thought and self.is_folded:
            lines += painter.lines(_folded(thought[-_THOUGHT_CHARACTERS:].rpartition("\n")[2]))
        elif thought:
            lines += painter.lines(Text(thought[-_THOUGHT_CHARACTERS:], _THOUGHT))[-_THOUGHT_LINES:]
        self._answer.text = self._streamed(DeltaKind.TEXT)
        lines += self._answer.live_lines(painter)
        lines += painter.lines(Text("…", "dim")) if self._broken else ()
        now = self.clock.monotonic()
        lines += [line for card in self.cards.values() for text in card.texts(now) for line in painter.lines(text)]
        return lines


def _folded(thought: str) -> Text:
    return Text(f"▸ {one_line(thought)}", _THOUGHT, no_wrap=True, overflow="ellipsis")
