"""What one command may take of the machine, sandbox or not. Pure, but for looking at the machine's memory.

The limits are set by the shell that starts the command, in the same process, so that they hold for all it starts. Each
is far above what builds and tests take: they end what runs away, they ration nothing. Where a limit of ours is lower
already it stands, and where the system knows no such limit the command runs without it.
"""

from __future__ import annotations

import os
from typing import Final

from attrs import field

from kesoku_actors.values import frozen

_GIB: Final = 2**30
_LEAST_MEMORY: Final = 4 * _GIB
_BLOCK: Final = 512
"""Bytes in the shell's unit of file sizes."""


def _memory() -> int:
    """The machine's memory in bytes."""
    return max(_LEAST_MEMORY, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


@frozen(kw_only=True)
class Limits:
    """The limits of every process of a command; core dumps are always off."""

    processes: int = 8_192
    """Of this user in all (inside a sandbox: in it), the kernel counts threads too; root has no such limit."""
    file_bytes: int = 16 * _GIB
    """The largest file."""
    data_bytes: int = field(factory=_memory)
    """Memory that can be written, also while it is not touched: all of the machine's."""
    address_bytes: int = 1_024 * _GIB
    """All of the address space: runtimes reserve hundreds of GiB that they never touch."""
    cpu_s: int = 12 * 3_600
    """Processor time of one process."""

    def script(self) -> str:
        """Return the lines of POSIX shell that set them."""
        # The letter for processes is -u in one family of shells and -p in the other.
        return (
            f"ulimit -c 0; ulimit -f {self.file_bytes // _BLOCK}; ulimit -d {self.data_bytes // 1024}; "
            f"ulimit -v {self.address_bytes // 1024}; ulimit -t {self.cpu_s}; "
            f"ulimit -u {self.processes} || ulimit -p {self.processes}"
        )
