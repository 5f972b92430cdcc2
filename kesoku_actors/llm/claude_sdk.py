"""Anthropic's SDK as this program uses it: one streamed message at a time, its errors as ours.

Importing this module imports the SDK; `claude` does it in a thread. `open_client` also plays one message through the
SDK there, because the first one ever takes a tenth of a second.

The SDK knows where to send a request, with which headers and which key, what a refusal is, and what the events of a
stream are. The talk is put into its request as it leaves (`stand_in`), as that is written already; and what an event
says is read as it came, as the SDK's types would leave out what they have no word for.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final

import anthropic
import httpx2
from anthropic.resources.messages import DEPRECATED_MODELS
from attrs import field

from kesoku_actors import __version__
from kesoku_actors.llm.classify import (
    Source,
    check_page,
    error_of,
    from_error_object,
    from_status,
    provider_error,
    without_key,
)
from kesoku_actors.llm.claude import ClaudeAccess
from kesoku_actors.llm.google_token import GoogleToken
from kesoku_actors.llm.heard import WholeCharacters, hear, shorten_refusal, stumbling, unwinding
from kesoku_actors.llm.port import ProviderError, Sent
from kesoku_actors.llm.stand_in import put_talk
from kesoku_actors.llm.written import Written
from kesoku_actors.values import frozen

_TIMEOUT: Final = httpx2.Timeout(connect=10.0, write=60.0, read=None, pool=None)
_USER_AGENT: Final = f"kesoku-actors/{__version__}"
_HEADERS: Final = {"user-agent": _USER_AGENT, "accept-encoding": "identity"}
"""A packed stream comes in larger pieces, and its lines cannot be measured."""

_LEAVING: Final[ContextVar[tuple[Written, Sent]]] = ContextVar("leaving")
"""What this task sends, and who hears of it."""
_STAND_IN: Final = [{"role": "user", "content": "."}]
"""For the talk."""
_KIND_OF_EXCEPTION: Final[tuple[tuple[tuple[type[Exception], ...], str], ...]] = (
    ((httpx2.UnsupportedProtocol, httpx2.InvalidURL), "address"),
    ((httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError), "connect"),
    ((httpx2.DecodingError, ValueError), "garbage"),
    ((httpx2.HTTPError, httpx2.StreamError), "cut"),
)
_FIRST_WORDS: Final = b"""event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m",\
"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}

event: message_stop
data: {"type":"message_stop"}

