"""The state of a program at one moment, by value: whether two moments are the same. Reads, and changes nothing.

Two moments with equal states, under a scheduler that is fair, are a proof that the program goes round for ever. So the
state has to hold everything that decides how the program goes on: where each task stands, its local variables and what
it has on its stack (the iterator of a `for` has no name), what closures and named globals refer to, all by value.
What cannot be read by value (an object of C) makes a state *opaque*: equal to none. Times are special: deadlines are
compared relative to the clock, other numbers with a fraction as they are or relative to it. That is enough only when
the program did not ask what time it is in between; whoever compares states has to see to that.
"""

from __future__ import annotations

import gc
import math
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextvars import Context, ContextVar, Token
from enum import Enum
from itertools import chain, count, repeat
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CellType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    TracebackType,
    WrapperDescriptorType,
)
from typing import Any, Final
from weakref import ReferenceType

import trio
from attrs import define, field, frozen

from kesoku_actors.harness.control.places import Owner, owner_of
from kesoku_actors.harness.control.privates import CancelStatus, EntryQueue, Runner
from kesoku_actors.harness.lanes import Lane

_MOST: Final = 20_000
_identity: Final = object.__hash__
"""Not `id`, which tells an audit event each time."""
_DEEPEST: Final = 150
_PLAIN: Final = (type(None), bool, int, complex, str, bytes, range, type(Ellipsis), type(NotImplemented))
_CONSTANT: Final = (
    CodeType,
    Context,
    ContextVar,
    EntryQueue,
    FrameType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    ReferenceType,
    Token,
    TracebackType,
    WrapperDescriptorType,
    CancelStatus,
    Runner,
    trio.lowlevel.TrioToken,
    trio.abc.Clock,
    trio.abc.Instrument,
    classmethod,
    property,
    staticmethod,
)
_ITERABLE: Final[tuple[Iterable[Any], ...]] = (
    *([], (), "", b"", {}, {}.items(), {}.values(), set(), range(0), range(1 << 70), deque()),
    *(enumerate(()), zip(), map(str, ()), filter(str, ()), reversed(()), reversed([]), repeat(0), count(), chain()),
)
_ITERATORS: Final[tuple[type, ...]] = tuple({type(iter(one)) for one in _ITERABLE})


@frozen(eq=False)
class State:
    """One moment."""

    shape: tuple[Any, ...]
    """Everything but the numbers with a fraction."""
    numbers: tuple[float, ...]
    deadlines: tuple[float, ...]
    now: float
    is_opaque: bool

    def same(self, other: State) -> bool:
        """Tell whether a program in either state goes on in the same way."""
        if self.is_opaque or other.is_opaque or self.shape != other.shape or len(self.numbers) != len(other.numbers):
            return False
        numbers = zip(self.numbers, other.numbers, strict=True)
        deadlines = zip(self.deadlines, other.deadlines, strict=True)  # as many, as the shapes are equal
        passed = self.now - other.now
        return all(mine == theirs or _near(mine, theirs + passed) for mine, theirs in numbers) and all(
            _near(mine, theirs + passed) for mine, theirs in deadlines
        )


def _near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def state_of(lanes: Iterable[Lane], ready: Sequence[Lane], now: float) -> State:
    """Return the state of a program between two steps."""
    walk = _Walk({lane.task: lane for lane in lanes})
    living = [lane for lane in lanes if not lane.ended]
    roots = [walk.of(lane.task) for lane in living]
    coroutines = [walk.of(lane.task.coro) for lane in living]
    queue = [(walk.of(lane.task), walk.of(lane.task._next_send)) for lane in ready]
    return State(
        (tuple(roots), tuple(coroutines), tuple(queue)), tuple(walk.numbers), tuple(walk.deadlines), now, walk.is_opaque
    )


