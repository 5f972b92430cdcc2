"""The settings of the run, for plugins and tools that nobody hands them to.

Our own modules take what they need as arguments. A `ContextVar` follows trio tasks, `trio.to_thread` and the
callbacks of an event loop started below it; `trio.lowlevel.RunVar` would not be readable in a thread. A turn keeps
the settings it began with.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from kesoku_actors.app.settings import Settings
from kesoku_actors.errors import UsageError

_SETTINGS: Final[ContextVar[Settings]] = ContextVar("settings")


@contextmanager
def use_settings(settings: Settings) -> Generator[None, None, None]:
    """Make `settings` what `get_config` returns inside; enter it before any task starts."""
    token = _SETTINGS.set(settings)
    try:
        yield
    finally:
        _SETTINGS.reset(token)


def get_config() -> Settings:
    """Return the settings of this run. Raises `UsageError` where no run is under way."""
    try:
        return _SETTINGS.get()
    except LookupError:
        raise UsageError("get_config() answers only inside a run; take settings as an argument elsewhere") from None
