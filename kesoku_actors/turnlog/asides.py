"""Inferences beside the turns, such as summaries and titles, are written down too: a provider that does it."""

from __future__ import annotations

from attrs import evolve

from kesoku_actors.clock import Clock
from kesoku_actors.llm.port import Body, Emit, Limits, Piece, Provider, ProviderError, Reply, Request
from kesoku_actors.turnlog.actor import TurnLog
from kesoku_actors.turnlog.inference import Notes
from kesoku_actors.values import frozen


@frozen(kw_only=True)
class LoggedProvider:
    """Asks `provider`, and has the turn log write what came of it."""

    provider: Provider
    log: TurnLog
    clock: Clock

    @property
    def name(self) -> str:
        """The configured name."""
        return self.provider.name

    @property
    def model(self) -> str:
        """The model that answers."""
        return self.provider.model

    @property
    def context_tokens(self) -> int | None:
        """The size of its context, if known."""
        return self.provider.context_tokens

    @property
    def supports_tools(self) -> bool:
        """Whether tools may be offered."""
        return self.provider.supports_tools

    @property
    def limits(self) -> Limits:
        """Its silence limits and concurrency."""
        return self.provider.limits

    async def infer(self, request: Request, emit: Emit) -> Reply:
        """Run one inference. Raises `ProviderError`."""
        begun = self.clock.monotonic()
        notes = Notes(
            root_id="",
            attempt=1,
            provider=self.name,
            model=self.model,
            began=self.clock.wall(),
            spent=lambda: max(0.0, self.clock.monotonic() - begun),
        )

        def hear(piece: Piece) -> None:
            if piece.text:
                notes.heard(piece)
            emit(piece)

        def leave(body: Body) -> None:
            notes.sent(body)
            request.sent(body)

        end: Reply | ProviderError | None = None
        try:
            end = await self.provider.infer(evolve(request, sent=leave), hear)
            return end
        except ProviderError as error:
            end = error
            raise
        finally:
            self.log.record(notes.ended(request, end))
