"""What a conversation at a terminal asks of the composition around it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kesoku_actors.adapters.commands import Lines, ModelInfo
from kesoku_actors.protocol import Channel
from kesoku_actors.values import frozen


@frozen(kw_only=True)
class Answering:
    """The model that answers."""

    model: str
    provider: str

    @property
    def label(self) -> str:
        """Both, as people read them."""
        return f"{self.model} ({self.provider})"


class Desk(Protocol):
    """What the composition can do for a conversation. Methods may raise `UsageError`, whose text is shown."""

    @property
    def shell(self) -> str:
        """Where commands run, in words."""

    def model_of(self, channel: Channel) -> Answering:
        """Return which model answers in a channel."""

    def models(self, channel: Channel) -> Sequence[ModelInfo]:
        """Return the models there are."""

    async def choose_model(self, channel: Channel, name: str) -> Answering:
        """Let another model answer in a channel from now on, in later runs too; return which."""

    def compact(self, session_id: str, tell: Callable[[Lines], None]) -> None:
        """Begin to summarise the older part of a session; `tell` is called with the receipt."""

    def end_compaction(self, session_id: str) -> bool:
        """Cancel that; return whether it was under way."""

    async def stop_job(self, call_id: str) -> bool:
        """End the job that a call became and wait until it has. False: it does not run."""

    async def work_for(self, channel: Channel) -> None:
        """Work for this channel too from now on (C2), with the model that was chosen for it."""

    async def trace(self, session_id: str) -> str:
        """Write the trace of a session; return where it is."""
