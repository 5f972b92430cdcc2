"""What the variables of a script can be when they are used. Pure.

Every assignment of a script counts, wherever it stands. A variable may be empty too, unless the script sets it before
its first use and on every way to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kesoku_actors.tools.shell.expansion import MAY_SPLIT, MOST_VALUES, Fields, Scope, Values, values
from kesoku_actors.tools.shell.feeding import printed_by
from kesoku_actors.tools.shell.grammar import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_EMPTY: Final[Fields] = ()
_UNKNOWN: Final[Fields] = (MAY_SPLIT,)
_SETTERS: Final = frozenset({"getopts", "mapfile", "printf", "read", "readarray"})
_TRANSPARENT: Final = frozenset({"declaration_command", "list", "variable_assignments"})
_ROUNDS: Final = 2
"""A variable may be set to another one, and a substitution may print one."""


def scope_of(nodes: Sequence[Node]) -> Scope:
    """Return what the variables and substitutions of a script can be; `nodes` are all of it, in order."""
    if not any(node.type in ("simple_expansion", "expansion", "command_substitution") for node in nodes):
        return Scope()
    scope = Scope()
    for _ in range(_ROUNDS):
        printed = dict(scope.printed)
        for node in reversed(nodes):  # what stands inside another one comes first
            if node.type in ("command_substitution", "process_substitution"):
                text = printed_by(node, Scope(scope.variables, printed))
                if text is not None:
                    printed[node.start_byte] = text
        scope = Scope(_variables(nodes, Scope(scope.variables, printed)), printed)
    return scope


def _variables(nodes: Sequence[Node], scope: Scope) -> dict[str, Values]:
    possible: dict[str, dict[Fields, None]] = {}
    set_at: dict[str, int] = {}
    used_at: dict[str, int] = {}

    def add(name: str, given: Values) -> None:
        possible.setdefault(name, {}).update(dict.fromkeys(given))

    for node in nodes:
        match node.type:
            case "variable_assignment":
                name, given = _assignment(node, scope)
                add(name, given)
                if name not in set_at and _is_certain(node):
                    set_at[name] = node.end_byte
            case "for_statement":
                words = [child for child in node.children[2:] if child.is_named and child.type != "do_group"]
                name = text_of(next(child for child in node.children if child.is_named))
                given = tuple((field,) for word in words for value in values(word, scope) for field in value)
                add(name, given or (_UNKNOWN,))
                set_at.setdefault(name, node.start_byte)
            case "command" if node.children and text_of(node.children[0]) in _SETTERS:
                for word in node.children[1:]:
                    if re.fullmatch(r"[A-Za-z_]\w*", text_of(word)):
                        add(text_of(word), (_UNKNOWN,))
            case "simple_expansion" | "expansion":
                for child in node.children:
                    if child.type == "variable_name":
                        used_at.setdefault(text_of(child), node.start_byte)
            case _:
                pass
    for name in possible:
        if name not in set_at or used_at.get(name, set_at[name]) < set_at[name]:
            add(name, (_EMPTY,))
    return {name: tuple(each) if len(each) <= MOST_VALUES else (_UNKNOWN,) for name, each in possible.items()}


def _assignment(node: Node, scope: Scope) -> tuple[str, Values]:
    name, *rest = node.children
    if name.type == "subscript":
        return text_of(name.children[0]), (_UNKNOWN,)
    if any(text_of(child) == "+=" for child in rest):
        return text_of(name), (_UNKNOWN,)
    given = [child for child in rest if child.is_named]
    return text_of(name), values(given[0], scope) if given else (_EMPTY,)


def _is_certain(node: Node) -> bool:
    """Whether the script cannot go on without it: it stands alone, or first in a list."""
    here = node
    while (parent := here.parent) is not None and parent.type in _TRANSPARENT:
        if parent.type == "list" and parent.children[0] != here:
            return False
        here = parent
    return parent is not None and parent.type == "program"
