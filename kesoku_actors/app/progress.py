"""Long work on the command line shows its progress: a line that grows on a terminal, else one line a step."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

from kesoku_actors.log import write_if_open
from kesoku_actors.values import define

Progress = Callable[[str, float | None], None]
"""Told the present step in words, and how much of it is done, from 0 to 1, if that is known."""


@define(eq=False)
class ProgressLine:
    """Shows steps on a stream."""

    stream: TextIO | None
    step: str = ""

    def __call__(self, step: str, fraction: float | None) -> None:
        """Show that `step` has come this far."""
        begins, self.step = step != self.step, step
        if self.stream is None:
            return
        if self.stream.isatty():
            done = "" if fraction is None else f" {fraction:4.0%}"
            write_if_open(self.stream, f"\r\x1b[K{step}{done}" + ("\n" if fraction == 1.0 else ""))
        elif begins:
            write_if_open(self.stream, f"{step}\n")


def progress_on_stderr() -> Progress:
    """Return a progress line on standard error."""
    return ProgressLine(stream=sys.stderr)
