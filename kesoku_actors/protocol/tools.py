"""What a model is told of a tool. Pure; the schema is made in `kesoku_actors.tools`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kesoku_actors.values import frozen


@frozen(kw_only=True)
class ToolSchema:
    """One tool as data: what providers' dialects are made from."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """A JSON schema of type `object`."""
