"""The sections of `config.toml`, one frozen value each, defaults included. Pure.

* `workspace`, `agent` (with prices), `providers`, `tools` (with the shell), `skills`, `discord`
* `rules`: what a single setting obeys, carried by its type

The names and defaults are those of the original design. Only `kesoku_actors.app` and the command line read sections;
every other package gets plain values from them as arguments.
"""

from kesoku_actors.app.sections.agent import Agent, ModelPrice
from kesoku_actors.app.sections.discord import Discord, DiscordChannels
from kesoku_actors.app.sections.providers import Claude, Gemini, Local, OpenAI, Scripted
from kesoku_actors.app.sections.skills import SkillSettings
from kesoku_actors.app.sections.tools import Shell, ToolSettings
from kesoku_actors.app.sections.workspace import Workspace

__all__ = [
    "Agent",
    "Claude",
    "Discord",
    "DiscordChannels",
    "Gemini",
    "Local",
    "ModelPrice",
    "OpenAI",
    "Scripted",
    "Shell",
    "SkillSettings",
    "ToolSettings",
    "Workspace",
]
