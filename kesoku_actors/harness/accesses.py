"""Which step read or changed which plain state: found by watching the lines of a program run, for reports alone. Pure.

A race is most often on a list, a dictionary or an attribute that nobody declared. So a run that is to be explained is
watched line by line: what a line of source names, is looked up where it runs, and noted as read or changed, with the
line. That is slow, and an approximation: what a line does within calls is seen in the lines of the called functions,
if they are the program's own; aliases are recognised by identity; a line that stores what it awaits counts when it is
through. Nothing that is looked up runs code of the program's.

Invariants: the program's own trace function is put back; a program runs the same watched as unwatched.
"""

from __future__ import annotations

import ast
import dis
import linecache
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePath
from types import CodeType, FrameType, MemberDescriptorType
from typing import Any, Final

from attrs import define, field, frozen

from kesoku_actors.harness.sites import Site, is_foreign, site_of_frame
from kesoku_actors.harness.touches import Touch

_CONTAINERS: Final = (list, dict, set, deque, bytearray)
_PLAIN: Final = (int, float, str, bytes, bool, tuple, frozenset, type(None))
_CHANGES: Final = frozenset(
    {"append", "appendleft", "add", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "remove"}
    | {"setdefault", "sort", "reverse", "update", "rotate"}
)
_LIBRARY: Final = tuple({str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "purelib", "platlib")})
_OURS: Final = str(Path(__file__).parent)
_ONE_LINE: Final = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>", "<lambda>")
_ENDS: Final = frozenset({dis.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in dis.opmap})


@frozen
class Named:
    """What a line of source does with what it names: `owner` is a dotted path, whose last part is what is used."""

    path: tuple[str, ...]
    changes: bool
    is_item: bool
    """Whether it is the thing itself that is used, as with `xs[0]` or `xs.append`, or the name that holds it."""
    awaits: bool
    """Whether the line waits before it stores."""


@define(eq=False)
class Accesses:
    """Notes plain state as it is used; `note` takes what is found."""

    note: Callable[[Touch], None]
    raised: Callable[[BaseException, Site], None]
    """Is told of an exception where it is first seen."""
    _kept: dict[int, Any] = field(factory=dict, init=False)
    """What was noted, so that addresses stay its own."""
    _labels: dict[Hashable, str] = field(factory=dict, init=False)
    _waiting: dict[FrameType, list[tuple[Named, Site]]] = field(factory=dict, init=False)
    _seen: set[int] = field(factory=set, init=False)
    _exceptions: list[BaseException] = field(factory=list, init=False)

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Be Python's trace function."""
        return self._line if _is_program(frame.f_code) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        match event:
            case "line":
                self._pass(frame)
                self._use(frame)
            case "return" if frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] in _ENDS:
                self._pass(frame)
                if frame.f_code.co_name in _ONE_LINE:
                    self._use(frame)  # its line began before its own variable was bound
            case "exception":
                self._waiting.pop(frame, None)
                if id(argument[1]) not in self._seen and isinstance(argument[1], BaseException):
                    self._seen.add(id(argument[1]))
                    self._exceptions.append(argument[1])
                    self.raised(argument[1], site_of_frame(frame))
            case _:
                pass
        return self._line

    def _pass(self, frame: FrameType) -> None:
        """Note what the last line stored, if it waited before."""
        for named, site in self._waiting.pop(frame, ()):
            self._note(frame, named, site)

    def _use(self, frame: FrameType) -> None:
        every = _named_in(frame.f_code.co_filename).get(frame.f_lineno, ())
        site = site_of_frame(frame) if every else _site(frame)
        for named in every:
            if named.awaits and named.changes:
                self._waiting.setdefault(frame, []).append((named, site))
            else:
                self._note(frame, named, site)

    def _note(self, frame: FrameType, named: Named, site: Site) -> None:
        found = self._found(frame, named)
        if found is None:
            return
        key, thing, text = found
        self._kept[id(thing)] = thing
        label = self._labels.setdefault(key, f"`{text}`")
        how = "changes" if named.changes else "reads"
        self.note(Touch(label, how, named.changes, site, True, key))

    def _found(self, frame: FrameType, named: Named) -> tuple[Hashable, Any, str] | None:
        """Return the key of what is used, a thing to keep, and what to call it; none for what no two tasks share."""
        code, (first, *rest) = frame.f_code, named.path
        is_shared = first in code.co_freevars or first in code.co_cellvars
        locals_ = frame.f_locals
        if first in locals_:
            value = locals_[first]
        elif first in code.co_varnames or is_shared or first not in code.co_names:
            return None  # not bound yet, or of the function around a comprehension
        else:
            is_shared, value = True, frame.f_globals.get(first, _NOTHING)
        owner: Any = None
        for part in rest:
            is_key = part.startswith("[")
            owner, value = value, _item(frame, value, part) if is_key else _attribute(value, part)
        if value is _NOTHING and not named.changes:
            return None
        text = ".".join(named.path).replace(".[", "[")
        if isinstance(value, _CONTAINERS) and (named.is_item or not named.changes):
            return id(value), value, text
        if named.is_item:
            return (id(value), value, text) if _is_state(value) else None
        if rest:
            return ((id(owner), rest[-1]), owner, text) if _is_state(owner) else None
        if is_shared and (named.changes or isinstance(value, _PLAIN)):
            return (code.co_filename, _scope(code, first), first), None, text
        return None


