"""Traps for what reaches out of the simulated world: each call is refused where it is made, with an `Escape`.

Two kinds. Python tells of sockets, processes and changes of files by audit events, whoever makes them and however they
were imported. Clocks, randomness and (before Python 3.12) threads have no such events: their functions are replaced
while a run lasts.

What cannot be seen here: a function of a clock that was taken out of its module earlier (`from time import time`) and
`datetime.now()`, which `calls` looks for in some runs; and what libraries in C do by themselves (SQLite's files). Calls
of the standard library's own for the time (the time in a log record) are left alone.

Invariant: outside of a run every function is the real one, and the audit hook, which can never be removed, lets
everything pass.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from threading import get_ident
from traceback import walk_tb
from typing import Any, Final

from attrs import define, field

from kesoku_actors.harness.allow import INSTEAD, Allow, Reach
from kesoku_actors.harness.control.places import Owner, call_of, owner_of
from kesoku_actors.harness.errors import Escape
from kesoku_actors.harness.sites import Site

_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC

_EVENTS: Final[dict[str, Reach]] = {
    **dict.fromkeys(("_thread.start_new_thread", "_thread.start_joinable_thread"), Reach.THREADS),
    **dict.fromkeys(
        (
            "socket.__new__",
            "socket.bind",
            "socket.connect",
            "socket.getaddrinfo",
            "socket.getnameinfo",
            "socket.gethostbyname",
            "socket.gethostbyaddr",
            "socket.sendto",
        ),
        Reach.SOCKETS,
    ),
    **dict.fromkeys(
        (
            "subprocess.Popen",
            "os.system",
            "os.exec",
            "os.posix_spawn",
            "os.spawn",
            "os.fork",
            "os.forkpty",
            "os.kill",
            "os.killpg",
        ),
        Reach.PROCESSES,
    ),
    **dict.fromkeys(
        (
            "open",
            "os.chmod",
            "os.link",
            "os.mkdir",
            "os.remove",
            "os.rename",
            "os.rmdir",
            "os.symlink",
            "os.truncate",
            "os.utime",
            "sqlite3.connect",
            "builtins.input",
        ),
        Reach.FILES,
    ),
}

_RANDOM: Final = (
    *("betavariate", "binomialvariate", "choice", "choices", "expovariate", "gammavariate", "gauss", "getrandbits"),
    *("lognormvariate", "normalvariate", "paretovariate", "randbytes", "randint", "random", "randrange", "sample"),
    *("seed", "shuffle", "triangular", "uniform", "vonmisesvariate", "weibullvariate"),
)
_TIME: Final = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep")
_OF_ASYNCIO: Final = ("no running event loop", "no current event loop", "framework like asyncio")
_FUNCTIONS: Final[tuple[tuple[str, str, Reach], ...]] = (
    *(("time", name, Reach.CLOCK) for name in _TIME),
    *(("random", name, Reach.RANDOMNESS) for name in _RANDOM),
    ("random", "Random.seed", Reach.RANDOMNESS),
    ("random", "_urandom", Reach.RANDOMNESS),
    ("os", "urandom", Reach.RANDOMNESS),
    ("os", "getrandom", Reach.RANDOMNESS),
    ("uuid", "uuid1", Reach.RANDOMNESS),
    ("uuid", "uuid4", Reach.RANDOMNESS),
    ("os", "_exit", Reach.PROCESSES),
    ("os", "abort", Reach.PROCESSES),
    ("threading", "Thread.start", Reach.THREADS),
    ("_thread", "start_new_thread", Reach.THREADS),
    ("trio._threads", "start_thread_soon", Reach.THREADS),
    ("asyncio", "new_event_loop", Reach.ASYNCIO),
    ("asyncio.events", "new_event_loop", Reach.ASYNCIO),
)
"""By module, name and way out: what is replaced, as far as the module is loaded."""


@define(eq=False)
class Guard:
    """Refuses what reaches out, while it is on. There is one of a process, as there is one chain of audit hooks."""

    allow: Allow = field(factory=Allow)
    thread: int | None = None
    """The thread of the run; what other ones do is not the program's. None: no run."""
    escaped: Escape | None = None
    """The first one refused; kept because a program may swallow it."""

    def audit(self, event: str, arguments: Sequence[Any]) -> None:
        """See an audit event; raise `Escape` when it is the program that reaches out."""
        if self.thread is None or (reach := _EVENTS.get(event)) is None or self.thread != get_ident():
            return
        if reach is Reach.FILES and not _changes_a_file(event, arguments):
            return
        self.refuse(reach, _told(event, arguments), sys._getframe(1))

    def refuse(self, reach: Reach, what: str, frame: Any) -> None:
        """Raise `Escape` unless it is allowed, or not the program that calls."""
        if self.thread != get_ident() or self.allow.allows(reach) or (call := call_of(frame)) is None:
            return
        if call.nearest is Owner.IMPORT or (reach is Reach.CLOCK and call.nearest is Owner.STANDARD):
            return
        if reach is not Reach.FILES and any("asyncio" in file for file in call.files):
            if self.allow.asyncio:
                return
            reach, what = Reach.ASYNCIO, f"an event loop of asyncio ({what})"
        by = f" by `{call.through}`" if call.through else ""
        raise self.remember(
            Escape(
                f"{what} is reached{by} at {call.site}: {INSTEAD[reach]}, or allow it with Allow({reach.value}=True)"
            )
        )

    def remember(self, escape: Escape) -> Escape:
        """Keep the first one."""
        self.escaped = self.escaped or escape
        return escape


