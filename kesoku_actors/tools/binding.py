"""The arguments of a call as its function takes them, or why it cannot be called. Pure."""

from __future__ import annotations

from typing import Any

from kesoku_actors.tools.port import ToolCall
from kesoku_actors.tools.registry import Tool, ToolRegistry
from kesoku_actors.tools.shapes import InvalidArgument


def bound(call: ToolCall, tool: Tool | None, registry: ToolRegistry) -> dict[str, Any]:
    """Return the arguments of `call` for `tool`, the one of its name. Raises `InvalidArgument`, said to a model."""
    if tool is None:
        known = ", ".join(registry.names()) or "none"
        raise InvalidArgument(f"there is no tool {call.name!r}; known are: {known}")
    if call.invalid is not None:
        raise InvalidArgument(f"the arguments of {call.name} could not be read: {call.invalid}")
    try:
        return tool.signature.bind(call.arguments)
    except InvalidArgument as problem:
        raise InvalidArgument(f"{call.name} was not run: {problem}") from problem
