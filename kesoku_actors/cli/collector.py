"""How often Python looks for garbage in cycles, of this process.

A thousand turns at once hold a few hundred thousand values that are all alive; looking through the young ones every
seven hundred, as Python does by itself, is a seventh of what they cost and finds next to nothing. Values here are
frozen and die by their count. What does lie in cycles, such as a traceback, goes when ten thousand more were made.
"""

from __future__ import annotations

import gc
from typing import Final

_YOUNG: Final = 10_000


def collect_rarely() -> None:
    """Let more values come between two looks; the older generations as Python has them."""
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
