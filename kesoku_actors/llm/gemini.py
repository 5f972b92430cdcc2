"""Gemini, through Google's own SDK, natively on trio: by API key or through Vertex AI.

A thin client: what is sent and what comes back is decided in `gemini_request` and `gemini_stream`; here are the
connection and its errors. The SDK is imported and warmed in a thread (`gemini_sdk`), and this module imports none of
it.

There is no read timeout: silence is measured by whoever runs the inference (`gate.infer_once`, P3), who hears an empty
piece for every chunk of bytes. Leaving `infer`, also by cancellation, closes the connection at once (I2). Nothing is
tried again here (P2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

import trio
from attrs import evolve, field

from kesoku_actors.llm.classify import Source, check_key, provider_error
from kesoku_actors.llm.dialects import Declaring
from kesoku_actors.llm.dialects.gemini import declare
from kesoku_actors.llm.gemini_body import GeminiOptions
from kesoku_actors.llm.gemini_names import CONTEXT_TOKENS, ThinkingLevel
from kesoku_actors.llm.gemini_request import GeminiRequest
from kesoku_actors.llm.gemini_stream import GeminiStream
from kesoku_actors.llm.google_token import GoogleToken
from kesoku_actors.llm.media import MediaByRow, doubt_files, unshown
from kesoku_actors.llm.media_files import MediaFiles
from kesoku_actors.llm.media_rules import GEMINI
from kesoku_actors.llm.port import Emit, Limits, Piece, ProviderError, Remedy, Reply, Request
from kesoku_actors.llm.sdk_import import undisturbed
from kesoku_actors.llm.writing import written_in_time
from kesoku_actors.llm.written import Written
from kesoku_actors.log import Logger
from kesoku_actors.protocol import DeltaKind
from kesoku_actors.values import define, frozen

if TYPE_CHECKING:
    from kesoku_actors.llm.gemini_sdk import GeminiClient

_ALIVE: Final = Piece(kind=DeltaKind.TEXT, text="")
_GRACE_S: Final = 2.0
"""For what may follow a finish reason, such as counts, where the connection stays open."""


@frozen(kw_only=True)
class GeminiAccess:
    """How Gemini is reached."""

    auth_mode: Literal["api_key", "vertex"] = "api_key"
    api_key: str | None = field(default=None, repr=False)
    project_id: str | None = None
    """Of Google Cloud; for Vertex AI."""
    location: str = "us-central1"
    """For Vertex AI."""
    base_url: str | None = None
    """None: the service's own."""


@define(kw_only=True, eq=False)
class GeminiModel:
    """One model of Gemini's."""

    source: Source
    model: str
    access: GeminiAccess
    log: Logger
    wall: Callable[[], float]
    """UTC seconds, for a `Retry-After` that is a date and for tokens that end."""
    thinking_level: ThinkingLevel = "high"
    limits: Limits = field(factory=Limits)
    context_tokens: int | None = CONTEXT_TOKENS
    supports_tools: bool = True
    """Becomes false when the service says that the model cannot use them."""
    _declaring: Declaring = field(factory=lambda: Declaring(declare), init=False, repr=False)
    _token: GoogleToken | None = field(default=None, init=False, repr=False)
    _files: MediaFiles = field(init=False, repr=False)
    _client: GeminiClient | None = field(default=None, init=False, repr=False)
    _making: trio.Lock = field(factory=trio.Lock, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        has_key = self.access.auth_mode == "vertex" or self.access.api_key is not None
        self.source = evolve(self.source, has_key=has_key, secret=self.access.api_key)
        self._files = MediaFiles(rules=GEMINI, log=self.log)
        self._token = GoogleToken(self.wall) if self.access.auth_mode == "vertex" else None

    @property
    def name(self) -> str:
        """The configured name."""
        return self.source.provider

    async def warm(self) -> None:
        """Import the SDK and open the client, so that the first inference need not wait for it.

        Without a project the client cannot be opened before Google's credentials are asked; an inference does that.
        """
        if self._token is not None and self.access.project_id is None:
            await trio.to_thread.run_sync(_warm, self.source, abandon_on_cancel=True)
        else:
            await self._connected()

    async def infer(self, request: Request, emit: Emit) -> Reply:
        """Run one inference; empty pieces say only that bytes came. Raises `ProviderError` (P2, P3)."""
        stream = GeminiStream(self.source, model=self.model)
        media = await self._files.of(request)
        try:
            await self._listen(stream, request, media, emit)
        except ProviderError as error:
            if error.kind == "tools" and self.supports_tools:
                self.log.warning("the model cannot use tools: going on without them", model=self.model)
                self.supports_tools = False
                error.remedy = Remedy.RETRY
            doubt_files(error, request, media)
            raise
        finally:
            request.used(stream.usage)
        return evolve(self._declaring(request.tools).received(stream.reply()), unshown=unshown(media))

    async def _listen(self, stream: GeminiStream, request: Request, media: MediaByRow, emit: Emit) -> None:
        written = await self._written(request, media)
        client = await self._connected()
        async with client.stream(self.model, written, sent=request.sent, heard=lambda: emit(_ALIVE)) as chunks:
            with trio.CancelScope() as end:
                async for chunk in chunks:
                    for piece in stream.feed(chunk):
                        emit(piece)
                    if stream.has_finished:
                        end.deadline = min(end.deadline, trio.current_time() + _GRACE_S)

    async def aclose(self) -> None:
        """Close every connection; the next inference would open new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _written(self, request: Request, media: MediaByRow) -> Written:
        options = GeminiOptions(provider=self.name, model=self.model, thinking_level=self.thinking_level)
        declared = self._declaring(request.tools)
        wire = GeminiRequest(request=request, options=options, declared=declared, media=media)
        written = await written_in_time(wire)
        if written.repairs:
            self.log.warning("history repaired for a request", session_id=request.session_id, repairs=written.repairs)
        return written

    async def _connected(self) -> GeminiClient:
        async with self._making:
            if self._client is None:
                access = self.access
                check_key(self.source, access.api_key or "")
                if self._token is not None and access.project_id is None:
                    await self._token.get(self.source)
                    if self._token.project is None:
                        raise provider_error(self.source, "project", "")
                    access = evolve(access, project_id=self._token.project)
                self._client = await trio.to_thread.run_sync(self._open, access, abandon_on_cancel=True)
            return self._client

    def _open(self, access: GeminiAccess) -> GeminiClient:
        _warm(self.source)
        from kesoku_actors.llm.gemini_sdk import open_client

        return open_client(access, self.source, self.wall, self._token)


def _warm(source: Source) -> None:
    with undisturbed(source):
        from kesoku_actors.llm.gemini_sdk import warm

        warm()
