"""What is noted of one inference for the turn log: who was asked, what was sent, what came back.

`Notes` are taken while it runs, by the task that runs it; they hold references, nothing is copied or written. At its
end they become an `Inference`, a value.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import field

from kesoku_actors.llm.port import Body, Piece, ProviderError, Reply, Request
from kesoku_actors.protocol import DeltaKind, StepState, ToolSchema
from kesoku_actors.values import define, frozen


@frozen(kw_only=True)
class Failure:
    """Why an inference failed."""

    kind: str
    message: str
    remedy: str


@frozen(kw_only=True)
class Inference:
    """One inference that has ended. Times are UTC seconds, durations seconds."""

    request: Request
    """Without the history that was sent: see `body`."""
    root_id: str
    """The turn it belongs to; empty for one beside the turns."""
    attempt: int
    """Counts the inferences of its turn in this life of the program, from 1."""
    provider: str
    model: str
    began: float
    duration_s: float
    first_piece_s: float | None
    """Until the first piece of the answer; none when none came."""
    state: StepState
    body: Body | None
    """Makes the JSON body as it was sent last; none when nothing was sent."""
    sends: int
    """How often something was sent."""
    text: str
    """Of the answer, as far as it came."""
    thought: str
    reply: Reply | None
    """None unless it ended well."""
    failure: Failure | None = None

    @property
    def messages(self) -> int:
        """How many messages the history has that it was asked with."""
        return len(self.request.history)

    @property
    def tools(self) -> tuple[ToolSchema, ...]:
        """What the model was offered."""
        return self.request.tools


@define(eq=False)
class Notes:
    """Notes on an inference that runs."""

    root_id: str
    attempt: int
    provider: str
    model: str
    began: float
    """UTC seconds."""
    spent: Callable[[], float]
    """Seconds since it began."""
    _body: Body | None = field(default=None, init=False)
    _sends: int = field(default=0, init=False)
    _texts: list[str] = field(factory=list, init=False)
    _thoughts: list[str] = field(factory=list, init=False)
    _first_piece_s: float | None = field(default=None, init=False)

    def sent(self, body: Body) -> None:
        """Note what is sent (`Request.sent`)."""
        self._body = body
        self._sends += 1

    def heard(self, piece: Piece) -> None:
        """Note a piece of the answer."""
        if self._first_piece_s is None:
            self._first_piece_s = self.spent()
        (self._texts if piece.kind is DeltaKind.TEXT else self._thoughts).append(piece.text)

    def ended(self, request: Request, end: Reply | ProviderError | None) -> Inference:
        """Return what was noted; without an end the inference was cancelled."""
        reply = end if isinstance(end, Reply) else None
        return Inference(
            request=request,
            root_id=self.root_id,
            attempt=self.attempt,
            provider=reply.provider if reply else self.provider,
            model=reply.model if reply else self.model,
            began=self.began,
            duration_s=self.spent(),
            first_piece_s=self._first_piece_s,
            state=_state(end),
            body=self._body,
            sends=self._sends,
            text=reply.text if reply else "".join(self._texts),
            thought=reply.thought if reply else "".join(self._thoughts),
            reply=reply,
            failure=_failure(end) if isinstance(end, ProviderError) else None,
        )


def _state(end: Reply | ProviderError | None) -> StepState:
    match end:
        case Reply():
            return StepState.FINISHED
        case ProviderError():
            return StepState.FAILED
        case None:
            return StepState.CANCELLED


def _failure(error: ProviderError) -> Failure:
    return Failure(kind=error.kind, message=str(error), remedy=error.remedy.value)
