"""Which tools there are: a table of callables, each with the owner that registered it. Pure.

A name belongs to the first owner that registers it; a second one is refused with the first one's name. What `add`
returns undoes exactly that registration, and may be called twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import field

from kesoku_actors.errors import UsageError
from kesoku_actors.protocol import ToolSchema
from kesoku_actors.tools.port import ToolOutcome
from kesoku_actors.tools.schema import Signature, signature_of
from kesoku_actors.values import define, frozen


class DuplicateTool(UsageError):
    """The name is taken; the text names its owner."""


@frozen(kw_only=True)
class Asking:
    """What a person is asked when a call needs a yes."""

    parts: tuple[str, ...] | None = ()
    """What a yes for the session would cover of the tool (`Approval.parts`)."""


Preview = Callable[[Mapping[str, Any]], Awaitable[Asking | ToolOutcome]]
"""Looks at a call's arguments before a person is asked: nobody is asked about what would be refused anyway."""


@frozen(kw_only=True, eq=False)
class Tool:
    """One registered callable."""

    name: str
    owner: str
    function: Callable[..., Any]
    signature: Signature
    deadline_s: float | None = None
    """Its own deadline; the runner's when none."""
    risky: bool = False
    """Whether its calls wait for a person's yes where risky ones do (T7)."""
    becomes_job: bool = False
    """Whether a call that runs at its deadline goes on as a job (I8), instead of being ended."""
    preview: Preview | None = None


@define(kw_only=True)
class ToolRegistry:
    """The tools of one program, in the order they were registered."""

    _tools: dict[str, Tool] = field(factory=dict, init=False)

    def add(
        self,
        function: Callable[..., Any],
        *,
        owner: str,
        name: str | None = None,
        deadline_s: float | None = None,
        risky: bool = False,
        becomes_job: bool = False,
        preview: Preview | None = None,
    ) -> Callable[[], None]:
        """Register `function` and return its disposer; the rest is told at `Tool`.

        Raises `InvalidTool`, `DuplicateTool`.
        """
        signature = signature_of(function, name=name)
        name = signature.schema.name
        if (present := self._tools.get(name)) is not None:
            raise DuplicateTool(f"tool {name!r} of {owner} is taken by {present.owner}; rename one of them")
        tool = Tool(
            name=name,
            owner=owner,
            function=function,
            signature=signature,
            deadline_s=deadline_s,
            risky=risky,
            becomes_job=becomes_job,
            preview=preview,
        )
        self._tools[name] = tool

        def dispose() -> None:
            if self._tools.get(name) is tool:
                del self._tools[name]

        return dispose

    def find(self, name: str) -> Tool | None:
        """Return the tool called `name`, if there is one."""
        return self._tools.get(name)

    def schemas(self) -> tuple[ToolSchema, ...]:
        """Return what a model is told, in the order of registration."""
        return tuple(tool.signature.schema for tool in self._tools.values())

    def names(self) -> tuple[str, ...]:
        """Return the names, in the order of registration."""
        return tuple(self._tools)

    def owners(self) -> dict[str, str]:
        """Return each tool's owner: for the printed tree."""
        return {tool.name: tool.owner for tool in self._tools.values()}
