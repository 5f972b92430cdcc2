"""The private names of trio that control stands on, taken in one place: a trio without one of them is told as such."""

from __future__ import annotations

import trio

from kesoku_actors.harness.control.canary import TRIED
from kesoku_actors.harness.errors import UnsupportedTrio


def unsupported(why: object) -> UnsupportedTrio:
    """Return the error for a trio that is not one of those that were tried."""
    oldest, newest = (".".join(map(str, one)) for one in TRIED)
    return UnsupportedTrio(f"this harness knows trio {oldest} to {newest}; installed is {trio.__version__}: {why}")


try:
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
    "run",
    "threads",
    "unsupported",
]
