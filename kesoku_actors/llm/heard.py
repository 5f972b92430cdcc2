"""A response's bytes, with somebody told of each chunk: so that a stream that only pings is no silence (P3)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx2


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
