"""Google's SDK as this program uses it: one streamed content at a time, its errors as ours.

Importing this module imports the SDK; `gemini` does it in a thread. `warm` plays one content through the SDK's parser
there, because the first one ever takes its time.

The SDK is given our HTTP client. Each request carries a number in a header, which the client takes off again: by it the
talk is found that is put in as it is written already (`stand_in`), and the request's own ears, those for the body as it
goes on the wire and those for the bytes that come. On Vertex AI the client also puts on the token, which is loaded and
refreshed in a thread: what the SDK itself would do then needs another event loop.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from itertools import count
from typing import Any, Final

import httpx2
import pydantic
import trio
from attrs import field
from google import genai
from google.genai import errors, types
from google.oauth2.credentials import Credentials

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
from kesoku_actors.llm.gemini import GeminiAccess
from kesoku_actors.llm.gemini_lines import GeminiLines
from kesoku_actors.llm.google_token import GoogleToken
from kesoku_actors.llm.heard import hear, shorten_refusal, stumbling, unwinding
from kesoku_actors.llm.port import ProviderError, Sent
from kesoku_actors.llm.stand_in import put_talk
from kesoku_actors.llm.written import Written
from kesoku_actors.values import define, frozen

Heard = Callable[[], None]

_TIMEOUT: Final = httpx2.Timeout(connect=10.0, write=60.0, read=None, pool=None)
_CLOSE_S: Final = 1.0
_NUMBER: Final = "x-kesoku-number"
_EAR: Final = "kesoku.ear"
_KIND_OF_EXCEPTION: Final[tuple[tuple[tuple[type[Exception], ...], str], ...]] = (
    ((httpx2.UnsupportedProtocol, httpx2.InvalidURL), "address"),
    ((httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError), "connect"),
    ((httpx2.DecodingError, pydantic.ValidationError, errors.UnknownApiResponseError, ValueError), "garbage"),
    ((httpx2.HTTPError, httpx2.StreamError), "cut"),
)
_STAND_IN: Final = "."
"""For the talk."""
_UNKNOWN_FIELD: Final = "extra_forbidden"
"""The SDK leaves those out by itself."""
_FIRST_WORDS: Final = b'data: {"candidates": [{"content": {"parts": [{"text": "."}], "role": "model"}, \
"finishReason": "STOP", "index": 0}], "usageMetadata": {"promptTokenCount": 1}}\r\n\r\n'


@define(eq=False)
class _Ear:
    """What is sent by a request and who hears of it, and the response it got."""

    written: Written
    sent: Sent
    heard: Heard
    response: httpx2.Response | None = None


@frozen(kw_only=True, eq=False)
class _Ears:
    """Who hears of which request."""

    token: GoogleToken | None
    source: Source
    key: str | None = field(repr=False)
    by_number: dict[str, _Ear] = field(factory=dict)

    @property
    def secret(self) -> str | None:
        """What no error may repeat (T6)."""
        return self.key if self.token is None else self.token.value

    async def request(self, request: httpx2.Request) -> None:
        """Put the talk in and tell the body, and put the token on."""
        number = request.headers.pop(_NUMBER, None)
        ear = self.by_number.get(number) if number is not None else None
        if self.token is not None:
            request.headers["authorization"] = f"Bearer {await self.token.get(self.source)}"
        if ear is not None:
            request.extensions[_EAR] = ear
            ear.sent(put_talk(request, ear.written))

    async def response(self, response: httpx2.Response) -> None:
        """Have every chunk heard. Raises `ProviderError` for a web page."""
        await shorten_refusal(response)
        if response.is_success:
            check_page(self.source, response.headers.get("content-type", ""))
        ear = response.request.extensions.get(_EAR)
        if isinstance(ear, _Ear):
            ear.response = response
            hear(response, ear.heard, GeminiLines(self._check) if response.is_success else None)

    def _check(self, data: bytes) -> None:
        """Raise for an event that is an error, or none that the SDK reads."""
        with stumbling():
            chunk = json.loads(data)
            if not isinstance(chunk, dict):
                raise ValueError("a chunk that is no object")
            if "error" in chunk:
                raise from_error_object(self.source, error_of(without_key(data, self.secret)) or chunk["error"])
            try:
                types.GenerateContentResponse.model_validate(chunk)
            except pydantic.ValidationError as error:
                if any(problem["type"] != _UNKNOWN_FIELD for problem in error.errors()):
                    raise


@frozen(kw_only=True, eq=False)
class GeminiClient:
    """An open client of the SDK."""

    sdk: genai.Client
    http: httpx2.AsyncClient
    ears: _Ears
    source: Source
    wall: Callable[[], float]
    numbers: count[int] = field(factory=count)

    @asynccontextmanager
    async def stream(
        self, model: str, written: Written, *, sent: Sent, heard: Heard
    ) -> AsyncIterator[AsyncIterator[Mapping[str, Any]]]:
        """Send a request; give its chunks as data.

        `sent` is told the body as it goes on the wire, `heard` of every chunk of bytes. Raises `ProviderError`.
        """
        number = str(next(self.numbers))
        ear = self.ears.by_number[number] = _Ear(written, sent, heard)
        try:
            with self._failing(ear):
                chunks = await self.sdk.aio.models.generate_content_stream(  # nothing is sent yet
                    model=model, contents=_STAND_IN, config=_config(written.body, number)
                )
            async with unwinding(chunks) as whole, aclosing(self._as_data(whole, ear)) as data:
                yield data
        finally:
            del self.ears.by_number[number]
            if ear.response is not None:  # after an error of its own the SDK leaves it open
                with trio.CancelScope(shield=True, deadline=trio.current_time() + _CLOSE_S):
                    await ear.response.aclose()

    async def aclose(self) -> None:
        """Close every connection."""
        await self.http.aclose()

    async def _as_data(
        self, chunks: AsyncIterator[types.GenerateContentResponse], ear: _Ear
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        while True:
            with self._failing(ear), stumbling():
                chunk = await anext(chunks, None)
                if chunk is None:
                    return
                # What the SDK has no word for is kept as it came, and is nothing to warn of.
                data = chunk.model_dump(
                    mode="json", by_alias=True, exclude_none=True, exclude={"sdk_http_response"}, warnings=False
                )
            yield data

    @contextmanager
    def _failing(self, ear: _Ear) -> Iterator[None]:
        """Make of the SDK's errors ours; for its own steps alone."""
        try:
            yield
        except errors.APIError as error:
            raise self._refusal(error) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, ValueError) as error:
            if ear.response is not None and not ear.response.is_success:  # what it said cannot be read
                raise self._unreadable(ear.response) from error
            kind = next(kind for types, kind in _KIND_OF_EXCEPTION if isinstance(error, types))
            if ear.response is None and isinstance(error, ValueError):
                kind = "request"  # the SDK itself takes it for wrong
            raise provider_error(self.source, kind, f"{type(error).__name__} {error}".rstrip()) from error

    def _refusal(self, error: errors.APIError) -> ProviderError:
        details = error.details if isinstance(error.details, Mapping) else {"message": str(error.details)}
        details = details if any(details.values()) else {}  # the SDK's own words for a body without any
        headers = error.response.headers if isinstance(error.response, httpx2.Response) else {}
        status = error.code if isinstance(error.code, int) else 500
        said = without_key(json.dumps(details).encode(), self.ears.secret) if details else b""
        refusal = from_status(self.source, status, headers, said, now=self.wall())
        return refusal if self.ears.token is None else self.ears.token.doubted(refusal)

    def _unreadable(self, response: httpx2.Response) -> ProviderError:
        return from_status(self.source, response.status_code, response.headers, b"", now=self.wall())