class _Nothing:
    """In place of what is not there."""


_NOTHING: Final = _Nothing()


@contextmanager
def watching_lines(accesses: Accesses) -> Iterator[None]:
    """Watch every line of the program's own that runs."""
    before = sys.gettrace()
    sys.settrace(accesses.trace)
    try:
        yield
    finally:
        sys.settrace(before)


def _site(frame: FrameType) -> Site:
    return Site(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


@cache
def _is_program(code: CodeType) -> bool:
    file = code.co_filename
    if is_foreign(code) or file.startswith("<"):
        return False
    path = str(Path(file).resolve())
    if path.startswith(_LIBRARY):
        return False
    return not (path.startswith(_OURS) and "zoo" not in PurePath(path).parts)


def _attribute(value: Any, name: str) -> Any:
    """Look an attribute up without running code of the program's: in an instance's own place."""
    own = getattr(type(value), "__dict__", {}).get("__dict__")
    if own is not None or hasattr(type(value), "__dict__"):
        try:
            return object.__getattribute__(value, "__dict__")[name]
        except (AttributeError, KeyError, TypeError):
            pass
    for kind in type(value).__mro__:
        slot = kind.__dict__.get(name)
        if isinstance(slot, MemberDescriptorType):
            try:
                return slot.__get__(value)
            except AttributeError:
                return _NOTHING
    return _NOTHING


def _item(frame: FrameType, value: Any, part: str) -> Any:
    """Look up what a container of Python's own holds under a key, as `[2]`, `['name']` or `[place]`, where place is a
    number or a string.
    """
    key: Any = part[1:-1]
    key = frame.f_locals.get(key, _NOTHING) if key.isidentifier() else ast.literal_eval(key)
    if type(value) not in (list, dict, tuple, deque) or type(key) not in (int, str):
        return _NOTHING
    try:
        return value[key]
    except (LookupError, TypeError):
        return _NOTHING


def _is_state(value: Any) -> bool:
    """Whether it is an object of the program's own kind, or a container: no module, class, function or primitive."""
    if isinstance(value, _CONTAINERS):
        return True
    module = sys.modules.get(type(value).__module__)
    file = getattr(module, "__file__", None)
    return file is not None and not isinstance(value, type) and _is_program_file(file)


@cache
def _is_program_file(file: str) -> bool:
    path = Path(file).resolve()
    foreign = any(part in ("trio", "anyio", "outcome", "attr") for part in path.parts[:-1])
    inside = str(path).startswith(_OURS) and "zoo" not in path.parts
    return not foreign and not inside and not str(path).startswith(_LIBRARY)


def _scope(code: CodeType, name: str) -> str:
    """Return the function whose variable it is, as far as the names of functions tell."""
    if name in code.co_cellvars:
        return code.co_qualname
    if name in code.co_freevars:
        return code.co_qualname.rpartition(".<locals>.")[0]
    return ""


@cache
def _named_in(file: str) -> dict[int, tuple[Named, ...]]:
    """Return what each line of a file names."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    found: dict[int, list[Named]] = {}
    for statement in ast.walk(tree):
        if isinstance(statement, ast.stmt):
            for line, named in _named_by(statement):
                found.setdefault(line, []).append(named)
    return {line: tuple(dict.fromkeys(all_)) for line, all_ in found.items()}


def _named_by(statement: ast.stmt) -> Iterator[tuple[int, Named]]:
    parts = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
    nodes = [node for part in parts for node in _within(part)]
    awaits = any(isinstance(node, ast.Await) for node in nodes)
    if isinstance(statement, ast.AugAssign):
        nodes += [_loaded(statement.target)]
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=method)) if (
                path := _path(value)
            ) and method in _CHANGES:
                yield node.lineno, Named(path, True, True, False)
            case ast.Subscript(value=value, ctx=context) if path := _path(value):
                yield node.lineno, Named(path, not isinstance(context, ast.Load), True, awaits)
            case ast.Attribute(ctx=context) if path := _path(node):
                yield node.lineno, Named(path, not isinstance(context, ast.Load), False, awaits)
            case ast.Name(id=name, ctx=context):
                yield node.lineno, Named((name,), not isinstance(context, ast.Load), False, awaits)
            case _:
                pass


def _within(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and what is in it, without the bodies of functions and statements that run another time."""
    if isinstance(node, ast.stmt | ast.Lambda):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _within(child)


def _loaded(target: ast.AST) -> ast.AST:
    """Return what `target += ...` reads."""
    read = ast.parse(ast.unparse(target), mode="eval").body
    return ast.copy_location(read, target)


def _path(node: ast.AST) -> tuple[str, ...]:
    """Return a dotted path of names and of keys that are a name or a constant; nothing for anything else."""
    parts: list[str] = []
    while True:
        match node:
            case ast.Attribute(value=value, attr=name):
                parts.insert(0, name)
            case ast.Subscript(value=value, slice=ast.Name(id=name)):
                parts.insert(0, f"[{name}]")
            case ast.Subscript(value=value, slice=ast.Constant(value=int() | str() as key)):
                parts.insert(0, f"[{key!r}]")
            case ast.Name(id=name):
                return name, *parts
            case _:
                return ()
        node = value
