"""How a stream is read: somebody is told of each chunk of bytes, and leaving it early closes it at once.

A stream that only pings is no silence (P3); a cancelled inference leaves no connection behind (I2). A line that never
ends is no stream: the SDKs keep it until it does, and a server cannot fill the memory.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final, Protocol, TypeVar

import httpx2
import trio

from kesoku_actors.llm.port import ProviderError

LONGEST_LINE: Final = 1 << 24
"""Bytes."""
LONGEST_REFUSAL: Final = 1 << 16
"""Bytes."""
_REFUSAL_S: Final = 2.0

_STUMBLES: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError)
"""What an SDK raises over an answer of a shape that it does not think of."""

T = TypeVar("T")


class Tidier(Protocol):
    """Makes of the bytes that come those that an SDK reads. Raises `ProviderError` and `ValueError`."""

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        """Yield what can be read now."""

    def end(self) -> Iterable[bytes]:
        """Yield what is left."""


class WholeCharacters:
    """Replaces what is no UTF-8."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        """Return the characters that a chunk completes."""
        return (self._decoder.decode(chunk).encode(),)

    def end(self) -> Iterable[bytes]:
        """Return what is left."""
        return (self._decoder.decode(b"", final=True).encode(),)


class HeardStream(httpx2.AsyncByteStream):
    """The stream of a response whose every chunk is heard before it is read."""

    def __init__(self, stream: httpx2.AsyncByteStream, heard: Callable[[], None], tidier: Tidier | None) -> None:
        self._stream = stream
        self._heard = heard
        self._tidier = tidier
        self._line = 0
        """Bytes of the line that has not ended."""
        self._chunks: AsyncIterator[bytes] | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._chunks = chunks = aiter(self._stream)
        problem = None
        async for chunk in chunks:
            self._heard()
            try:
                self._measure(chunk)
                for tidy in (chunk,) if self._tidier is None else self._tidier.feed(chunk):
                    yield tidy
            except (ProviderError, httpx2.DecodingError, ValueError) as error:
                problem = error
                break
        if problem is not None:
            async with unwinding(chunks):
                raise problem
        for tidy in () if self._tidier is None else self._tidier.end():
            yield tidy

    def _measure(self, chunk: bytes) -> None:
        ended = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        self._line = self._line + len(chunk) if ended < 0 else len(chunk) - ended - 1
        if self._line > LONGEST_LINE:
            raise httpx2.DecodingError(f"a line of the stream is longer than {LONGEST_LINE} bytes")

    async def aclose(self) -> None:
        """Close the stream beneath; who could not unpack it has left it in the middle."""
        if self._chunks is not None:
            async with unwinding(self._chunks):
                pass
        await self._stream.aclose()


class ShortStream(httpx2.AsyncByteStream):
    """The stream of a refusal: what says why is short and comes soon, so nothing else is waited for."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks, left = aiter(self._stream), LONGEST_REFUSAL
        until = trio.current_time() + _REFUSAL_S
        while left > 0:
            chunk = None
            with trio.move_on_at(until):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk[:left]
            left -= len(chunk)
        async with unwinding(chunks):
            return

    async def aclose(self) -> None:
        """Close the stream beneath."""
        await self._stream.aclose()


async def shorten_refusal(response: httpx2.Response) -> None:
    """Read no more of a refusal than says why; a hook of a client."""
    if not response.is_success:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = ShortStream(response.stream)


def hear(response: httpx2.Response, heard: Callable[[], None], tidier: Tidier | None = None) -> None:
    """Have `heard` called for every chunk of a response that nobody reads yet; a packed one is not tidied."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    is_packed = response.headers.get("content-encoding", "identity") != "identity"
    response.stream = HeardStream(response.stream, heard, None if is_packed else tidier)


@contextmanager
def stumbling() -> Iterator[None]:
    """Make of what an SDK stumbles over the `ValueError` that it is; for the SDK's own steps alone."""
    try:
        yield
    except _STUMBLES as error:
        raise ValueError(f"an answer that is none ({type(error).__name__})") from error


@asynccontextmanager
async def unwinding(items: AsyncIterator[T]) -> AsyncGenerator[AsyncIterator[T], None]:
    """Give the items, and see to the end of the iteration when it is left early.

    The iterator is a stack of generators. Closing the outermost would leave the others to the garbage collector; a
    cancelled read unwinds them from the innermost, where the connection is closed.
    """
    try:
        yield items
    finally:
        with trio.CancelScope() as scope, suppress(httpx2.HTTPError, httpx2.StreamError, ValueError, *_STUMBLES):
            scope.cancel()
            async for _ in items:
                pass
