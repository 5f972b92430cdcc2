"""Writes the demonstration for a person: what is about to happen, what happens, and what was checked.

In colour on a terminal, plain where the output is piped. A streamed text grows on one line and is ended by whatever is
written next.
"""

from __future__ import annotations

import textwrap
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TextIO

import trio
from attrs import field

from kesoku_actors.adapters.terminal.harmless import harmless
from kesoku_actors.protocol import DeltaKind, Message, Outcome, Type
from kesoku_actors.values import define

WIDTH: Final = 92
_MARGIN: Final = " " * 10
_COLOURS: Final[Mapping[str, str]] = {
    "title": "1",
    "dim": "2",
    "you": "34",
    "model": "35",
    "tool": "32",
    "kept": "1;32",
    "trouble": "33",
}
_SIGNS: Final[Mapping[str, str]] = {Outcome.OK: "✓", Outcome.UNKNOWN: "?", Outcome.INTERRUPTED: "■"}


@define(eq=False)
class Narrator:
    """The one writer of a demonstration."""

    out: TextIO
    is_coloured: bool
    pause_s: float
    """How long a person is left to read what was said of a scene."""
    sleep: Callable[[float], Awaitable[object]] = trio.sleep
    _open: DeltaKind | None = field(default=None, init=False)
    """What is being streamed on a line that is not ended yet."""
    _column: int = field(default=0, init=False)

    async def scene(self, number: int, of: int, title: str, words: str) -> None:
        """Announce a scene and leave time to read."""
        head = f"── {number}/{of}  {title} "
        self._line(f"\n{self._painted('title', head.ljust(WIDTH, '─'))}")
        await self.say(words)

    async def say(self, words: str) -> None:
        """Tell something and leave time to read it."""
        self._line(self._painted("dim", textwrap.fill(words, WIDTH)) + "\n")
        await self.sleep(self.pause_s)

    def heard(self, who: str, text: str) -> None:
        """Show what somebody says, or what happens to them."""
        words = textwrap.fill(harmless(text), WIDTH - len(_MARGIN), replace_whitespace=False)
        self._line(f"{self._label(who)}{words.replace(chr(10), chr(10) + _MARGIN)}")

    def stream(self, kind: DeltaKind, text: str) -> None:
        """Show the next piece of what the model thinks or says."""
        if self._open is not kind:
            self.end_line()
            self.out.write(self._label("model"))
            self._column = len(_MARGIN)
        self._open = kind
        for word in harmless(text).splitlines(keepends=True):
            if self._column + len(word) > WIDTH:
                self.out.write(f"\n{_MARGIN}")
                self._column = len(_MARGIN)
            self.out.write(self._painted("dim", word) if kind is DeltaKind.THOUGHT else word)
            self._column += len(word)
        self.out.flush()

    def result(self, row: Message) -> None:
        """Show how a tool call ended."""
        outcome = row.metadata["outcome"]
        lines = [line for line in row.content.splitlines() if line.strip() and not line.startswith("[")]
        took = "" if outcome == Outcome.UNKNOWN else f"{row.metadata['duration_s']:.1f} s  "
        self.heard("tool", f"{_SIGNS.get(outcome, '✗')} {took}{' · '.join(lines[:3])}")

    def row(self, row: Message) -> None:
        """Show a row that was committed, unless it was streamed already."""
        match row.type:
            case Type.THOUGHT:
                self.heard("model", row.content)
            case Type.TOOL_CALL:
                self.heard("tool", f"$ {row.metadata['tool_arguments'].get('command', row.content)}")
            case Type.TOOL_RESULT:
                self.result(row)
            case Type.TEXT:
                self.heard("model", row.content)

    def kept(self, promise: str) -> None:
        """Say that something was looked at and is as it should be."""
        self._line(f"  {self._painted('kept', '✓')} {promise}")

    def trouble(self, what: str) -> None:
        """Show that something bad is done on purpose."""
        self._line(f"  {self._painted('trouble', what)}")

    def end_line(self) -> None:
        """End what was streamed."""
        if self._open is not None:
            self._open = None
            self.out.write("\n")
            self.out.flush()

    def _line(self, text: str) -> None:
        self.end_line()
        self.out.write(f"{text}\n")
        self.out.flush()

    def _label(self, who: str) -> str:
        return f"  {self._painted(who, who.rjust(6))}  "

    def _painted(self, colour: str, text: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.is_coloured else text
