"""Tools in the words of one provider, and the way of a call's name and arguments out and back in. Pure.

Invariant: what `outward` changes of a declared tool's call, `inward` changes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve, field

from kesoku_actors.llm.dialects.names import NameRule
from kesoku_actors.llm.port import Reply
from kesoku_actors.protocol import ToolSchema
from kesoku_actors.values import define, frozen


@frozen(kw_only=True)
class Declared:
    """What a request says of its tools."""

    tools: tuple[Mapping[str, Any], ...]
    """The provider's own values, ready for its request."""
    name_rule: NameRule
    names: Mapping[str, str] = field(factory=dict)
    """By the name on the wire, the tool's own."""
    keys: Mapping[str, Mapping[str, str]] = field(factory=dict)
    """By a tool's own name: the keys of its arguments that go by another name on the wire."""

    def outward(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return a call as the provider knows it, also one of a tool that is no more."""
        return self.name_rule.outward(name), _renamed(arguments, self.keys.get(name, {}))

    def inward(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return a call of the provider as we know it."""
        name = self.names.get(name, name)
        return name, _renamed(arguments, {wire: own for own, wire in self.keys.get(name, {}).items()})

    def received(self, reply: Reply) -> Reply:
        """Return a provider's reply with its calls as we know them; its native content stays its own."""
        calls = []
        for call in reply.calls:
            name, arguments = self.inward(call.name, call.arguments)
            calls.append(evolve(call, name=name, arguments=arguments))
        return evolve(reply, calls=tuple(calls))


@define
class Declaring:
    """Declares tools, and the same tools only once."""

    declare: Callable[[Sequence[ToolSchema]], Declared]
    _tools: tuple[ToolSchema, ...] = field(default=(), init=False)
    _declared: Declared | None = field(default=None, init=False)

    def __call__(self, tools: tuple[ToolSchema, ...]) -> Declared:
        """Return what `declare` says of these tools."""
        known = self._declared
        is_same = len(tools) == len(self._tools) and all(map(_is_one, tools, self._tools))
        if known is None or not is_same:
            known = self._declared = self.declare(tools)
            self._tools = tools
        return known


def _is_one(first: object, second: object) -> bool:
    return first is second


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a JSON value whose objects have these keys under their other names."""
    if not names:
        return value
    match value:
        case Mapping():
            return {names.get(key, key): _renamed(inner, names) for key, inner in value.items()}
        case list() | tuple():
            return [_renamed(inner, names) for inner in value]
        case _:
            return value
