"""Tool calls as cards: name, command, time, the beginning of the result. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve
from rich.text import Text

from kesoku_actors.adapters.terminal.harmless import harmless, one_line
from kesoku_actors.protocol import Outcome
from kesoku_actors.values import frozen

EXCERPT_LINES: Final = 6
_LONGEST_LINE: Final = 500
_SIGNS: Final[Mapping[Outcome, tuple[str, str]]] = {
    Outcome.OK: ("✓", "green"),
    Outcome.ERROR: ("✗", "red"),
    Outcome.INTERRUPTED: ("⊘", "yellow"),
    Outcome.UNKNOWN: ("?", "yellow"),
    Outcome.BACKGROUND: ("→", "cyan"),
}


@frozen(kw_only=True)
class Card:
    """A call that has no result yet."""

    name: str
    command: str
    since: float | None = None
    """Monotonic seconds at which it began to run; none while it waits."""
    rests: tuple[Outcome, float | None] | None = None
    """What it came to, and in how many seconds: it has ended, and waits for the others made with it."""

    def texts(self, now: float) -> tuple[Text, ...]:
        """Return the card's lines as they are at `now`."""
        command = _body(f"  {one_line(self.command)}")
        if self.rests is not None:
            return (_ended_head(self.name, *self.rests), command)
        state = "waiting" if self.since is None else f"{max(0.0, now - self.since):.0f} s"
        return (_head("●", "cyan", self.name, state), command)

    def resting(self, outcome: Outcome, now: float) -> Card:
        """Return the card of a call that ended at `now`."""
        return evolve(self, rests=(outcome, None if self.since is None else max(0.0, now - self.since)))

    def ended(self, outcome: Outcome, duration_s: float | None, result: str) -> tuple[Text, ...]:
        """Return the card's last lines."""
        return (_ended_head(self.name, outcome, duration_s), _body(f"  {one_line(self.command)}"), *excerpt(result))


def excerpt(result: str) -> tuple[Text, ...]:
    """Return the first lines of a result, and how many more there are."""
    lines = [line.expandtabs(4).rstrip() for line in harmless(result).strip("\n").split("\n")]
    if lines == [""]:
        return ()
    shown = lines if len(lines) <= EXCERPT_LINES + 1 else lines[:EXCERPT_LINES]
    rest = len(lines) - len(shown)
    more = (_body(f"  … {rest} more lines"),) if rest else ()
    return (*(_body(f"  │ {line[:_LONGEST_LINE]}") for line in shown), *more)


def _ended_head(name: str, outcome: Outcome, duration_s: float | None) -> Text:
    sign, style = _SIGNS[outcome]
    words = [] if outcome is Outcome.OK else [outcome.value]
    words += [] if duration_s is None else [f"{duration_s:.1f} s"]
    return _head(sign, style, name, " · ".join(words))


def _head(sign: str, style: str, name: str, state: str) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{sign} ", style)
    text.append(f"{state}  " if state else "", "dim")
    text.append(one_line(name), "bold")
    return text


def _body(line: str) -> Text:
    return Text(line, "dim", no_wrap=True, overflow="ellipsis")