"""


@frozen(kw_only=True, eq=False)
class ClaudeClient:
    """An open client of the SDK."""

    sdk: anthropic.AsyncAnthropic | anthropic.AsyncAnthropicVertex
    http: httpx2.AsyncClient
    source: Source
    wall: Callable[[], float]
    token: GoogleToken | None
    """For Vertex AI."""
    key: str | None = field(repr=False)
    notices: tuple[str, ...]
    """What the SDK says of the model, such as the day on which it ends."""

    @asynccontextmanager
    async def stream(
        self, written: Written, *, sent: Sent, heard: Callable[[], None]
    ) -> AsyncIterator[AsyncIterator[Mapping[str, Any]]]:
        """Send a request; give its events as data.

        `sent` is told the body as it goes on the wire, `heard` of every chunk of bytes. Raises `ProviderError`.
        """
        if self.token is not None:
            await self._authorise(self.token)
        _LEAVING.set((written, sent))
        with self._failing():
            asked = {**written.body, written.key: _STAND_IN}
            created = await self.sdk.messages.create(**asked, stream=True)
        try:
            hear(created.response, heard, WholeCharacters())
            check_page(self.source, created.response.headers.get("content-type", ""))
            async with (
                unwinding(anthropic.AsyncStream.raw_events(created.response)) as whole,
                aclosing(self._events(created.response, whole)) as events,
            ):
                yield events
        finally:
            with suppress(httpx2.HTTPError, httpx2.StreamError):
                await created.close()

    async def aclose(self) -> None:
        """Close every connection."""
        await self.http.aclose()

    @property
    def _secret(self) -> str | None:
        """What no error may repeat (T6)."""
        return self.key if self.token is None else self.token.value

    async def _authorise(self, token: GoogleToken) -> None:
        assert isinstance(self.sdk, anthropic.AsyncAnthropicVertex)
        self.sdk.access_token = await token.get(self.source)
        self.sdk.project_id = self.sdk.project_id or token.project
        if not self.sdk.project_id:
            raise provider_error(self.source, "project", "")

    async def _events(
        self, response: httpx2.Response, whole: AsyncIterator[Any]
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """Give the events as they came: what the SDK has no word for is kept, and it stumbles over none of it."""
        if response.headers.get("content-type", "").startswith("application/json"):
            # What stands between may answer the whole message at once.
            with self._failing():
                answer = await response.aread()
            yield self._object(answer.decode("utf-8", "replace"))
            return
        while True:
            with self._failing():
                event = await anext(whole, None)
            if event is None:
                return
            if event.event == "error":
                raise self._told(event.data)
            if event.data:
                yield self._object(event.data)

    def _object(self, text: str) -> Mapping[str, Any]:
        with self._failing(), stumbling():
            value = json.loads(text)
        if not isinstance(value, Mapping):
            raise provider_error(self.source, "garbage", "an answer that is no object")
        if value.get("type") == "error":
            raise self._told(text)
        return value

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Make of the SDK's errors ours; for its own steps alone."""
        try:
            yield
        except anthropic.APIStatusError as error:
            raise self._refusal(error) from error
        except (anthropic.APIConnectionError, httpx2.HTTPError, httpx2.StreamError, ValueError) as error:
            raise self._failure(error) from error

    def _told(self, said: str) -> ProviderError:
        """Return what an error that came inside a stream means."""
        told = without_key(said.encode(), self._secret)
        return from_error_object(self.source, error_of(told) or told.decode())

    def _refusal(self, error: anthropic.APIStatusError) -> ProviderError:
        response = error.response
        said = response.content if response.is_stream_consumed or response.is_closed else b""
        said = without_key(said, self._secret)
        refusal = from_status(self.source, response.status_code, response.headers, said, now=self.wall())
        return refusal if self.token is None else self.token.doubted(refusal)

    def _failure(self, error: Exception) -> ProviderError:
        cause = error.__cause__ if isinstance(error, anthropic.APIConnectionError) else error
        cause = cause if isinstance(cause, Exception) else error
        kind = next((kind for types, kind in _KIND_OF_EXCEPTION if isinstance(cause, types)), "connect")
        return provider_error(self.source, kind, f"{type(cause).__name__} {cause}".rstrip())


def open_client(access: ClaudeAccess, source: Source, wall: Callable[[], float], *, model: str) -> ClaudeClient:
    """Open a client and warm it. Blocks for some tenths of a second; call it in a thread."""
    by_vertex = access.auth_mode == "vertex"
    http = httpx2.AsyncClient(
        timeout=_TIMEOUT,
        headers=_HEADERS,
        follow_redirects=False,
        event_hooks={"request": [_leave], "response": [shorten_refusal]},
    )
    common: dict[str, Any] = {
        "http_client": http,
        "max_retries": 0,
        "timeout": _TIMEOUT,
        "base_url": access.base_url,
        "default_headers": {"user-agent": _USER_AGENT},
    }
    token = None
    sdk: anthropic.AsyncAnthropic | anthropic.AsyncAnthropicVertex
    if by_vertex:
        token = GoogleToken(wall)
        sdk = anthropic.AsyncAnthropicVertex(
            region=access.location, project_id=access.project_id or "", access_token="none yet", **common
        )
    else:
        sdk = anthropic.AsyncAnthropic(api_key=access.api_key or "", **common)
    _warm()
    return ClaudeClient(
        sdk=sdk, http=http, source=source, wall=wall, token=token, key=access.api_key, notices=_notices(model)
    )


async def _leave(request: httpx2.Request) -> None:
    written, sent = _LEAVING.get()
    sent(put_talk(request, written))


def _notices(model: str) -> tuple[str, ...]:
    """Return what the SDK would warn of with every request; the table is where it reads that itself."""
    warnings.filterwarnings("ignore", message=f"The model '{re.escape(model)}' is deprecated")
    ends = DEPRECATED_MODELS.get(model)
    return () if ends is None else (f"the model {model!r} is deprecated and reaches its end of life on {ends}",)


def _warm() -> None:
    """Play a message through the SDK."""
    answer = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=_FIRST_WORDS)
    transport = httpx2.MockTransport(lambda _request: answer)
    http = httpx2.Client(transport=transport)
    with anthropic.Anthropic(api_key="none", http_client=http, max_retries=0) as client:
        asked = client.messages.create(
            model="claude", max_tokens=1, messages=[{"role": "user", "content": "."}], stream=True
        )
        for event in anthropic.Stream.raw_events(asked.response):
            event.json()
