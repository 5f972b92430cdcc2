"""A person's own tools: loaded before anything runs, so that no loop waits for them, and registered after ours."""

from __future__ import annotations

from pathlib import Path

from kesoku_actors.app.settings import Settings
from kesoku_actors.log import Logger
from kesoku_actors.tools import DuplicateTool, ToolRegistry
from kesoku_actors.tools.modules import OwnTools


def load_own_tools(settings: Settings) -> OwnTools:
    """Load the modules of the settings, relative to where the configuration lies. Never raises for a module."""
    folder = settings.source.parent if settings.source is not None else Path.cwd()
    own = OwnTools(folder=folder, writable=(settings.workspace.sessions_dir, *settings.tools.roots))
    for entry in settings.tools.modules:
        own.add(entry)
    return own


def add_own_tools(own: OwnTools, registry: ToolRegistry, log: Logger) -> None:
    """Register them; one whose name is taken by ours is left out and told of, as the start must not fail for it."""
    for name, owner in own.registry.owners().items():
        tool = own.registry.find(name)
        assert tool is not None
        try:
            registry.add(tool.function, owner=owner, name=name, risky=True)  # nobody has told that it is not (T7)
        except DuplicateTool as problem:
            log.error("a tool of yours was left out", tool=name, reason=str(problem))
