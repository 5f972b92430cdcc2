"""Footprints: which step touched which of trio's primitives, or plain state that a program declares with `shared`.

Off unless asked for: within `footprints()` trio's primitives tell the run that is being watched what is done to them.
A strategy such as POS learns from it what is independent; two runs that touched every thing in the same order of tasks
are of one happens-before class. With `detail` each touch also carries in words what was done, and where: for reports.

Invariants: nothing is added that waits, so that a run is the same with footprints as without; every patch is undone.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from inspect import signature
from types import FrameType
from typing import Any, Final, Protocol

import trio
from attrs import define, evolve, field, frozen

from kesoku_actors.harness.control.privates import LockImpl, MemoryChannelState
from kesoku_actors.harness.lanes import Lane
from kesoku_actors.harness.sites import Site, is_foreign, site_of_frame
from kesoku_actors.harness.touches import CLOSED, Touch, label_of

_NOT_THE_MAKER: Final = ("contextlib.py", "footprints.py")
_LOOP: Final = "unrolled_run"
"""The function of trio's that steps tasks: what called it is no part of the program."""
_identity: Final = object.__hash__
"""Of a thing, whether it can be compared or not. Not `id`, which tells an audit event each time."""
_watching: ContextVar[Watch | None] = ContextVar("watching", default=None)


class Watched(Protocol):
    """The run under control, as far as footprints need it."""

    keeps_touched: bool
    touched: list[Any]
    lanes: list[Lane]
    steps: int
    last: Lane | None


@frozen(eq=False)
class Known:
    """A thing that is watched."""

    thing: Any
    """Kept, so that its identity stays its own."""
    label: str
    order: list[str]
    """Who touched it."""


@define(eq=False)
class Watch:
    """What is known of the run that is being watched; it is called to begin with another."""

    detail: bool = False
    run: Watched | None = None
    known: dict[int, Known] = field(factory=dict, init=False)
    """By identity."""
    _made: Counter[tuple[str, str]] = field(factory=Counter, init=False)
    _orders: dict[str, list[str]] = field(factory=dict, init=False)
    """For each label, who touched it, in order."""

    def __call__(self, run: Watched) -> None:
        """Watch this run from now on."""
        self.run = run
        self.known, self._made, self._orders = {}, Counter(), {}

    def happened_before(self) -> int:
        """Return the happens-before class of the run so far: 64 bits, the same in every process."""
        digest = blake2b(digest_size=8)
        for what, order in sorted(self._orders.items()):
            if order:
                digest.update("\0".join((what, *order, "\n")).encode("utf-8", "surrogatepass"))
        return int.from_bytes(digest.digest())

    def make(self, thing: Any, kind: str) -> str:
        """Give a thing its label, from the line that makes it now."""
        frame = _maker(sys._getframe(2))
        who = self.run.last.label if self.run is not None and self.run.last is not None else ""
        place = kind if frame is None else f"{kind} {frame.f_code.co_filename}:{frame.f_lineno}"
        label, count = kind, self._made[place, who] + 1
        self._made[place, who] = count
        if frame is not None:
            room = _room(thing) if self.detail and kind == "channel" else ""
            label, count = label_of(kind, frame.f_code.co_filename, frame.f_lineno, count, room)
        if "/" in who:
            label = f"{label} of `{who}`"
        if count > 1:
            label = f"{label} #{count}"
        return self.know(thing, label).label

    def touch(self, thing: Any, kind: str, how: str, writes: bool) -> None:
        """Note that the step that runs now does something to a thing."""
        self.note((self.known.get(_identity(thing)) or self.older(thing, kind)).label, how, writes)

    def note(self, what: str, how: str, writes: bool, *, is_plain: bool = False) -> None:
        """Note that the step that runs now does something to what has this label."""
        run = self.run
        if run is None:
            return
        self._orders.setdefault(what, []).append(run.last.label if run.last is not None else "")
        if run.keeps_touched:
            run.touched.append(Touch(what, how, writes, _toucher(), is_plain) if self.detail else what)

    def older(self, thing: Any, kind: str) -> Known:
        """Label a thing that was made before the run, or in a way that is not seen."""
        self._made[kind, ""] += 1
        return self.know(thing, f"{kind} #{self._made[kind, '']}, made before")

    def know(self, thing: Any, label: str) -> Known:
        """Call a thing so from now on."""
        known = self.known[_identity(thing)] = Known(thing, label, self._orders.setdefault(label, []))
        return known


def shared(label: str, *, writes: bool = True) -> None:
    """Declare that the running task uses plain state that tasks share, under a name of the program's choice.

    Does nothing outside of a run that is being watched. With `writes=False` it only reads.
    """
    watch = _watching.get()
    if watch is not None:
        watch.note(f"`{label}`", "writes" if writes else "reads", writes, is_plain=True)


def touched(what: str, how: str, *, writes: bool = True) -> None:
    """Tell what the running task does to something simulated that tasks wait at, as if it were one of trio's."""
    watch = _watching.get()
    if watch is not None:
        watch.note(what, how, writes)


def named(thing: object, label: str) -> None:
    """Give a thing that was made just now a label of its own, which says more than the line that made it."""
    watch = _watching.get()
    if watch is not None:
        watch.know(thing, label)


@contextmanager
def footprints(*, detail: bool = False) -> Iterator[Watch]:
    """Let trio's primitives tell what is done to them. What is yielded goes to `execute(observe=)`."""
    watch = Watch(detail)
    token = _watching.set(watch)
    undo = list(_patches(watch))
    try:
        yield watch
    finally:
        for owner, name, original in reversed(undo):
            setattr(owner, name, original)
        _watching.reset(token)


