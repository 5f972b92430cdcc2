"""Where programs are: from a file or a module to the coroutine functions in it that can be explored, and back.

In a file the functions decorated with `@explore` are programs, static ones of classes too; if there is none, every
`async def test_...` and `main` without arguments. A method wants an object, which only a test runner knows how to make.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any, Final

from attrs import frozen

from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.schedule import fingerprint_of

MARK: Final = "__explored__"
"""The attribute by which a decorated function is known; it holds what the decorator was told."""

NO_METHODS: Final = (
    "methods are for pytest, which makes an object for them; here, only functions of a module are explored"
)


@frozen
class Origin:
    """A program by name: a fresh process finds it there."""

    file: str
    name: str
    module: str
    """What Python calls the module where it was found; another process may call it otherwise."""

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.name}"


def origin_of(function: Callable[..., Any]) -> Origin | None:
    """Return where a function is found by name; none when it is made inside another one, or not from a file."""
    name = getattr(function, "__qualname__", "<")
    file = getattr(inspect.unwrap(function), "__code__", None)
    if file is None or "<" in name or not Path(file.co_filename).is_file():
        return None
    return Origin(str(Path(file.co_filename).resolve()), name, str(getattr(function, "__module__", "")))


def source_fingerprint(function: Callable[..., Any]) -> str:
    """Return the fingerprint of the file that a function stands in, and of its name."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    file = Path(code.co_filename) if code is not None else Path("-")
    text = file.read_text(encoding="utf-8", errors="surrogateescape") if file.is_file() else ""
    return fingerprint_of(f"{getattr(function, '__qualname__', function)}\n{text}")


def load_origin(origin: Origin) -> ModuleType:
    """Return the module that an origin is in: by its name, if that leads to its file, or by the file."""
    try:
        found = importlib.import_module(origin.module) if origin.module not in ("", "__main__") else None
    except ImportError:
        found = None
    is_it = found is not None and str(getattr(found, "__file__", "")) == origin.file
    return found if found is not None and is_it else load(origin.file)


def load(target: str) -> ModuleType:
    """Return the module that a file, or a module's name, stands for. Raises `HarnessError` when there is none.

    A file's folder comes first on the path while it is loaded, as when Python runs it; a file within a package is
    loaded as a part of it.
    """
    path = Path(target)
    if path.suffix == ".py" or path.exists():
        if not path.is_file():
            raise HarnessError(f"there is no file {target}")
        try:
            return _load_file(path.resolve())
        except HarnessError:
            raise
        except (Exception, SystemExit) as error:
            raise HarnessError(f"{_where(error, path)}: it cannot be imported: {_said(error)}") from error
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(target)
    except ModuleNotFoundError as error:
        if error.name is not None and (target == error.name or target.startswith(f"{error.name}.")):
            raise HarnessError(f"there is no file and no module {target}") from None
        raise


def _where(error: BaseException, path: Path) -> str:
    """Return the file and the line in it at which its import failed."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{Path(error.filename).name}:{error.lineno}"
    lines = [one.lineno for one in extract_tb(error.__traceback__) if Path(one.filename).resolve() == path.resolve()]
    return f"{path.name}:{lines[-1]}" if lines else path.name


def _said(error: BaseException) -> str:
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _load_file(path: Path) -> ModuleType:
    root, names = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        names.insert(0, root.name)
        root = root.parent
    if names[-1] == "__init__" and len(names) > 1:
        names.pop()
    name = ".".join(names)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    there = sys.modules.get(name)
    if there is not None and getattr(there, "__file__", None) == str(path):
        return there
    if len(names) > 1:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise HarnessError(f"{path} is no Python source")
    module = importlib.util.module_from_spec(spec)
    if there is None:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def programs_in(module: ModuleType, only: str | None = None) -> dict[str, Callable[..., Any]]:
    """Return the programs of a module by name, in the order of its source. Raises `HarnessError` when there is none."""
    if only is not None:
        found = _attribute(module, only)
        if not (hasattr(found, MARK) or inspect.iscoroutinefunction(found)):
            raise HarnessError(f"{module.__name__} has no coroutine function {only!r}")
        return {only: found}
    here = {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    explored = {name: value for name, value in here.items() if hasattr(value, MARK)}
    explored |= {name: value for name, value, is_bound in _in_classes(here) if not is_bound}
    programs = explored or dict(_undecorated(here))
    if not programs and (methods := methods_in(module)):
        raise HarnessError(f"{module.__name__}: {', '.join(methods)}: {NO_METHODS}")
    if not programs:
        raise HarnessError(f"{module.__name__} has no function with @explore, no `async def test_...` and no `main`")
    return programs


def methods_in(module: ModuleType) -> tuple[str, ...]:
    """Return the names of what is decorated and cannot be explored from here: methods that want an object."""
    here = {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    return tuple(name for name, _, is_bound in _in_classes(here) if is_bound)


def _in_classes(here: dict[str, Any]) -> Iterator[tuple[str, Callable[..., Any], bool]]:
    """Yield what is decorated in classes, by name, and whether it wants an object."""
    for owner in (value for value in here.values() if isinstance(value, type)):
        for name, value in vars(owner).items():
            found = getattr(owner, name, None) if isinstance(value, staticmethod) else value
            if callable(found) and hasattr(found, MARK):
                yield f"{owner.__qualname__}.{name}", found, not isinstance(value, staticmethod)


def _undecorated(here: dict[str, Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, value in here.items():
        is_program = name.startswith("test_") or name == "main"
        if is_program and inspect.iscoroutinefunction(value):
            yield name, value


def _attribute(module: ModuleType, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
