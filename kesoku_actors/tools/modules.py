"""A person's own tools: modules whose public functions become tools.

An entry is the path of a Python file or the dotted name of a module. Its tools are the public functions that it defines
itself, each with annotations and a docstring; what it imports, its classes and its `_private` functions are not.

A module that fails to load is named with its line and left out, whatever it raises, and never stops the start; so is a
single function that cannot be a tool. One that lies where a model may write is not loaded at all (P04): a turn could
write the code of the next start. What a module prints while it loads goes to standard error.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import io
import os
import stat
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

from attrs import field

from kesoku_actors.errors import UsageError
from kesoku_actors.tools.raised import said_by
from kesoku_actors.tools.registry import ToolRegistry
from kesoku_actors.values import define

_LONGEST_TEXT: Final = 300
Loaded = TypeVar("Loaded")


class NotLoaded(UsageError):
    """A module cannot be loaded; the text says where it fails and why."""


@define(kw_only=True)
class OwnTools:
    """Registers the tools of modules, and keeps what a person should be told of those that were left out."""

    registry: ToolRegistry = field(factory=ToolRegistry)
    """Its names are looked at among themselves here; who has others adds these to them."""
    folder: Path
    """Where relative paths start."""
    writable: Sequence[Path] = ()
    """Folders that a model may write in: no module there is loaded."""
    problems: list[str] = field(factory=list, init=False)

    def add(self, entry: str) -> None:
        """Load the module and register its tools under the owner `entry`."""
        try:
            module = self._load(entry)
            functions = _run(lambda: list(_public_functions(module)))
        except NotLoaded as problem:
            self.problems.append(f"{entry} was left out: {problem}")
            return
        before = len(self.registry.names()), len(self.problems)
        for name, function in functions:
            self._add_function(entry, name, function)
        if (len(self.registry.names()), len(self.problems)) == before:
            self.problems.append(
                f"{entry} has no tools: it defines no public function with annotations and a docstring"
            )

    def _add_function(self, entry: str, name: str, function: Callable[..., Any]) -> None:
        place = f"{entry}:{_line_of(function)}: {name}() is no tool"
        if not inspect.getdoc(function):
            self.problems.append(f"{place}: it has no docstring; write one, or begin its name with '_'")
            return
        try:
            self.registry.add(function, owner=entry, name=name)
        except BaseException as problem:  # annotations and defaults are foreign: reading them may raise anything
            if not isinstance(problem, Exception):
                raise
            self.problems.append(f"{place}: {said_by(problem) if isinstance(problem, UsageError) else _named(problem)}")

    def _load(self, entry: str) -> ModuleType:
        if is_path(entry):
            return _load_file(self._checked((self.folder / Path(entry).expanduser()).absolute()))
        beside = self.folder / f"{entry}.py"
        if "." not in entry and beside.is_file() and importlib.util.find_spec(entry) is None:
            raise NotLoaded(f"there is no module of this name; for the file beside the configuration write {entry}.py")
        return _run(lambda: importlib.import_module(entry))

    def _checked(self, path: Path) -> Path:
        """Return the path of a file that may be loaded. Raises `NotLoaded`."""
        try:
            mode = path.stat().st_mode
        except (OSError, ValueError) as problem:
            raise NotLoaded(f"{path}: {getattr(problem, 'strerror', None) or problem}") from problem
        if not stat.S_ISREG(mode):
            raise NotLoaded(f"{path} is not a regular file")
        if mode & stat.S_IWOTH:
            raise NotLoaded(f"{path} can be written by everybody; run: chmod o-w {path}")
        real = Path(os.path.realpath(path))
        for folder in self.writable:
            if real.is_relative_to(os.path.realpath(folder)):
                raise NotLoaded(f"{path} lies in {folder}, where the model may write; move it")
        return path


def is_path(entry: str) -> bool:
    """Tell whether an entry names a file, not a module."""
    return entry.endswith(".py") or "/" in entry


def _load_file(path: Path) -> ModuleType:
    # The path is part of the name: two files of one name are two modules.
    name = f"kesoku_own_{path.stem}_{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise NotLoaded(f"{path} is no Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # behind all others: what lies beside it hides nothing
    sys.modules[name] = module  # annotations and dataclasses look their module up by name

    def execute() -> ModuleType:
        # Not by the loader, which would write its cache into a person's folder, and may read an old one.
        exec(compile(path.read_bytes(), path, "exec", dont_inherit=True), module.__dict__)
        return module

    try:
        return _run(execute)
    except NotLoaded:
        sys.modules.pop(name, None)
        raise


def _run(load: Callable[[], Loaded]) -> Loaded:
    """Run the code of a module. Raises `NotLoaded`, whatever that code raises, but for a person's Ctrl-C."""
    try:
        with redirect_stdout(sys.stderr if sys.stderr is not None else io.StringIO()):
            return load()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise NotLoaded(f"{_place(error)}{_named(error)}") from error


def _named(error: BaseException) -> str:
    """Return the type of an error and what it says, in one line."""
    text = str(error.msg) if isinstance(error, SyntaxError) else said_by(error)
    return " ".join(f"{type(error).__name__}: {text}".split())[:_LONGEST_TEXT]


def _place(error: BaseException) -> str:
    """Return where a module failed, as `file:line: `: the innermost line of the file that failed first."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.filename}:{error.lineno}: "
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_machinery(frame.filename)]
    lines = [f"{frame.filename}:{frame.lineno}: " for frame in frames if frame.filename == frames[0].filename]
    return lines[-1] if lines else ""


def _is_machinery(filename: str) -> bool:
    return filename == __file__ or filename.startswith("<frozen ") or filename == importlib.__file__


def _public_functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield name and function of what the module defines for others, once each, in its order."""
    public = getattr(module, "__all__", None)
    seen: list[object] = []
    for name, value in list(vars(module).items()):
        if name.startswith("_") or not _is_own_function(value, module) or any(value is one for one in seen):
            continue
        if public is None or name in public:
            seen.append(value)
            yield name, value


def _is_own_function(value: object, module: ModuleType) -> bool:
    """Tell whether a module defines this as a function; what cannot even be asked is none."""
    try:
        is_function = inspect.isfunction(value) or (hasattr(value, "__wrapped__") and callable(value))
        return is_function and getattr(value, "__module__", None) == module.__name__
    except BaseException as problem:  # a lazy object asks somebody else for what it has, who may not be there yet
        if not isinstance(problem, Exception):
            raise
        return False


def _line_of(function: Callable[..., Any]) -> int:
    with suppress(AttributeError, ValueError):  # the latter: wrapped in itself
        return int(inspect.unwrap(function).__code__.co_firstlineno)
    return 1
