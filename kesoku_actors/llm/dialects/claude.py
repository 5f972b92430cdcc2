"""Tools for Anthropic's messages. Pure.

Names are `[A-Za-z0-9_-]`, 64 at most; keys of objects `[A-Za-z0-9_.-]`, 64 at most. The input schema is JSON schema of
2020-12 with an object and no union at its top, and without references.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from kesoku_actors.llm.dialects.declared import Declared
from kesoku_actors.llm.dialects.keys import renamed_keys
from kesoku_actors.llm.dialects.names import NameRule
from kesoku_actors.llm.dialects.normal import normal
from kesoku_actors.protocol import ToolSchema

NAMES: Final = NameRule(re.compile(r"[A-Za-z0-9_-]+"))
KEYS: Final = NameRule(re.compile(r"[A-Za-z0-9_.-]+"))


def declare(tools: Sequence[ToolSchema]) -> Declared:
    """Return `tools` as the entries of a request's `tools`."""
    made: list[dict[str, Any]] = []
    keys: dict[str, dict[str, str]] = {}
    for tool in tools:
        schema, keys[tool.name] = renamed_keys(normal(tool.parameters), KEYS)
        described = {"description": tool.description} if tool.description else {}
        made.append({"name": NAMES.outward(tool.name), **described, "input_schema": schema})
    names = {NAMES.outward(tool.name): tool.name for tool in tools}
    return Declared(tools=tuple(made), name_rule=NAMES, names=names, keys=keys)
