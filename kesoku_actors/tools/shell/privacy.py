"""Our own environment and memory, out of reach of the commands we run (T2, S14).

A command gets a clean environment, but it runs as our user and could ask the kernel for ours: `/proc/<pid>/environ`
shows the block of memory in which a program was given its variables, whatever it unset since, and `/proc/<pid>/mem`
shows the rest. So the variables move to fresh memory and the block is wiped, and the kernel is told to show our memory
to nobody but root.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Final

_STAT: Final = Path("/proc/self/stat")
_ENV_START: Final = 47
"""Where the block's first address stands behind the name in `/proc/self/stat`; its end is the next one."""
_PR_SET_DUMPABLE: Final = 4


def hide_environment() -> bool:
    """Hide what this program was given and holds from programs of the same user; true when the variables are hidden.

    To be called once at start, before there are threads. `os.environ` and what children inherit stay as they are. Core
    dumps and debuggers of the same user are off from then on.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None)
    hidden = _wipe(libc)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    return hidden


def _wipe(libc: ctypes.CDLL) -> bool:
    block = _block()
    if not any(address in block for address in _addresses(libc)):
        return False  # a kernel that does not say where it is: nothing is written to a guessed address
    for name, value in os.environb.items():
        os.environb[name] = value  # the C library puts a variable that is set into memory of its own
    ctypes.memset(block.start, 0, len(block))
    return True


def _block() -> range:
    try:
        stat = _STAT.read_text("utf-8", "replace")
    except OSError:
        return range(0)
    numbers = stat[stat.rindex(")") + 2 :].split()
    return range(int(numbers[_ENV_START]), int(numbers[_ENV_START + 1]))


def _addresses(libc: ctypes.CDLL) -> list[int]:
    """Where the C library has its variables now."""
    environ = ctypes.POINTER(ctypes.c_void_p).in_dll(libc, "environ")
    found: list[int] = []
    while environ and (address := environ[len(found)]):
        found.append(address)
    return found
