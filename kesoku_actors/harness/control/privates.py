"""The private names of trio that control stands on, taken in one place: a trio without one of them is told as such."""

from __future__ import annotations

from typing import Final

import trio

from kesoku_actors.harness.control.canary import TRIED
from kesoku_actors.harness.errors import UnsupportedTrio


def unsupported(why: object) -> UnsupportedTrio:
    """Return the error for a trio that is not one of those that were tried."""
    oldest, newest = (".".join(map(str, one)) for one in TRIED)
    return UnsupportedTrio(f"this harness knows trio {oldest} to {newest}; installed is {trio.__version__}: {why}")


try:
    from trio import _subprocess as processes
    from trio import _threads as threads
    from trio._channel import MemoryChannelState
    from trio._core import _run as run
    from trio._core._entry_queue import EntryQueue
    from trio._core._instrumentation import Instruments
    from trio._core._run import GLOBAL_RUN_CONTEXT, CancelStatus, Runner
    from trio._core._wakeup_socketpair import WakeupSocketpair
    from trio._sync import _LockImpl as LockImpl
    from trio._util import ConflictDetector
except ImportError as missing:
    raise unsupported(f"its inside is another one ({missing.msg})") from missing

_REPLACED: Final = (
    (run, "TheIOManager"),
    (run, "start_thread_soon"),
    (threads, "start_thread_soon"),
    (threads, "_send_message_to_trio"),
    (processes, "open_process"),
    (trio.lowlevel, "start_thread_soon"),
    (trio.lowlevel, "open_process"),
)
"""By module: what is replaced in a run, some of it only when a program asks for it."""


def missing_name() -> str | None:
    """Return a name that is to be replaced and that the installed trio does not have; none when it has all."""
    return next((f"{module.__name__}.{name}" for module, name in _REPLACED if name not in vars(module)), None)


__all__ = [
    "GLOBAL_RUN_CONTEXT",
    "CancelStatus",
    "ConflictDetector",
    "EntryQueue",
    "Instruments",
    "LockImpl",
    "MemoryChannelState",
    "Runner",
    "WakeupSocketpair",
    "missing_name",
    "processes",
    "run",
    "threads",
    "unsupported",
]