@define(eq=False)
class _Walk:
    """One walk through everything reachable; objects are named by the order in which they were met."""

    lanes: dict[Any, Lane]
    numbers: list[float] = field(factory=list)
    deadlines: list[float] = field(factory=list)
    is_opaque: bool = False
    _met: dict[int, int] = field(factory=dict)
    _kept: list[Any] = field(factory=list)
    _depth: int = 0

    def of(self, value: Any) -> Any:
        """Return a value as something that compares by value."""
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, float):
            self.numbers.append(value)
            return float
        if isinstance(value, Enum):
            return value.name
        place = self._met.setdefault(_identity(value), len(self._met))
        if place < len(self._kept):
            return "met", place
        self._kept.append(value)
        if self._depth > _DEEPEST or place > _MOST:
            self.is_opaque = True
            return None
        self._depth += 1
        try:
            return type(value).__qualname__, *self._parts(value)
        finally:
            self._depth -= 1

    def _all(self, values: Iterable[Any]) -> tuple[Any, ...]:
        return tuple([self.of(value) for value in values])

    def _parts(self, value: Any) -> Iterable[Any]:
        match value:
            case trio.lowlevel.Task() if value in self.lanes:
                return ()
            case trio.CancelScope():
                self.deadlines.append(value.deadline)
                return self._all((value.shield, value.cancel_called, value.cancelled_caught))
            case list() | tuple() | deque() | bytearray() if type(value).__iter__ in _SEQUENCES:
                return (*self._all(value), *self._all(_attributes(value)))
            case dict():
                return (*self._all(value.keys()), *self._all(value.values()), *self._all(_attributes(value)))
            case set() | frozenset():
                return self._members(value)
            case FunctionType():
                return self._all(_of_function(value))
            case MethodType() | BuiltinFunctionType():
                return (value.__name__, self.of(value.__self__))
            case CoroutineType() | GeneratorType() | AsyncGeneratorType():
                return self._suspended(value)
            case CellType():
                return self._all([cell for cell in [_content(value)] if cell is not value])
            case type():
                return self._all(vars(value).values()) if _owner(value) is Owner.PROGRAM else (value.__qualname__,)
            case _:
                return self._of_other(value)

    def _of_other(self, value: Any) -> Iterable[Any]:
        if isinstance(value, _CONSTANT):
            return ()
        if isinstance(value, _ITERATORS):
            try:
                return self._all(value.__reduce__())
            except TypeError:  # Python 3.14 and later tell nothing of the iterators of `itertools`
                self.is_opaque = True
                return ()
        if hasattr(value, "getstate") and hasattr(value, "setstate"):
            return (hash(value.getstate()),)
        if type(value).__module__ == "_thread" and hasattr(value, "locked"):
            return (value.locked(),)
        if hasattr(value, "__dict__") or hasattr(type(value), "__slots__"):
            return (*self._all([type(value)]), *self._all(_attributes(value)))
        self.is_opaque = True
        return ()

    def _members(self, value: set[Any] | frozenset[Any]) -> Iterable[Any]:
        if all(isinstance(one, _PLAIN) for one in value):
            return sorted(map(repr, value))
        if all(one in self.lanes for one in value):
            return self._all(sorted(value, key=lambda task: self.lanes[task].number))
        if len(value) == 1:
            return self._all(value)
        self.is_opaque = True
        return ()

    def _suspended(self, value: Any) -> Iterable[Any]:
        frame = getattr(value, "cr_frame", None) or getattr(value, "gi_frame", None) or getattr(value, "ag_frame", None)
        if frame is None:
            return ()
        code = frame.f_code
        named = _mentioned(code, frame.f_globals) if owner_of(code.co_filename) is Owner.PROGRAM else ()
        return (_identity(code), frame.f_lasti, *self._all(gc.get_referents(value)), *self._all(named))


_SEQUENCES: Final = tuple(one.__iter__ for one in (list, tuple, deque, bytearray))


def _of_function(function: FunctionType) -> Iterator[Any]:
    yield _identity(function.__code__)
    yield from function.__closure__ or ()
    yield from function.__defaults__ or ()
    if owner_of(function.__code__.co_filename) is Owner.PROGRAM:
        yield from _mentioned(function.__code__, function.__globals__)


def _mentioned(code: CodeType, names: dict[str, Any]) -> Iterator[Any]:
    """Yield the globals that a piece of code names."""
    for name in code.co_names:
        if name in names:
            yield names[name]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _mentioned(constant, names)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing is in it yet
        return cell


def _attributes(value: Any) -> Iterator[Any]:
    yield from getattr(value, "__dict__", {}).values()
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            mangled = (
                f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
            )
            if name not in ("__dict__", "__weakref__") and hasattr(value, mangled):
                yield getattr(value, mangled)


def _owner(kind: type) -> Owner:
    module = sys.modules.get(kind.__module__)
    return owner_of(getattr(module, "__file__", None) or "<frozen>")
