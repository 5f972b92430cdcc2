"""A callable as a tool: its JSON schema, and the reader of the arguments a model sends back. Pure.

The schema comes from the annotations, the defaults and the docstring. A parameter annotated `ToolContext` is not in
it: the runner gives it. What comes back is checked as a whole, so that the model hears of every mistake at once.
"""

from __future__ import annotations

import enum
import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

from attrs import frozen

from kesoku_actors.errors import UsageError
from kesoku_actors.protocol import ToolSchema
from kesoku_actors.tools.docstrings import parse
from kesoku_actors.tools.port import ToolContext
from kesoku_actors.tools.shapes import InvalidArgument, Shape, UnsupportedAnnotation, shape_of

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""What every provider takes as a tool's name."""


class InvalidTool(UsageError):
    """A callable cannot be a tool; the text names it, the parameter and what to change."""


@frozen(kw_only=True)
class Parameter:
    """One argument of a tool."""

    name: str
    shape: Shape
    required: bool


@frozen(kw_only=True)
class Signature:
    """What a tool takes."""

    schema: ToolSchema
    parameters: tuple[Parameter, ...]
    context_parameter: str | None
    """The parameter that gets the `ToolContext`."""
    is_async: bool

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments of the call. Raises `InvalidArgument` that names every mistake."""
        known = {parameter.name: parameter for parameter in self.parameters}
        problems = [
            f"there is no argument {name!r}; known are {', '.join(known) or 'none'}"
            for name in arguments
            if name not in known
        ]
        bound: dict[str, Any] = {}
        for name, parameter in known.items():
            absent = name not in arguments
            # Models send null for what they leave out: where null is not a value of its own it means the default.
            if absent or (arguments[name] is None and not parameter.required and not parameter.shape.fits(None)):
                if parameter.required:
                    problems.append(f"the argument {name!r} is missing")
                continue
            try:
                bound[name] = parameter.shape.take(arguments[name], name)
            except InvalidArgument as problem:
                problems.append(str(problem))
        if problems:
            raise InvalidArgument("; ".join(problems))
        return bound


def signature_of(function: Callable[..., Any], *, name: str | None = None) -> Signature:
    """Return what `function` takes as a tool called `name` (its own name otherwise). Raises `InvalidTool`."""
    plain = _plain(function)
    name = name or str(getattr(plain, "__name__", type(function).__name__))
    if not _NAME.fullmatch(name):
        raise InvalidTool(f"tool {name!r}: a name is 1 to 64 letters, digits, '_' or '-', and begins with no digit")
    try:
        hints = get_type_hints(plain, include_extras=True)
    except (NameError, TypeError) as problem:
        raise InvalidTool(f"tool {name!r}: its annotations cannot be read: {problem}") from problem
    documentation = parse(plain.__doc__ or function.__doc__)
    parameters: list[Parameter] = []
    properties: dict[str, Any] = {}
    context_parameter = None
    for parameter in inspect.signature(function).parameters.values():
        annotation = hints.get(parameter.name, Any)
        if _is_context(annotation):
            context_parameter = parameter.name
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InvalidTool(f"tool {name!r}: {parameter} cannot be given by name; a tool's arguments all are")
        try:
            shape = shape_of(annotation)
        except UnsupportedAnnotation as problem:
            raise InvalidTool(f"tool {name!r}, parameter {parameter.name!r}: {problem}") from problem
        required = parameter.default is parameter.empty
        parameters.append(Parameter(name=parameter.name, shape=shape, required=required))
        properties[parameter.name] = {
            **_description(documentation.parameters.get(parameter.name)),
            **shape.schema,
            **({} if required else _default(parameter.default)),
        }
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required_names := [parameter.name for parameter in parameters if parameter.required]:
        schema["required"] = required_names
    return Signature(
        schema=ToolSchema(name=name, description=documentation.description, parameters=schema),
        parameters=tuple(parameters),
        context_parameter=context_parameter,
        is_async=inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(plain),
    )


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that carries annotations and docstring: beneath a partial, behind an instance's `__call__`."""
    if isinstance(function, functools.partial):
        return _plain(function.func)
    if inspect.isroutine(function):
        return function
    call: Callable[..., Any] = type(function).__call__
    return call


def _is_context(annotation: Any) -> bool:
    return annotation is ToolContext or (get_origin(annotation) is Annotated and get_args(annotation)[0] is ToolContext)


def _description(text: str | None) -> dict[str, str]:
    return {"description": text} if text else {}


def _default(value: Any) -> dict[str, Any]:
    """The schema's `default`, when JSON can say it."""
    plain = value.value if isinstance(value, enum.Enum) else value
    try:
        json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError):
        return {}
    return {"default": plain}
