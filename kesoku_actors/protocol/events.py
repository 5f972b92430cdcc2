"""What listeners hear from the gateway. Pure.

A `Changed` is a stored fact, in `rev` order and never missed (B1). Everything else is a hint (B2): droppable,
never replayed, superseded by the committed rows.
"""

from __future__ import annotations

from enum import StrEnum

from kesoku_actors.protocol.messages import Message, Outcome
from kesoku_actors.protocol.sessions import BusyMode, CallState
from kesoku_actors.values import frozen


class DeltaKind(StrEnum):
    """What a streamed piece belongs to."""

    TEXT = "text"
    THOUGHT = "thought"


class Activity(StrEnum):
    """What a session is doing, for typing indicators and status lines."""

    IDLE = "idle"
    THINKING = "thinking"
    RETRYING = "retrying"
    """The model failed and is asked again soon."""
    TOOLS = "tools"
    ASKING = "asking"
    """Nothing goes on before a person has said yes or no to a call (T7)."""
    STOPPING = "stopping"
    CLEARING = "clearing"
    COMPACTING = "compacting"


@frozen(kw_only=True)
class Changed:
    """A row is new or has changed; `message` is its state at `message.rev`."""

    message: Message


@frozen(kw_only=True)
class Removed:
    """A row is gone (withdrawn, or its session was cleared)."""

    message_id: str
    session_id: str
    rev: int


@frozen(kw_only=True)
class Delta:
    """A piece of an inference's output. A new `attempt` replaces what was shown of the earlier one (B2)."""

    session_id: str
    root_id: str
    inference_id: str
    attempt: int
    offset: int
    """Characters of this kind before it in this attempt."""
    kind: DeltaKind
    text: str


@frozen(kw_only=True)
class ActivityChanged:
    """A session began to do something else."""

    session_id: str
    activity: Activity
    root_id: str | None = None
    detail: str = ""
    """Why, where it is not obvious: what went wrong with the model."""
    for_s: float | None = None
    """How long it will take, seconds, where that is known."""


@frozen(kw_only=True)
class ToolProgress:
    """A call began to run; its result comes as a row."""

    session_id: str
    call_id: str


@frozen(kw_only=True)
class ToolEnded:
    """A call came to an end; its result comes as a row when every call made with it has ended (O3)."""

    session_id: str
    call_id: str
    outcome: Outcome


@frozen(kw_only=True)
class ApprovalChanged:
    """A call waits for a person's yes, or does not any more (T7); what waits is stored."""

    session_id: str
    call_id: str
    state: CallState
    """What it is now: `waiting`; else somebody has decided, or it was withdrawn."""


@frozen(kw_only=True)
class StopEnded:
    """A stop's receipt (I7): what ended, what had already been answered, what lives on."""

    session_id: str
    stop_seq: int
    ended: tuple[str, ...]
    """Ids of messages that ended by it."""
    answered: tuple[str, ...]
    """Ids it covered whose answer had already been handed over (I10)."""
    jobs: tuple[str, ...] = ()
    """Jobs that were ended with it, in words."""
    survivors: tuple[str, ...] = ()
    """Processes, threads and jobs that live on, in words."""


@frozen(kw_only=True)
class ModeChanged:
    """A channel's busy mode is another one now."""

    chatbot_id: str
    channel_id: str
    mode: BusyMode


Event = (
    Changed | Removed | Delta | ActivityChanged | ToolProgress | ToolEnded | ApprovalChanged | StopEnded | ModeChanged
)
