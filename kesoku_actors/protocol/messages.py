"""The message: the one value that every part of the system exchanges. Pure.

Invariants, enforced when a value is made (M1 to M4):

* role and type fit together, and each pair has one family of statuses (`FAMILIES`);
* the sender is the person's name for user input, `Kesoku` for what the model said, the tool's name for a result
  and `System` for a notice;
* a tool call carries `tool_name`, `tool_arguments`, `tool_call_id`; a result carries `tool_name`, `tool_call_id`
  and an `outcome`, and its parent is its call;
* a status moves only along `MOVES` (M2);
* what its metadata says of attachments has the shape of M8 (`attachments`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from attrs import Attribute, evolve, field

from kesoku_actors.protocol.attachments import ATTACHMENTS, attachments_in
from kesoku_actors.protocol.invalid import InvalidMessage
from kesoku_actors.values import frozen

AGENT: Final = "Kesoku"
SYSTEM: Final = "System"
ANONYMOUS: Final = "User"


class Role(StrEnum):
    """Who speaks."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


class Type(StrEnum):
    """What kind of thing was said."""

    TEXT = "text"
    THOUGHT = "thought"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"


class Status(StrEnum):
    """Where a message stands in its life (M2)."""

    PENDING_AGENT = "pending_agent"
    PROCESSING = "processing"
    PROCESSED = "processed"
    INTERRUPTED = "interrupted"
    ERROR = "error"
    PENDING = "pending"
    DELIVERED = "delivered"
    UNDELIVERABLE = "undeliverable"
    RESPONDED = "responded"


class Outcome(StrEnum):
    """How a tool call ended (M4)."""

    OK = "ok"
    ERROR = "error"
    INTERRUPTED = "interrupted"
    UNKNOWN = "unknown"
    BACKGROUND = "background"


class Reason(StrEnum):
    """Why a message was taken or ended, stored in the commit that did it (I5)."""

    FRESH = "fresh"
    INTERRUPTED = "interrupted"
    SUPERSEDED = "superseded"
    QUEUED = "queued"
    COLLECTED = "collected"
    STEERED = "steered"
    RESUMED = "resumed"
    STOPPED = "stopped"
    FORCED = "forced"
    DELETED = "deleted"
    CLEARED = "cleared"
    BUDGET = "budget"
    ATTEMPTS = "attempts"
    PROVIDER = "provider"
    STALE = "stale"
    IMPORTED = "imported"


ASKS: Final = frozenset({Status.PENDING_AGENT, Status.PROCESSING, Status.PROCESSED, Status.INTERRUPTED, Status.ERROR})
LEAVES: Final = frozenset({Status.PENDING, Status.DELIVERED, Status.UNDELIVERABLE})
STAYS: Final = frozenset({Status.RESPONDED})
ENDED: Final = frozenset({Status.PROCESSED, Status.INTERRUPTED, Status.ERROR})

FAMILIES: Final[Mapping[tuple[Role, Type], frozenset[Status]]] = {
    (Role.USER, Type.TEXT): ASKS,
    (Role.SYSTEM, Type.TEXT): ASKS | LEAVES,  # a notice for the model asks for work, one for people leaves
    (Role.ASSISTANT, Type.TEXT): LEAVES | STAYS,  # a final answer leaves; a text beside calls stays
    (Role.ASSISTANT, Type.THOUGHT): STAYS,
    (Role.ASSISTANT, Type.TOOL_CALL): STAYS,
    (Role.TOOL, Type.TOOL_RESULT): STAYS,
}

MOVES: Final = frozenset(
    {
        (Status.PENDING_AGENT, Status.PROCESSING),
        (Status.PENDING_AGENT, Status.INTERRUPTED),
        (Status.PENDING_AGENT, Status.ERROR),
        (Status.PROCESSING, Status.PROCESSED),
        (Status.PROCESSING, Status.INTERRUPTED),
        (Status.PROCESSING, Status.ERROR),
        (Status.PROCESSING, Status.PENDING_AGENT),  # only when a worker ends (C2) or shuts down (C7)
        (Status.PENDING, Status.DELIVERED),
        (Status.PENDING, Status.UNDELIVERABLE),
    }
)

_SENDERS: Final[Mapping[Role, str]] = {Role.ASSISTANT: AGENT, Role.SYSTEM: SYSTEM}
_CALL_KEYS: Final = ("tool_name", "tool_arguments", "tool_call_id")
_OUTCOMES: Final = frozenset(Outcome)
_RESULT_KEYS: Final = ("tool_name", "tool_call_id", "outcome")
_KEYS: Final[Mapping[Type, tuple[str, ...]]] = {Type.TOOL_CALL: _CALL_KEYS, Type.TOOL_RESULT: _RESULT_KEYS}


