"""Which view fits the streams a program was started with, and how each is made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import TextIO, assert_never

from kesoku_actors.adapters.terminal.output import stream_output
from kesoku_actors.adapters.terminal.view import View
from kesoku_actors.clock import Clock


class ViewKind(StrEnum):
    """The views there are."""

    RICH = "rich"
    PLAIN = "plain"
    JSON = "json"


def fitting_kind(stdout: TextIO | None, environ: Mapping[str, str]) -> ViewKind:
    """Return the rich view for a terminal that can move its cursor, the plain one for anything else."""
    can_draw = stdout is not None and stdout.isatty() and environ.get("TERM", "dumb") not in ("dumb", "unknown", "")
    return ViewKind.RICH if can_draw else ViewKind.PLAIN


def make_view(
    kind: ViewKind, *, stdout: TextIO | None, stderr: TextIO | None, environ: Mapping[str, str], clock: Clock
) -> View:
    """Return a view that writes to the given streams. What it needs is imported here: rich takes its time."""
    out = stream_output(stdout)
    match kind:
        case ViewKind.RICH:
            from kesoku_actors.adapters.terminal.rich_view import RichView

            def size() -> tuple[int, int]:
                try:
                    return os.get_terminal_size(1 if stdout is None else stdout.fileno())
                except OSError:
                    return (80, 24)

            return RichView(out=out, clock=clock, size=size, no_color=bool(environ.get("NO_COLOR")))
        case ViewKind.PLAIN:
            from kesoku_actors.adapters.terminal.plain import PlainView

            return PlainView(out=out, err=stream_output(stderr, "standard error"))
        case ViewKind.JSON:
            from kesoku_actors.adapters.terminal.json_view import JsonView

            return JsonView(out=out)
        case _:
            assert_never(kind)
