"""The terminal's modes, saved before anything changes them and put back at the end, whatever happened.

From the first moment typed keys are neither echoed nor held back until a line end: they would stand in the middle of
what is painted, and would come too late. The editor sets what else it needs, and puts back what it found.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TextIO


@contextmanager
def quiet_keys(stdin: TextIO) -> Generator[None, None, None]:
    """Keep typed keys off the screen while the block runs; then the terminal is as it was."""
    if sys.platform == "win32":  # its editor reads keys that are never echoed
        yield
        return
    import termios

    descriptor = stdin.fileno()
    saved = termios.tcgetattr(descriptor)
    quiet = list(saved)
    quiet[3] = saved[3] & ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal itself is gone
            termios.tcsetattr(descriptor, termios.TCSANOW, saved)