def check_shape(
    role: Role, type: Type, status: Status, sender: str, parent_id: str | None, metadata: Mapping[str, Any]
) -> None:
    """Raise `InvalidMessage` unless role, type, status, sender and metadata fit together (M2 to M4, M8)."""
    family = FAMILIES.get((role, type))
    if family is None:
        raise InvalidMessage(f"M2: a message of role {role} cannot have the type {type}")
    if status not in family:
        raise InvalidMessage(f"M2: a {role} {type} cannot have the status {status}; one of {sorted(family)} can")
    if role is Role.USER and not sender.strip():
        raise InvalidMessage("M3: user input needs a sender; the anonymous one is 'User'")
    wanted = metadata.get("tool_name") if role is Role.TOOL else _SENDERS.get(role, sender)
    if sender != wanted:
        raise InvalidMessage(f"M3: a {role} message is sent by {wanted!r}, not {sender!r}")
    if keys := _KEYS.get(type):
        missing = [key for key in keys if key not in metadata]
        if missing:
            raise InvalidMessage(f"M4: a {type} needs metadata {', '.join(missing)}")
    if type is Type.TOOL_RESULT:
        if parent_id is None:
            raise InvalidMessage("M4: a tool result's parent is its call")
        if metadata["outcome"] not in _OUTCOMES:
            raise InvalidMessage(f"M4: unknown outcome {metadata['outcome']!r}")
    if ATTACHMENTS in metadata:
        attachments_in(metadata)


def _metadata_is_an_object(_message: object, _attribute: Attribute[Any], value: object) -> None:
    if type(value) is dict and not value:  # as nearly always
        return
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidMessage("M1: metadata is a JSON object")


@frozen(kw_only=True)
class Message:
    """One stored row of a session (M1). Values are never changed; `moved` makes the next one."""

    id: str
    """Time-ordered and unique."""
    seq: int
    """The row's number, from the store's one counter; never reused."""
    rev: int
    """The number of the row's last change, from the same counter."""
    session_id: str
    chatbot_id: str
    channel_id: str
    external_id: str | None = None
    """The platform's id of it, or none."""
    sender: str
    role: Role
    type: Type
    status: Status
    content: str
    parent_id: str | None = None
    root_id: str | None = None
    """The turn it belongs to: the id of the turn's first message; none while it is not part of the history."""
    place: int | None = None
    """Where it stands in its turn (O1)."""
    timestamp: float
    """UTC seconds; never before the session's last message."""
    metadata: Mapping[str, Any] = field(factory=dict, validator=_metadata_is_an_object)

    def __attrs_post_init__(self) -> None:
        check_shape(self.role, self.type, self.status, self.sender, self.parent_id, self.metadata)

    @property
    def is_person(self) -> bool:
        """Whether a person said it; only people interrupt (I6)."""
        return self.role is Role.USER

    @property
    def wakes(self) -> bool:
        """Whether it may start a turn by itself (I6): people always, a notice when it says so."""
        return self.is_person or bool(self.metadata.get("wakes", False))

    @property
    def waits(self) -> bool:
        """Whether it asks for work and no turn has taken it yet."""
        return self.status is Status.PENDING_AGENT and self.root_id is None

    @property
    def has_ended(self) -> bool:
        """Whether it asked for work and the work is over, one way or another (M2)."""
        return self.status in ENDED

    def moved(self, status: Status, **changes: Any) -> Message:
        """Return the message in its next status. Raises `InvalidMessage` for a move that M2 does not know."""
        self.check_move(status)
        return evolve(self, status=status, **changes)

    def check_move(self, status: Status) -> None:
        """Raise `InvalidMessage` for a move that M2 does not know; one that it knows stays within its family."""
        if (self.status, status) not in MOVES:
            raise InvalidMessage(f"M2: {self.id} cannot go from {self.status} to {status}")


@frozen(kw_only=True)
class Inbound:
    """What an adapter posts: a person's message, or a notice for the model, before the store has numbered it."""

    chatbot_id: str
    channel_id: str
    content: str
    sender: str = ANONYMOUS
    role: Role = Role.USER
    external_id: str | None = None
    metadata: Mapping[str, Any] = field(factory=dict, validator=_metadata_is_an_object)
    session_id: str | None = None
    """Only for a known open session (`chat -r`); the channel's open session otherwise (M6)."""

    def __attrs_post_init__(self) -> None:
        check_shape(self.role, Type.TEXT, Status.PENDING_AGENT, self.sender, None, self.metadata)


@frozen(kw_only=True)
class Draft:
    """A row that a commit inserts; the store adds id, seq, rev, place, timestamp and the session's names.

    The root (and, but for results, the parent) is the turn of the commit (M4).
    """

    role: Role
    type: Type
    status: Status
    sender: str
    content: str
    metadata: Mapping[str, Any] = field(factory=dict, validator=_metadata_is_an_object)

    def __attrs_post_init__(self) -> None:
        check_shape(self.role, self.type, self.status, self.sender, "", self.metadata)
