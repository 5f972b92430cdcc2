"""How a stream is read: somebody is told of each chunk of bytes, and leaving it early closes it at once.

A stream that only pings is no silence (P3); a cancelled inference leaves no connection behind (I2).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import httpx2
import trio

T = TypeVar("T")


class HeardStream(httpx2.AsyncByteStream):
    """The stream of a response whose every chunk is heard before it is read."""

    def __init__(self, stream: httpx2.AsyncByteStream, heard: Callable[[], None]) -> None:
        self._stream = stream
        self._heard = heard

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._heard()
            yield chunk

    async def aclose(self) -> None:
        """Close the stream beneath."""
        await self._stream.aclose()


def hear(response: httpx2.Response, heard: Callable[[], None]) -> None:
    """Have `heard` called for every chunk of a response that nobody reads yet."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = HeardStream(response.stream, heard)


@asynccontextmanager
async def unwinding(items: AsyncIterator[T]) -> AsyncGenerator[AsyncIterator[T], None]:
    """Give the items, and see to the end of the iteration when it is left early.

    The iterator is a stack of generators. Closing the outermost would leave the others to the garbage collector; a
    cancelled read unwinds them from the innermost, where the connection is closed.
    """
    try:
        yield items
    finally:
        with trio.CancelScope() as scope, suppress(httpx2.HTTPError, httpx2.StreamError):
            scope.cancel()
            async for _ in items:
                pass
