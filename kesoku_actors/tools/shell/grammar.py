"""A script as a tree of the grammar of Bash, which is a superset of that of /bin/sh. Pure.

The grammar is tree-sitter's. It is loaded when the first command is judged, since nothing before needs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

EXPANSIONS: Final = frozenset(
    {"simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion"}
)
"""Nodes that become other text when the script runs."""

_MISREAD: Final = (
    (re.compile(r"(\n[ \t]*)(?=\\[^\n])"), r"\1''"),  # a line that begins with a backslash goes on with the one before
    (re.compile(r"(\\[ \t])#"), r"\1''#"),  # behind an escaped blank a comment begins
    (re.compile(r"(?<!\\)((?:\\\\)*)\$(?=\s|\Z)"), r"\1\\$"),  # a lone `$` takes the next word for its name
)
"""What the grammar takes for something else than every shell does, and how to write the same so that it does not."""


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def parse(script: str) -> Node:
    """Return the root of the tree of `script`; `has_error` tells that not all of it was understood."""
    for pattern, better in _MISREAD:
        script = pattern.sub(better, script)
    return _parser().parse(script.encode("utf-8", "replace")).root_node


def text_of(node: Node) -> str:
    """Return the source of `node`."""
    return node.text.decode("utf-8", "replace") if node.text is not None else ""


def all_nodes(root: Node) -> Iterator[Node]:
    """Yield `root` and all beneath it in the order of the source, however deep the tree is."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))
