"""Sessions, channels, stops and steps: the durable facts beside messages. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from attrs import field

from kesoku_actors.protocol.messages import Reason
from kesoku_actors.values import frozen


class BusyMode(StrEnum):
    """What a message does that arrives while a turn runs (I5)."""

    INTERRUPT = "interrupt"
    QUEUE = "queue"
    COLLECT = "collect"
    STEER = "steer"


class SessionState(StrEnum):
    """Life of a session (M6, M7)."""

    OPEN = "open"
    CLOSED = "closed"
    TOMBSTONE = "tombstone"


class CallState(StrEnum):
    """Life of a tool call (C3)."""

    COMMITTED = "committed"
    WAITING = "waiting"
    STARTED = "started"
    SETTLED = "settled"


class StepState(StrEnum):
    """How an inference ended (M4)."""

    FINISHED = "finished"
    CANCELLED = "cancelled"
    FAILED = "failed"


@frozen(kw_only=True)
class Channel:
    """Where people talk: one room of one chatbot."""

    chatbot_id: str
    channel_id: str


@frozen(kw_only=True)
class SessionInfo:
    """A session as lists show it."""

    id: str
    chatbot_id: str
    channel_id: str
    state: SessionState
    created: float
    last_activity: float
    turns: int
    title: str = ""


@frozen(kw_only=True)
class Waiting:
    """A message that waits to be taken: what the turn machine needs to know of it."""

    id: str
    seq: int
    is_person: bool
    wakes: bool


@frozen(kw_only=True)
class Stop:
    """A stored stop: what it covers was decided in its own commit (I7)."""

    seq: int
    session_id: str
    root_id: str | None
    """The turn it was asked for, or the waiting message it named."""
    covers: frozenset[str]
    """Ids of that turn's messages and of every message waiting then."""
    reason: Reason = Reason.STOPPED
    requested: float = 0.0
    """UTC seconds."""
    forced: bool = False
    """Whether force was accepted after it."""
    done: bool = False
    """Whether all it covers has ended or is gone."""


@frozen(kw_only=True)
class Usage:
    """Tokens of one inference, as far as the provider said, and by our count where it broke off before it did."""

    input: int | None = None
    cached: int | None = None
    """Of the input: what was read from the provider's cache."""
    written: int | None = None
    """Of the input: what was written to it, where that has a price of its own."""
    output: int | None = None
    thinking: int | None = None
    """Of the output: what was not said."""
    cost: float | None = None
    """US dollars, by the prices of the settings; none where there is none for the model."""

    @property
    def tokens(self) -> int:
        """What went in and came out, as far as it is known."""
        return (self.input or 0) + (self.output or 0)


@frozen(kw_only=True)
class Step:
    """One inference, also one cancelled or failed (M4). The store gives its `index` within the turn."""

    inference_id: str
    provider: str
    model: str
    state: StepState
    native: Mapping[str, Any] | None = None
    """The provider's content in order with its signatures; none unless finished."""
    finish_reason: str | None = None
    error: str | None = None
    usage: Usage = field(factory=Usage)
    duration_s: float = 0.0


@frozen(kw_only=True)
class StoredStep:
    """A step as read back: its turn and its place in it."""

    root_id: str
    index: int
    step: Step
    message_ids: tuple[str, ...] = ()
    """The rows committed with it (texts, thoughts and calls, in order)."""