def open_client(
    access: GeminiAccess, source: Source, wall: Callable[[], float], token: GoogleToken | None
) -> GeminiClient:
    """Open a client, with a token for Vertex AI. Blocks for some tenths of a second; call it in a thread."""
    _hush()
    ears = _Ears(token=token, source=source, key=access.api_key)
    http = httpx2.AsyncClient(
        timeout=_TIMEOUT,
        headers={"accept-encoding": "identity"},  # or the lines of a packed stream could be neither tidied nor measured
        event_hooks={"request": [ears.request], "response": [ears.response]},
        follow_redirects=False,
    )
    options = types.HttpOptions(
        base_url=access.base_url, httpx_async_client=http, headers={"user-agent": f"kesoku-actors/{__version__}"}
    )
    # The SDK warns of every word of the service's that it does not know yet; what becomes of those is our matter.
    warnings.filterwarnings("ignore", message=".* is not a valid ", category=UserWarning)
    sdk = _sdk(access, options)
    return GeminiClient(sdk=sdk, http=http, ears=ears, source=source, wall=wall)


def _sdk(access: GeminiAccess, options: types.HttpOptions) -> genai.Client:
    if access.auth_mode == "api_key":
        return genai.Client(api_key=access.api_key or "none", vertexai=False, http_options=options)
    # The SDK must not look for credentials itself: those it is given never end, and `_Ears` puts the true token on.
    return genai.Client(
        vertexai=True,
        project=access.project_id,
        location=access.location,
        credentials=Credentials(token="none"),  # type: ignore[no-untyped-call]  # it says nothing of its types
        http_options=options,
    )


def _config(body: Mapping[str, Any], number: str) -> types.GenerateContentConfig:
    config: dict[str, Any] = dict(body.get("generationConfig", {}))
    if "systemInstruction" in body:
        config["systemInstruction"] = body["systemInstruction"]
    if "tools" in body:
        config["tools"] = list(body["tools"])
    return types.GenerateContentConfig.model_validate(
        {
            **config,
            "automaticFunctionCalling": {"disable": True},
            "httpOptions": {"headers": {_NUMBER: number}},
        }
    )


def _hush() -> None:
    """Let the SDK not say which key of the environment it would take: it is given one, from where our settings say."""
    logging.getLogger("google_genai._api_client").setLevel(logging.ERROR)


def warm() -> None:
    """Play a content through the SDK."""

    _hush()

    def answer(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=_FIRST_WORDS)

    with httpx2.Client(transport=httpx2.MockTransport(answer)) as http:
        sdk = genai.Client(api_key="none", vertexai=False, http_options=types.HttpOptions(httpx_client=http))
        for chunk in sdk.models.generate_content_stream(model="m", contents="."):
            chunk.model_dump(mode="json", by_alias=True, exclude_none=True)
