"""A test that is explored: its function, the plan, and what it asks for; from it come programs that can be run."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import partial, wraps
from typing import Any

from attrs import field, frozen

from kesoku_actors.harness.control import Program
from kesoku_actors.harness.inputs import Inputs
from kesoku_actors.harness.origin import MARK, Origin, origin_of, source_fingerprint
from kesoku_actors.harness.search import Plan

WORLD = "world"
"""The argument that a function asks for a world by."""


@frozen(kw_only=True)
class Exploration:
    """What is explored."""

    function: Callable[..., Awaitable[object]]
    plan: Plan = field(factory=Plan)
    world: Callable[[], Any] | None = None
    """Makes the world of a run, if the function asks for one; none: a `World`."""
    drawn: Mapping[str, Any] = field(factory=dict)
    """Hypothesis strategies, by the argument they are for."""
    examples: int = 25
    """How many inputs Hypothesis draws at most; `plan.runs` is divided among those there are."""

    @property
    def origin(self) -> Origin | None:
        """Where a fresh process finds the function."""
        return origin_of(self.function)

    @property
    def name(self) -> str:
        """What a report calls it."""
        origin = self.origin
        return str(origin) if origin is not None else str(getattr(self.function, "__qualname__", self.function))

    @property
    def fingerprint(self) -> str:
        """Of the source."""
        return source_fingerprint(self.function)

    @property
    def open_arguments(self) -> tuple[inspect.Parameter, ...]:
        """The arguments that are neither drawn nor a world: whoever calls gives them."""
        parameters = inspect.signature(self.function).parameters
        return tuple(one for name, one in parameters.items() if name not in self.drawn and name != WORLD)

    def program(self, inputs: Inputs | None = None) -> Program:
        """Return the program with these inputs; each run gets a world of its own, and drawn values of its own."""
        function, inputs = self.function, inputs or Inputs()
        has_world = WORLD in inspect.signature(function).parameters
        if not has_world and not inputs.drawn:
            return partial(function, **inputs.fixed)
        make = (self.world or _default_world()) if has_world else None
        arguments = inputs.maker(self.drawn)

        @wraps(function)
        def begin() -> Awaitable[object]:
            world = {} if make is None else {WORLD: make()}
            return function(**arguments(), **world)

        return begin


def exploration_of(function: Callable[..., Any], **changes: Any) -> Exploration:
    """Return the exploration that a function is decorated with; with the defaults for one that is not."""
    found = getattr(function, MARK, None)
    return found if isinstance(found, Exploration) else Exploration(function=function, **changes)


def _default_world() -> Callable[[], Any]:
    world: Callable[[], Any] = importlib.import_module("kesoku_actors.harness.world").World
    return world
