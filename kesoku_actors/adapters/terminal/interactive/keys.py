"""What the keyboard tells, as values. Pure."""

from __future__ import annotations

from kesoku_actors.adapters.terminal.interactive.input_rows import Typed
from kesoku_actors.values import frozen


@frozen
class Entered:
    """A text was finished with Enter."""

    text: str


@frozen
class Pressed:
    """Ctrl-C; `is_empty` when nothing stood in the input line."""

    is_empty: bool


@frozen
class FoldPressed:
    """Thoughts are to be folded or unfolded."""


@frozen
class RepaintPressed:
    """Something else wrote on the screen."""


@frozen
class SuspendPressed:
    """The shell is wanted; the program waits in its background."""


@frozen
class Resumed:
    """The program is in the foreground again."""


@frozen
class LeavePressed:
    """Ctrl-D in an empty line, or the keyboard is gone."""


@frozen
class NotRemembered:
    """The history cannot be written."""

    why: str


Told = (
    Typed | Entered | Pressed | FoldPressed | RepaintPressed | SuspendPressed | Resumed | LeavePressed | NotRemembered
)
