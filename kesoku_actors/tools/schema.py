"""A callable as a tool: its JSON schema, and the reader of the arguments a model sends back. Pure.

The schema comes from the annotations, the defaults and the docstring. A parameter annotated `ToolContext` is not in
it: the runner gives it. What comes back is checked as a whole, so that the model hears of every mistake at once.

What a function cannot be asked for by name and by type is refused when it is registered: `*args`, `**kwargs`,
parameters that are positional only, or without an annotation, or with one that JSON has no value for.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final, cast, get_args, get_origin, get_type_hints

from kesoku_actors.errors import UsageError
from kesoku_actors.protocol import ToolSchema
from kesoku_actors.tools.annotations import shape_of
from kesoku_actors.tools.docstrings import parse
from kesoku_actors.tools.port import ToolContext
from kesoku_actors.tools.records import REQUIRED, Key, make_key, object_schema, take_keys
from kesoku_actors.tools.shapes import UnsupportedAnnotation
from kesoku_actors.values import frozen

_NAME: Final = re.compile(r"[^\W\d][\w.-]{0,63}")
"""Letters and digits of any script; `llm/dialects` map a name that a provider refuses."""


class InvalidTool(UsageError):
    """A callable cannot be a tool; the text names it, the parameter and what to change."""


@frozen(kw_only=True)
class Signature:
    """What a tool takes."""

    schema: ToolSchema
    keys: Mapping[str, Key]
    """Its parameters but the context, in order."""
    context_parameter: str | None
    """The parameter that gets the `ToolContext`."""
    is_async: bool

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments of the call. Raises `InvalidArgument` that names every mistake."""
        return take_keys(arguments, self.keys, "")


def signature_of(function: Callable[..., Any], *, name: str | None = None) -> Signature:
    """Return what `function` takes as a tool called `name` (its own name otherwise). Raises `InvalidTool`."""
    if not callable(function) or isinstance(function, type):
        raise InvalidTool(f"{function!r:.80} is no function; register a function, or an object that can be called")
    plain = _plain(function)
    name = name or str(getattr(plain, "__name__", type(function).__name__))
    if not _NAME.fullmatch(name):
        raise InvalidTool(
            f"tool {name[:80]!r}: a name is 1 to 64 letters, digits, '_', '-' or '.', and begins with a letter or '_'; "
            "give another one as `name`"
        )
    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise InvalidTool(f"tool {name!r}: it yields; let it return a list instead")
    documentation = parse(plain.__doc__ or function.__doc__)
    keys: dict[str, Key] = {}
    context_parameter = None
    for parameter in _parameters(function, name):
        annotation = _annotation(plain, parameter, name)
        if _is_context(annotation):
            context_parameter = parameter.name
            continue
        try:
            shape = shape_of(annotation)
        except UnsupportedAnnotation as problem:
            raise InvalidTool(f"tool {name!r}, parameter {parameter.name!r}: {problem}") from problem
        default = REQUIRED if parameter.default is parameter.empty else parameter.default
        told = documentation.parameters.get(parameter.name)
        keys[parameter.name] = make_key(parameter.name, shape, told, default)
    parameters = object_schema(tuple(keys.values()))
    try:
        json.dumps([documentation.description, parameters], ensure_ascii=False).encode()
    except UnicodeEncodeError as problem:
        raise InvalidTool(
            f"tool {name!r}: its docstring or its parameters hold half a character, {problem.object[problem.start]!a}, "
            "which no provider takes; remove it"
        ) from problem
    return Signature(
        schema=ToolSchema(name=name, description=documentation.description, parameters=parameters),
        keys=keys,
        context_parameter=context_parameter,
        is_async=inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(plain),
    )


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that carries annotations and docstring: beneath partials and wrappers, behind `__call__`."""
    if isinstance(function, functools.partial):
        return _plain(function.func)
    if inspect.isroutine(function):
        return function
    if hasattr(function, "__wrapped__"):
        return cast("Callable[..., Any]", inspect.unwrap(function))
    call: Callable[..., Any] = type(function).__call__
    return call


def _parameters(function: Callable[..., Any], name: str) -> Iterator[inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError as problem:
        raise InvalidTool(
            f"tool {name!r}: it does not say what it takes ({problem}); wrap it in a function"
        ) from problem
    for parameter in parameters:
        if (remedy := _NOT_BY_NAME.get(parameter.kind)) is not None:
            raise InvalidTool(
                f"tool {name!r}, parameter {str(parameter.replace(annotation=parameter.empty))!r}: it cannot be given "
                f"by name, as a tool's arguments all are; {remedy}"
            )
        yield parameter


_NOT_BY_NAME: Final[Mapping[Any, str]] = {
    inspect.Parameter.POSITIONAL_ONLY: "remove the '/' behind it",
    inspect.Parameter.VAR_POSITIONAL: "make it a list with a name, such as `items: list[str]`",
    inspect.Parameter.VAR_KEYWORD: "name each argument, or take `options: dict[str, str]`",
}


def _annotation(plain: Callable[..., Any], parameter: inspect.Parameter, name: str) -> Any:
    """Return the annotation of a parameter, read where it is a text. Raises `InvalidTool`."""
    if parameter.annotation is parameter.empty:
        raise InvalidTool(
            f"tool {name!r}, parameter {parameter.name!r}: it has no annotation; write `{parameter.name}: str`, or "
            "whatever it is"
        )
    holder = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    names = getattr(inspect.unwrap(plain), "__globals__", {})
    try:
        # One by one, so that the text can name the parameter; what is returned may be annotated as it likes.
        return get_type_hints(holder, names, include_extras=True)[parameter.name]
    except (NameError, TypeError, AttributeError, SyntaxError) as problem:
        raise InvalidTool(
            f"tool {name!r}, parameter {parameter.name!r}: its annotation {parameter.annotation!r} cannot be read: "
            f"{problem}; define or import the name at the top of the module, outside of `if TYPE_CHECKING`"
        ) from problem


def _is_context(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _is_context(get_args(annotation)[0])
    return annotation is ToolContext or (ToolContext in get_args(annotation) and type(None) in get_args(annotation))
