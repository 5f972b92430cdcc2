"""The tools of a run without the run: for a person who wants to know whether their own are among them."""

from __future__ import annotations

from collections.abc import Sequence

from kesoku_actors.app.own_tools import add_own_tools, load_own_tools
from kesoku_actors.app.plan import store_options, tool_registry
from kesoku_actors.app.search import add_search_tool, search_over
from kesoku_actors.app.settings import Settings
from kesoku_actors.app.shelter import UNSHELTERED
from kesoku_actors.app.skills import skill_shelf
from kesoku_actors.clock import Clock
from kesoku_actors.log import Entry, Logger
from kesoku_actors.tools import Tool, Tools, add_job_tools


def _nobody_calls() -> Tools:
    raise AssertionError("tools that are listed are not called")


def listed_tools(settings: Settings) -> tuple[Sequence[Tool], Sequence[str]]:
    """Return every tool that a model would be offered, and a line for each of a person's own that was left out."""
    problems: list[str] = []

    def hear(entry: Entry) -> None:
        problems.append(str(entry.fields.get("reason", entry.event)))

    log = Logger(sink=hear, wall=Clock().wall)
    registry = tool_registry(settings, skill_shelf(settings), UNSHELTERED)
    add_search_tool(search_over(store_options(settings, log, lambda _point: None), log), registry)
    add_job_tools(registry, _nobody_calls)
    own = load_own_tools(settings)
    problems += own.problems
    add_own_tools(own, registry, log)
    return [tool for name in registry.names() if (tool := registry.find(name)) is not None], problems