def _changes_a_file(event: str, arguments: Sequence[Any]) -> bool:
    if event == "open":
        path, _mode, flags = arguments
        return bool(isinstance(flags, int) and flags & _WRITES) and path != os.devnull and not isinstance(path, int)
    return event != "sqlite3.connect" or arguments[0] != ":memory:"


def _told(event: str, arguments: Sequence[Any]) -> str:
    """Return what an event is, in words."""
    match event, arguments:
        case (("_thread.start_new_thread" | "_thread.start_joinable_thread"), _):
            return "a real thread"
        case "open", (path, *_):
            return f"writing the real file {os.fspath(path)!r}"
        case "subprocess.Popen", (program, *_):
            return f"a real process {program!r}"
        case "socket.__new__", _:
            return "a real socket"
        case "builtins.input", _:
            return "the real terminal (`input`)"
        case _:
            return f"`{event}{tuple(arguments[:2])!r}`"[:160]


def wants_asyncio(error: BaseException) -> str:
    """Return what to say when a program fails as it is one of asyncio's, or uses a library that is; else nothing."""
    said = str(error)
    if not isinstance(error, RuntimeError | TypeError) or not any(words in said for words in _OF_ASYNCIO):
        return ""
    lines = [
        Site(frame.f_code.co_filename, line, frame.f_code.co_name)
        for frame, line in walk_tb(error.__traceback__)
        if owner_of(frame.f_code.co_filename) is Owner.PROGRAM
    ]
    where = f" at {lines[-1]}" if lines else ""
    return f"asyncio is used{where} ({said.partition('.')[0]}): {INSTEAD[Reach.ASYNCIO]}"


@cache
def guard() -> Guard:
    """Return the guard of this process, with its hook in place."""
    one = Guard()
    sys.addaudithook(one.audit)
    return one


@cache
def _trap(module: str, name: str, reach: Reach) -> tuple[Any, str, Any, Any]:
    """Return where a function stands, its last name, the function, and what traps it."""
    owner: Any = sys.modules[module]
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    original = getattr(owner, last)
    one = guard()

    def trapped(*arguments: Any, **options: Any) -> Any:
        if name == "Random.seed" and (arguments[1:] != () or options) and arguments[1:] != (None,):
            return original(*arguments, **options)
        one.refuse(reach, f"`{module}.{name}`", sys._getframe(1))
        return original(*arguments, **options)

    return owner, last, original, trapped


@lru_cache(maxsize=1)
def _traps(_modules: int) -> list[tuple[Any, str, Any, Any]]:
    """Return the traps for what is loaded, as long as no more is."""
    return [_trap(*function) for function in _FUNCTIONS if _is_there(*function[:2])]


@contextmanager
def trapped(allow: Allow) -> Iterator[Guard]:
    """Trap what this thread reaches for, while the block runs."""
    one = guard()
    traps = _traps(len(sys.modules))
    saved: list[tuple[Any, str, Callable[..., Any]]] = []
    before = one.allow, one.thread, one.escaped
    for owner, name, _original, trap in traps:
        saved.append((owner, name, owner.__dict__[name]))
        setattr(owner, name, trap)
    one.allow, one.thread, one.escaped = allow, get_ident(), None
    try:
        yield one
    finally:
        one.allow, one.thread, one.escaped = before
        for owner, name, original in saved:
            setattr(owner, name, original)


def _is_there(module: str, name: str) -> bool:
    loaded = sys.modules.get(module)
    return loaded is not None and hasattr(loaded, name.partition(".")[0])
