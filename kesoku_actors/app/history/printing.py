"""Lines on standard output: in colour on a terminal that has it, plain in a pipe. There is no pager: `| less -R`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Final

from kesoku_actors.app.history.pages import Line, Style
from kesoku_actors.log import Mask

_CODES: Final[Mapping[Style, str]] = {
    Style.HEAD: "1",
    Style.DIM: "2",
    Style.WHO: "1;36",
    Style.TOOL: "32",
    Style.BAD: "33",
}


def is_coloured() -> bool:
    """Tell whether standard output shows colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_lines(lines: Iterable[Line], mask: Mask) -> None:
    """Write lines to standard output, known secrets masked (T6)."""
    coloured = is_coloured()
    for line in lines:
        text, code = mask(line.text), _CODES.get(line.style) if coloured else None
        write(f"\x1b[{code}m{text}\x1b[0m\n" if code and text else f"{text}\n")


def write(text: str) -> None:
    """Write text; what the output's encoding does not have becomes question marks."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