def missing_method() -> str | None:
    """Return a method that is to be watched and that the installed trio does not have; none when it has all."""
    absent = (f"{owner.__name__}.{name}" for owner, _, name, *_ in _TOUCHED if name not in owner.__dict__)
    return next(absent, None)


def _patches(watch: Watch) -> Iterator[tuple[Any, str, Any]]:
    for owner, kind in _MADE:
        yield owner, "__init__", _replace(owner, "__init__", _making(watch, owner.__init__, kind))
    for owner, kind, name, how, waits, writes in _TOUCHED:
        original = owner.__dict__[name]
        noting = _noting_how if watch.detail else _noting
        yield owner, name, _replace(owner, name, noting(watch, original, kind, how, waits, writes))


def _replace(owner: Any, name: str, function: Callable[..., Any]) -> Any:
    original = owner.__dict__[name]
    setattr(owner, name, function)
    return original


def _making(watch: Watch, original: Callable[..., Any], kind: str) -> Callable[..., None]:
    def __init__(self: Any, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        watch.make(self, kind)

    return __init__


def _noting(
    watch: Watch, original: Callable[..., Any], kind: str, _how: str, _waits: str, _writes: bool
) -> Callable[..., Any]:
    """As `Watch.touch`, in one call: a search does it for everything that its programs do."""
    is_channel = kind == "channel"

    def note(self: Any) -> None:
        run = watch.run
        if run is not None:
            thing = self._state if is_channel else self
            known = watch.known.get(_identity(thing)) or watch.older(thing, kind)
            known.order.append(run.last.label if run.last is not None else "")
            if run.keeps_touched:
                run.touched.append(known.label)

    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        note(self)
        return original(self, *arguments, **named)

    def method_without_arguments(self: Any) -> Any:
        note(self)
        return original(self)

    return method if signature(original).parameters.keys() - {"self"} else method_without_arguments


def _noting_how(
    watch: Watch, original: Callable[..., Any], kind: str, how: str, waits: str, writes: bool
) -> Callable[..., Any]:
    is_channel = kind == "channel"

    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        thing = self._state if is_channel else self
        try:
            result = original(self, *arguments, **named)
        except trio.WouldBlock:
            watch.touch(thing, kind, waits, False)
            raise
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            watch.touch(thing, kind, CLOSED, False)
            raise
        watch.touch(thing, kind, how, writes)
        if watch.run is not None and kind == "cancel scope" and watch.run.keeps_touched:
            watch.run.touched[-1] = evolve(watch.run.touched[-1], reaches=tuple(_within(thing, watch.run.lanes)))
        return result

    return method


def _within(scope: trio.CancelScope, lanes: Sequence[Lane]) -> Iterator[str]:
    """Yield the tasks that run within a scope, or in a nursery within it."""
    wanted = scope._cancel_status
    for lane in lanes:
        status = None if lane.ended or wanted is None else lane.task._cancel_status
        while status is not None and status is not wanted:
            status = status._parent
        if status is not None:
            yield lane.label


def _room(channel: Any) -> str:
    size = channel.max_buffer_size
    return ", room for as many as come" if size == math.inf else f", room for {size:g}"


def _maker(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the program's own; none when the harness does something by itself."""
    while frame is not None and (
        is_foreign(frame.f_code) or frame.f_code.co_filename.endswith(_NOT_THE_MAKER) or "<attrs" in _file(frame)
    ):
        frame = None if frame.f_code.co_name == _LOOP else frame.f_back
    return frame


def _toucher() -> Site | None:
    frame = _maker(sys._getframe(2))
    return None if frame is None else site_of_frame(frame)


def _file(frame: FrameType) -> str:
    return frame.f_code.co_filename


_MADE: Final[tuple[tuple[Any, str], ...]] = (
    (trio.Event, "event"),
    (MemoryChannelState, "channel"),
    (LockImpl, "lock"),
    (trio.Semaphore, "semaphore"),
    (trio.CapacityLimiter, "limiter"),
    (trio.Condition, "condition"),
    (trio.CancelScope, "cancel scope"),
)
"""What gets a label when it is made."""

_TOUCHED: Final[tuple[tuple[Any, str, str, str, str, bool], ...]] = (
    (trio.MemorySendChannel, "channel", "send_nowait", "sends to", "has to wait to send to", True),
    (trio.MemorySendChannel, "channel", "close", "closes", "", True),
    (trio.MemoryReceiveChannel, "channel", "receive_nowait", "receives from", "has to wait to receive from", True),
    (trio.MemoryReceiveChannel, "channel", "close", "closes", "", True),
    (trio.Event, "event", "set", "sets", "", True),
    (trio.Event, "event", "is_set", "looks at", "", False),
    (trio.Event, "event", "wait", "waits for", "", False),
    (LockImpl, "lock", "acquire_nowait", "takes", "has to wait for", True),
    (LockImpl, "lock", "release", "lets go of", "", True),
    (LockImpl, "lock", "locked", "looks at", "", False),
    (trio.Semaphore, "semaphore", "acquire_nowait", "takes", "has to wait for", True),
    (trio.Semaphore, "semaphore", "release", "lets go of", "", True),
    (trio.CapacityLimiter, "limiter", "acquire_on_behalf_of_nowait", "takes", "has to wait for", True),
    (trio.CapacityLimiter, "limiter", "release_on_behalf_of", "lets go of", "", True),
    (trio.Condition, "condition", "wait", "waits for", "", True),
    (trio.Condition, "condition", "notify", "notifies", "", True),
    (trio.Condition, "condition", "notify_all", "notifies", "", True),
    (trio.CancelScope, "cancel scope", "cancel", "cancels", "", True),
)
"""Whose method, what it is, which method; what it does, and when it cannot yet; whether it changes the thing."""
