"""The sandbox of a run: tried once at start, and refused or told of where there is none (T2)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kesoku_actors.app.settings import Settings
from kesoku_actors.errors import ConfigError
from kesoku_actors.tools.shell import DEFAULT_PATH, NoSandbox, Sandbox, find_sandbox
from kesoku_actors.values import frozen

_PRIVATE: Final = (".ssh", ".gnupg", ".config", ".profile", ".bashrc")
"""What a home has that no command may see."""


@frozen(kw_only=True)
class Shelter:
    """Where the commands of a run run."""

    sandbox: Sandbox | None = None
    """None: on this system itself."""
    missing: str | None = None
    """Why there is no sandbox and what to do about it, where somebody should be told."""

    @property
    def told(self) -> str:
        """Where commands run, in words."""
        if self.sandbox is not None:
            return "sandboxed (bubblewrap)"
        return "off" if self.missing is None else "no sandbox"


UNSHELTERED: Final = Shelter()


def find_shelter(settings: Settings) -> Shelter:
    """Return where commands run. Raises `ConfigError` when a sandbox is required and none holds.

    It starts processes and waits for them, a few hundredths of a second: to be called once at start.
    """
    shell = settings.shell
    if not shell.enabled:
        return Shelter()
    if shell.sandbox == "off":
        return Shelter(missing="it is switched off, with sandbox in [shell]")
    search_path = os.environ.get("PATH", DEFAULT_PATH)
    found = find_sandbox(network=shell.network, hidden=tuple(_hidden(settings)), search_path=search_path)
    if isinstance(found, NoSandbox):
        if shell.sandbox == "require":
            place = settings.source or "the configuration"
            raise ConfigError(f"{place}: shell.sandbox: 'require' cannot be kept: {found.reason}; {found.remedy}")
        return Shelter(missing=f"{found.reason}; {found.remedy}")
    return Shelter(sandbox=found)


def _hidden(settings: Settings) -> Iterator[Path]:
    """What must not be seen inside."""
    yield settings.workspace.db_path
    if settings.source is not None:
        yield settings.source.absolute()
    try:
        home = Path.home()
    except RuntimeError:  # there is none
        return
    yield from (home / name for name in _PRIVATE)
