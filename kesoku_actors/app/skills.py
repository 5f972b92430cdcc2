"""The skills of a run: whose folders they are, and how the model comes to know of them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import trio

from kesoku_actors.app.locations import exposed
from kesoku_actors.app.settings import Settings
from kesoku_actors.prompt import PromptContext, PromptLayer, Source
from kesoku_actors.skills import SHIPPED, Shelf, host_platform, skill_tools, summary
from kesoku_actors.tools import ToolRegistry

OWNER = "kesoku"


def skill_shelf(settings: Settings) -> Shelf:
    """Return the folders of skills, a person's own first, each once; nothing is read yet.

    One's own may be the shipped ones: `skills` beside a configuration that lies in a checkout.
    """
    shipped = (SHIPPED,) if settings.skills.shipped else ()
    roots = (settings.workspace.skills_dir, *settings.skills.roots, *shipped)
    real = dict.fromkeys(Path(os.path.realpath(root)) for root in roots)
    return Shelf(roots=tuple(real), host=host_platform(sys.platform))


def add_skill_tools(shelf: Shelf, registry: ToolRegistry) -> None:
    """Let the model list and use what is on the shelf."""
    for tool in skill_tools(shelf):
        registry.add(tool, owner=OWNER)


def skill_layer(shelf: Shelf) -> PromptLayer:
    """Return what the prompt says of skills, read again before a prompt when a folder changed."""

    async def read() -> None:
        # A folder may lie on a disk that does not answer: a reading left behind does no harm.
        await trio.to_thread.run_sync(shelf.read, abandon_on_cancel=True)

    def render(context: PromptContext) -> str:
        return summary(shelf.catalog, small=context.small_model) if context.has_tools else ""

    source = Source(is_stale=shelf.is_stale, read=read)
    return PromptLayer(name="skills", owner=OWNER, position=20, render=render, source=source)


def skill_warnings(settings: Settings) -> tuple[str, ...]:
    """Return what a person should know of the folders: who else may write what the model is to follow (P04)."""
    found = (exposed(root, 0o022) for root in (settings.workspace.skills_dir, *settings.skills.roots))
    return tuple(warning for warning in found if warning is not None)
