"""What a model is asked and what it answers: the port every provider stands behind. Pure values.

A provider is an object with `infer(request, emit)`: it calls `emit` with each `Piece` as it comes, and returns a
`Reply` when the stream has ended well. Everything else is a `ProviderError`. It is cancelled by the scope of the
task that called it, and then closes its connection at once (I2).

Invariants: a `Reply` is complete, never a stream that broke (P3); a call in it has parsed arguments or says why
not; `native` is the provider's content in order, JSON data, to be sent back unchanged to the same provider (M4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from attrs import field

from kesoku_actors.errors import PeerError
from kesoku_actors.protocol import DeltaKind, Message, ToolSchema, Usage
from kesoku_actors.values import frozen

if TYPE_CHECKING:
    from kesoku_actors.llm.kept_talk import KeptTalks


class Remedy(StrEnum):
    """What to do about a provider error (P2)."""

    RETRY = "retry"
    FAIL_OVER = "fail_over"
    COMPACT = "compact"
    REPAIR = "repair"
    TELL = "tell"
    """Tell the user; another try cannot help."""


class ProviderError(PeerError):
    """An inference failed. `remedy` is the row of table P2; `retry_after_s` what the server asked for."""

    def __init__(
        self,
        message: str,
        *,
        remedy: Remedy = Remedy.RETRY,
        retry_after_s: float | None = None,
        kind: str = "provider",
        prompt_tokens: int | None = None,
        context_tokens: int | None = None,
    ) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.retry_after_s = retry_after_s
        self.kind = kind
        """A short name of the class of error for logs and tables: `rate_limit`, `auth`, `stall`, ..."""
        self.prompt_tokens = prompt_tokens
        """Of a request that was too long (`Remedy.COMPACT`): how long it was, if the provider said so."""
        self.context_tokens = context_tokens
        """And how long it may have been, the reply included."""


class Finish(StrEnum):
    """Why the model stopped."""

    STOP = "stop"
    CALLS = "calls"
    LENGTH = "length"
    REFUSED = "refused"
    OTHER = "other"


class Purpose(StrEnum):
    """What an inference is for. Only an answer belongs to a turn; the rest the program asks for itself."""

    ANSWER = "answer"
    SUMMARY = "summary"
    """Of an older part of a conversation, read from its text as data."""
    TITLE = "title"
    """Of a session, a few words."""


@frozen(kw_only=True)
class StepContent:
    """The native content of one earlier inference and the rows that came from it."""

    provider: str
    model: str
    native: Mapping[str, Any] | None
    message_ids: tuple[str, ...]


Body = Callable[[], Mapping[str, Any]]
"""Makes a request's JSON body exactly as it goes on the wire. It may be called later and in a thread, or never."""
Sent = Callable[[Body], None]
Used = Callable[[Usage], None]


def unheard(_news: Body | Usage) -> None:
    """Hear of a request and do nothing."""


@frozen(kw_only=True)
class Request:
    """One inference. `history` is in order (O1) and holds only what the model reads."""

    inference_id: str
    session_id: str
    system: str
    history: tuple[Message, ...]
    steps: tuple[StepContent, ...] = ()
    tools: tuple[ToolSchema, ...] = ()
    nudge: str | None = None
    """A sentence asking for an answer, sent as a last user text, stored nowhere (P3)."""
    max_output_tokens: int | None = None
    tokens: int | None = None
    """How long it is, as far as that is estimated."""
    purpose: Purpose = Purpose.ANSWER
    is_plain: bool = False
    """Whether it says no more than words can: calls of earlier answers are told, nothing native goes back, and no
    thinking is asked for. So is asked again what a service refused (P2)."""
    workspace: Path | None = None
    """The session's folder: the paths of attachments in `history` lead from there."""
    kept: KeptTalks | None = field(default=None, eq=False, repr=False)
    """Where the provider keeps what it made of the history, for the session's next request; none: nowhere."""
    sent: Sent = field(default=unheard, eq=False, repr=False)
    """Called once per try, just before the send, with what makes the JSON body (P4).

    Neither headers nor keys are in it. Whoever hears of it may read it later; nobody changes it any more.
    """
    used: Used = field(default=unheard, eq=False, repr=False)
    """Called with what it used, as far as its provider said, also where it fails or is cancelled (M4).

    Who asks through `gate.infer_once` is told once, in the end, with the cost, and with our own count of what the
    provider did not say.
    """

    @property
    def shows_calls(self) -> bool:
        """Whether the calls of earlier answers stand in it as calls."""
        return bool(self.tools) and not self.is_plain


@frozen(kw_only=True)
class Piece:
    """A streamed piece of text or thought."""

    kind: DeltaKind
    text: str


@frozen(kw_only=True)
class CallRequest:
    """A tool call the model asks for. `id` is the provider's, data only (M4); empty when it gave none."""

    name: str
    arguments: Mapping[str, Any]
    id: str = ""
    signature: str | None = None
    invalid: str | None = None
    """Why the arguments could not be parsed; the call then gets an error result and never runs."""


@frozen(kw_only=True)
class Reply:
    """An inference that ended well."""

    provider: str
    model: str
    text: str = ""
    thought: str = ""
    calls: tuple[CallRequest, ...] = ()
    native: Mapping[str, Any] | None = None
    finish: Finish = Finish.STOP
    finish_reason: str = ""
    """The provider's own word for it."""
    unshown: tuple[str, ...] = ()
    """The files that the model was asked about and not shown, each with the reason: people are told."""
    usage: Usage = field(factory=Usage)


Emit = Callable[[Piece], None]


@frozen(kw_only=True)
class Limits:
    """How long a provider may be silent (P3), and how many inferences it runs at once."""

    first_byte_s: float = 60.0
    idle_s: float = 45.0
    concurrency: int = 8


class Provider(Protocol):
    """One configured model behind one service."""

    @property
    def name(self) -> str:
        """The configured name: `openai`, `local`, `scripted`, ..."""

    @property
    def model(self) -> str:
        """The model that answers."""

    @property
    def context_tokens(self) -> int | None:
        """The size of its context, if known."""

    @property
    def supports_tools(self) -> bool:
        """Whether tools may be offered."""

    @property
    def limits(self) -> Limits:
        """Its silence limits and concurrency."""

    async def infer(self, request: Request, emit: Emit) -> Reply:
        """Run one inference. Raises `ProviderError`; closes its connection when cancelled."""
