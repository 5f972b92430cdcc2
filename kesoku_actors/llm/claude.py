"""Claude, through Anthropic's own SDK, natively on trio: by API key or through Vertex AI.

A thin client: what is sent and what comes back is decided in `claude_request`, `claude_pause` and `claude_stream`; here
are the connection and its errors. The SDK is imported and warmed in a thread (`claude_sdk`), as its import and its
first stream take some tenths of a second, and this module imports none of it.

There is no read timeout: silence is measured by whoever runs the inference (`gate.infer_once`, P3), who hears an empty
piece for every chunk of bytes. Leaving `infer`, also by cancellation, closes the connection at once (I2). Nothing is
tried again here (P2): the SDK's own retries are off.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

import trio
from attrs import evolve, field

from kesoku_actors.llm.classify import Source, check_key
from kesoku_actors.llm.claude_body import ClaudeOptions
from kesoku_actors.llm.claude_names import CONTEXT_TOKENS, ThinkingLevel
from kesoku_actors.llm.claude_pause import going_on
from kesoku_actors.llm.claude_request import ClaudeRequest
from kesoku_actors.llm.claude_stream import ClaudeStream
from kesoku_actors.llm.dialects import Declaring
from kesoku_actors.llm.dialects.claude import declare
from kesoku_actors.llm.media import MediaByRow, doubt_files, unshown
from kesoku_actors.llm.media_files import MediaFiles
from kesoku_actors.llm.media_rules import CLAUDE
from kesoku_actors.llm.port import Emit, Limits, Piece, ProviderError, Reply, Request
from kesoku_actors.llm.sdk_import import undisturbed
from kesoku_actors.llm.writing import written_in_time
from kesoku_actors.llm.written import Written, whole
from kesoku_actors.log import Logger
from kesoku_actors.protocol import DeltaKind
from kesoku_actors.values import define, frozen

if TYPE_CHECKING:
    from kesoku_actors.llm.claude_sdk import ClaudeClient

_ALIVE: Final = Piece(kind=DeltaKind.TEXT, text="")
_GRACE_S: Final = 1.0
"""For the end of the connection's answer behind that of the message."""
_MOST_PAUSES: Final = 8
"""How often a message that pauses is gone on with."""


@frozen(kw_only=True)
class ClaudeAccess:
    """How Claude is reached."""

    auth_mode: Literal["api_key", "vertex"] = "api_key"
    api_key: str | None = field(default=None, repr=False)
    project_id: str | None = None
    """Of Google Cloud; for Vertex AI."""
    location: str = "us-east5"
    """For Vertex AI."""
    base_url: str | None = None
    """None: the service's own."""


@define(kw_only=True, eq=False)
class ClaudeModel:
    """One model of Claude's."""

    source: Source
    model: str
    access: ClaudeAccess
    log: Logger
    wall: Callable[[], float]
    """UTC seconds, for a `Retry-After` that is a date."""
    thinking_level: ThinkingLevel | None = None
    limits: Limits = field(factory=Limits)
    context_tokens: int | None = CONTEXT_TOKENS
    supports_tools: bool = True
    _declaring: Declaring = field(factory=lambda: Declaring(declare), init=False, repr=False)
    _files: MediaFiles = field(init=False, repr=False)
    _client: ClaudeClient | None = field(default=None, init=False, repr=False)
    _making: trio.Lock = field(factory=trio.Lock, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        has_key = self.access.auth_mode == "vertex" or self.access.api_key is not None
        self.source = evolve(self.source, has_key=has_key, secret=self.access.api_key)
        self._files = MediaFiles(rules=CLAUDE, log=self.log)

    @property
    def name(self) -> str:
        """The configured name."""
        return self.source.provider

    async def warm(self) -> None:
        """Import the SDK and open the client, so that the first inference need not wait for it."""
        await self._connected()

    async def infer(self, request: Request, emit: Emit) -> Reply:
        """Run one inference; empty pieces say only that bytes came. Raises `ProviderError` (P2, P3)."""
        stream = ClaudeStream(self.source, model=self.model)
        media = await self._files.of(request)
        try:
            await self._listen(stream, request, media, emit)
        except ProviderError as error:
            doubt_files(error, request, media)
            raise
        finally:
            request.used(stream.usage)
        return evolve(self._declaring(request.tools).received(stream.reply()), unshown=unshown(media))

    async def _listen(self, stream: ClaudeStream, request: Request, media: MediaByRow, emit: Emit) -> None:
        asked = written = await self._written(request, media)
        client = await self._connected()
        for rest in range(_MOST_PAUSES, -1, -1):
            async with client.stream(asked, sent=request.sent, heard=lambda: emit(_ALIVE)) as events:
                async for event in events:
                    for piece in stream.feed(event):
                        emit(piece)
                    if stream.is_done:
                        break
                # A connection read to its end serves the next request; nothing there is the message's any more.
                with trio.move_on_after(_GRACE_S), suppress(ProviderError):
                    async for _ in events:
                        pass
            if not stream.is_paused or not rest:
                break
            asked = whole("messages", going_on(written.body, stream.proceed()))
            self._tell(asked, request)

    async def aclose(self) -> None:
        """Close every connection; the next inference would open new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _written(self, request: Request, media: MediaByRow) -> Written:
        level = None if request.is_plain else self.thinking_level
        options = ClaudeOptions(provider=self.name, model=self.model, thinking_level=level)
        declared = self._declaring(request.tools)
        wire = ClaudeRequest(request=request, options=options, declared=declared, media=media)
        written = await written_in_time(wire)
        self._tell(written, request)
        return written

    def _tell(self, written: Written, request: Request) -> None:
        if written.repairs:
            self.log.warning("history repaired for a request", session_id=request.session_id, repairs=written.repairs)

    async def _connected(self) -> ClaudeClient:
        async with self._making:
            if self._client is None:
                check_key(self.source, self.access.api_key or "")
                self._client = await trio.to_thread.run_sync(self._open, abandon_on_cancel=True)
                for notice in self._client.notices:
                    self.log.warning(notice, setting=self.source.model)
            return self._client

    def _open(self) -> ClaudeClient:
        with undisturbed(self.source):
            from kesoku_actors.llm.claude_sdk import open_client

            return open_client(self.access, self.source, self.wall, model=self.model)
