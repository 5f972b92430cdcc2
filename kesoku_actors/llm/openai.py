"""Any server that speaks the chat completions dialect: OpenAI, Ollama, vLLM, llama.cpp and others.

A thin client: what is sent and what comes back is decided in `openai_request` and `openai_stream`; here are the
connection and its errors. One HTTP client is made for the life of the model, in a thread, because loading the
certificates takes a tenth of a second.

There is no read timeout: silence is measured by whoever runs the inference (`gate.infer_once`, P3), who hears an empty
piece for every chunk of bytes, so that a long tool call being written is no silence. Leaving `infer`, also by
cancellation, closes the connection at once (I2). Nothing is tried again here (P2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx2
import trio
from attrs import evolve, field

from kesoku_actors import __version__
from kesoku_actors.llm.classify import Source, check_key, check_page, from_status, provider_error, without_key
from kesoku_actors.llm.dialects import Declaring
from kesoku_actors.llm.dialects.openai import declare
from kesoku_actors.llm.heard import unwinding
from kesoku_actors.llm.kept_talk import write
from kesoku_actors.llm.openai_request import OpenAIRequest
from kesoku_actors.llm.openai_stream import LONGEST, ChatStream
from kesoku_actors.llm.port import Emit, Limits, Piece, ProviderError, Remedy, Reply, Request
from kesoku_actors.llm.sse import EventReader, EventTooLong
from kesoku_actors.llm.written import Written
from kesoku_actors.log import Logger
from kesoku_actors.protocol import DeltaKind
from kesoku_actors.values import define

_TIMEOUT: Final = httpx2.Timeout(connect=10.0, write=60.0, read=None, pool=None)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1", "[::1]"})
_AFTER_FINISH_S: Final = 2.0
"""How long the usage and the end marker may come after the finish reason; some servers send neither, nor hang up."""
_ERROR_BODY: Final = 64 * 1024
_ALIVE: Final = Piece(kind=DeltaKind.TEXT, text="")

_KIND_OF_EXCEPTION: Final[tuple[tuple[tuple[type[Exception], ...], str], ...]] = (
    ((httpx2.UnsupportedProtocol, httpx2.InvalidURL), "address"),
    ((httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError), "connect"),
    ((httpx2.DecodingError, EventTooLong), "garbage"),
    ((httpx2.HTTPError, httpx2.StreamError), "cut"),
)


@define(kw_only=True, eq=False)
class OpenAIModel:
    """One model behind one server of this dialect."""

    source: Source
    """The provider's name, and where its settings stand."""
    model: str
    base_url: str
    """With the version: `http://localhost:11434/v1`."""
    log: Logger
    wall: Callable[[], float]
    """UTC seconds, for a `Retry-After` that is a date."""
    api_key: str | None = field(default=None, repr=False)
    limits: Limits = field(factory=Limits)
    context_tokens: int | None = None
    supports_tools: bool = True
    """Becomes false when the server says that the model cannot use them."""
    transport: httpx2.AsyncBaseTransport | None = None
    """How to reach the server if not by TCP, such as a unix socket; it is closed with the model."""
    parameters: Mapping[str, Any] = field(factory=dict)
    """Further fields of the request's body, such as `temperature`."""
    _declaring: Declaring = field(factory=lambda: Declaring(declare), init=False, repr=False)
    _client: httpx2.AsyncClient | None = field(default=None, init=False, repr=False)
    _making: trio.Lock = field(factory=trio.Lock, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.source = evolve(self.source, has_key=self.api_key is not None, secret=self.api_key)

    @property
    def name(self) -> str:
        """The configured name."""
        return self.source.provider

    async def infer(self, request: Request, emit: Emit) -> Reply:
        """Run one inference; empty pieces say only that bytes came. Raises `ProviderError` (P2, P3)."""
        stream = ChatStream(self.source, model=self.model, context_tokens=self.context_tokens)
        try:
            written, headers = self._written(request), self._headers()
            client = await self._connected()
            request.sent(lambda: written.body)
            async with client.stream("POST", self._url, content=written.content, headers=headers) as response:
                if response.status_code != httpx2.codes.OK:
                    raise await self._refusal(response)
                await self._read(response, stream, emit)
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, EventTooLong) as error:
            kind = next(kind for types, kind in _KIND_OF_EXCEPTION if isinstance(error, types))
            raise provider_error(self.source, kind, f"{type(error).__name__} {error}".rstrip()) from error
        finally:
            request.used(stream.usage)
        return self._declaring(request.tools).received(stream.reply())

    async def aclose(self) -> None:
        """Close every connection; the next inference would open new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @property
    def _url(self) -> str:
        return f"{self.base_url.rstrip('/')}/chat/completions"

    def _written(self, request: Request) -> Written:
        # OpenAI's own reasoning models refuse the old name, most other servers do not know the new one.
        is_openai = httpx2.URL(self.base_url).host.endswith("openai.com")
        request = request if self.supports_tools else evolve(request, tools=(), kept=None)
        wire = OpenAIRequest(
            request=request,
            provider=self.name,
            model=self.model,
            output_limit="max_completion_tokens" if is_openai else "max_tokens",
            declared=self._declaring(request.tools),
            parameters=self.parameters,
            is_plain=request.is_plain or not self.supports_tools,
        )
        written = write(wire)
        if written.repairs:
            self.log.warning("history repaired for a request", session_id=request.session_id, repairs=written.repairs)
        return written

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "user-agent": f"kesoku-actors/{__version__}"}
        if self.api_key is not None:
            check_key(self.source, self.api_key)
            headers["authorization"] = f"Bearer {self.api_key}"
        return headers

    async def _connected(self) -> httpx2.AsyncClient:
        async with self._making:
            if self._client is None:
                self._client = await trio.to_thread.run_sync(self._make_client)
            return self._client

    def _make_client(self) -> httpx2.AsyncClient:
        url = httpx2.URL(self.base_url)
        is_near = self.transport is not None or url.host in _LOOPBACK
        # A connection cut while its server generates must not be used again, and a near one is cheap to open.
        kept = 4 if url.scheme == "https" else 0
        return httpx2.AsyncClient(
            transport=self.transport,
            timeout=_TIMEOUT,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=kept),
            trust_env=not is_near,  # no proxy stands between us and this machine
        )

    async def _read(self, response: httpx2.Response, stream: ChatStream, emit: Emit) -> None:
        content_type = response.headers.get("content-type", "")
        check_page(self.source, content_type)
        media_type = content_type.partition(";")[0].strip().lower()
        if media_type == "application/json":  # a server that does not stream
            for piece in stream.feed((await _bounded(response, LONGEST)).decode("utf-8", "replace")):
                emit(piece)
            return
        events = EventReader()
        async with unwinding(response.aiter_bytes()) as chunks:
            with trio.CancelScope() as patience:
                async for chunk in chunks:
                    emit(_ALIVE)
                    _play(events.feed(chunk), stream, emit)
                    if stream.is_done:
                        return
                    if stream.has_finished:  # once: a server that goes on sending is not waited for either
                        patience.deadline = min(patience.deadline, trio.current_time() + _AFTER_FINISH_S)
        _play(events.end(), stream, emit)

    async def _refusal(self, response: httpx2.Response) -> ProviderError:
        said = without_key(await _bounded(response, _ERROR_BODY), self.api_key)
        error = from_status(self.source, response.status_code, response.headers, said, now=self.wall())
        if error.kind == "tools" and self.supports_tools:
            self.log.warning("the model cannot use tools: going on without them", provider=self.name, model=self.model)
            self.supports_tools = False
            error.remedy = Remedy.RETRY
        return error


def _play(events: list[str], stream: ChatStream, emit: Emit) -> None:
    for data in events:
        for piece in stream.feed(data):
            emit(piece)


async def _bounded(response: httpx2.Response, limit: int) -> bytes:
    """Return the body, cut at `limit` bytes."""
    body = bytearray()
    async with unwinding(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            body += chunk
            if len(body) >= limit:
                break
    return bytes(body[:limit])
