"""Where a view writes: a file descriptor, written in a thread so that a slow reader holds up nothing else.

Text is encoded here and written past Python's own buffers: what is written is flushed, and nothing is left behind
that the interpreter could fail to write at its end. A descriptor that somebody set to non-blocking is waited for.
"""

from __future__ import annotations

import os
import select
from typing import Protocol, TextIO

import trio

from kesoku_actors.adapters.courier import SurfaceGone
from kesoku_actors.values import frozen


class ReaderGone(SurfaceGone):
    """Who read a pipe has left, which is no error worth a word."""


class Output(Protocol):
    """Takes text."""

    async def write(self, text: str) -> None:
        """Write all of it and flush. Raises `SurfaceGone`."""


@frozen
class DescriptorOutput:
    """Writes to an open descriptor; characters its encoding does not have become question marks."""

    descriptor: int
    encoding: str = "utf-8"
    name: str = "the output"
    """What it is called in errors."""

    async def write(self, text: str) -> None:
        """Write all of it. Raises `SurfaceGone` when nobody can read it (a closed pipe, a full disk)."""
        data = text.encode(self.encoding, "replace")
        try:
            await trio.to_thread.run_sync(_write_all, self.descriptor, data, abandon_on_cancel=True)
        except OSError as error:
            gone = ReaderGone if isinstance(error, BrokenPipeError) else SurfaceGone
            raise gone(f"{self.name} cannot be written: {error.strerror or error}") from error


@frozen
class ClosedOutput:
    """Stands for a stream that was closed before the program began."""

    name: str = "the output"

    async def write(self, text: str) -> None:
        """Raise `SurfaceGone`, unless there is nothing to write."""
        if text:
            raise SurfaceGone(f"{self.name} cannot be written: it was closed before the program began")


def stream_output(stream: TextIO | None, name: str = "standard output") -> Output:
    """Return the output of a standard stream; `None`, as Python gives for a closed one, is a closed output."""
    return ClosedOutput(name) if stream is None else DescriptorOutput(stream.fileno(), stream.encoding or "utf-8", name)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
