"""What an export holds of a session: its rows as values, the way an import takes them. Pure.

Numbers (`seq`, `place`, the spots of summaries) are those of the store that was read; another store gives its own, in
the same order. What belongs to a process, a machine or a surface stays behind: claims, process ids, parts of
deliveries, stops, the ids a channel has seen, what a person allowed for a session.

Invariants of a `SessionArchive`, checked when one is made, each with a `Flaw` that names the row:

* ids and numbers are unique; a message that is part of the history has a root, and its root is one of the session;
* a result's parent is a call of its turn, and no call has two (O4);
* steps, turns, calls, jobs and summaries speak of messages that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from attrs import field

from kesoku_actors.clock import ID_LENGTH
from kesoku_actors.errors import UsageError
from kesoku_actors.protocol import (
    CallState,
    InvalidMessage,
    JobEnding,
    JobState,
    Message,
    Outcome,
    Role,
    Status,
    Step,
    Type,
)
from kesoku_actors.values import frozen

HIGHEST: Final = 1 << 53
"""No number is larger: JSON readers would round it."""
_LATEST_S: Final = 1e11
"""UTC seconds; thousands of years from now."""


class Flaw(UsageError):
    """A row that no store can have written; `row` is where it stands: a list's name and its index."""

    def __init__(self, row: tuple[str, int] | None, text: str) -> None:
        super().__init__(text)
        self.row = row


@frozen(kw_only=True)
class ArchivedMessage:
    """A message without the names of its session."""

    id: str
    seq: int
    place: int | None
    root_id: str | None
    parent_id: str | None
    external_id: str | None
    sender: str
    role: Role
    type: Type
    status: Status
    content: str
    timestamp: float
    metadata: Mapping[str, Any]


@frozen(kw_only=True)
class ArchivedTurn:
    """A turn that was begun."""

    root_id: str
    began: float
    attempts: int
    steps: int
    spent_s: float


@frozen(kw_only=True)
class ArchivedStep:
    """An inference, and the rows it said."""

    root_id: str
    index: int
    step: Step
    message_ids: tuple[str, ...]


@frozen(kw_only=True)
class ArchivedCall:
    """A call as it stands; `content` and `metadata` only while its outcome is staged and not published (O3)."""

    call_id: str
    state: CallState
    outcome: Outcome | None
    content: str | None
    duration_s: float | None
    metadata: Mapping[str, Any] | None
    is_published: bool
    expires: float | None
    decided_by: str | None


@frozen(kw_only=True)
class ArchivedJob:
    """A call that went on at its deadline (I8)."""

    call_id: str
    number: int
    title: str
    output_file: str | None
    state: JobState
    began: float
    ended: float | None
    ending: JobEnding | None
    detail: str
    notice: str | None
    """While its end is not told yet."""


@frozen(kw_only=True)
class ArchivedSummary:
    """A summary of older turns; it is as its tree says."""

    id: str
    level: int
    first: tuple[int, ...]
    """Where the first message stands that it stands for: the seq of its root, then its place."""
    last: tuple[int, ...]
    content: str
    parent_id: str | None
    provider: str
    model: str
    created: float
    tokens_before: int
    tokens_after: int


@frozen(kw_only=True)
class SessionHead:
    """What is known of a session beside its rows."""

    id: str
    chatbot_id: str
    channel_id: str
    created: float
    last_activity: float
    turns: int
    title: str


@frozen(kw_only=True)
class SessionArchive:
    """A session, whole."""

    head: SessionHead
    messages: tuple[ArchivedMessage, ...]
    """By `seq`."""
    turns: tuple[ArchivedTurn, ...] = ()
    steps: tuple[ArchivedStep, ...] = ()
    calls: tuple[ArchivedCall, ...] = ()
    jobs: tuple[ArchivedJob, ...] = ()
    summaries: tuple[ArchivedSummary, ...] = ()
    _by_id: dict[str, ArchivedMessage] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {message.id: message for message in self.messages})
        for flaw in self._flaws():
            raise flaw

    def root_of(self, call_id: str) -> str:
        """Return the root of the turn that a call belongs to."""
        root_id = self._by_id[call_id].root_id
        assert root_id is not None, "a call is checked to be part of a turn"
        return root_id

    def numbers(self) -> list[int]:
        """Return every number it uses, in order."""
        found = {message.seq for message in self.messages}
        found |= {message.place for message in self.messages if message.place is not None}
        return sorted(found.union(*(each.first + each.last for each in self.summaries)))

    def _flaws(self) -> Iterator[Flaw]:
        yield from _flaws_of_head(self.head)
        yield from self._flaws_of_messages()
        yield from self._flaws_of_results()
        yield from self._flaws_of_turns()
        yield from self._flaws_of_jobs()
        yield from self._flaws_of_summaries()

    def _flaws_of_messages(self) -> Iterator[Flaw]:
        ids: set[str] = set()
        external: set[str] = set()
        numbers: set[int] = set()
        last_seq = 0
        for index, message in enumerate(self.messages):
            at = ("messages", index)
            if not _is_id(message.id):
                yield Flaw(at, f"id: {message.id!r:.60} is not an id")
            if message.id in ids:
                yield Flaw(at, f"id: {message.id} stands here twice")
            if message.external_id is not None and message.external_id in external:
                yield Flaw(at, f"external_id: {message.external_id!r:.60} stands here twice (M5)")
            if message.seq <= last_seq:
                yield Flaw(at, f"seq: {message.seq} is not higher than the one before, {last_seq}")
            mine = {message.seq} if message.place is None else {message.seq, message.place}
            if mine & numbers or not all(0 < number < HIGHEST for number in mine):
                yield Flaw(at, f"place: {sorted(mine)} cannot be numbers of this message alone (M1)")
            if not 0 <= message.timestamp < _LATEST_S:
                yield Flaw(at, f"timestamp: {message.timestamp} is not a time in UTC seconds")
            yield from self._flaws_of_place(at, message)
            yield from _flaws_of_facts(at, message)
            yield from _flaws_of_shape(at, self.head, message)
            ids.add(message.id)
            external |= set() if message.external_id is None else {message.external_id}
            numbers |= mine
            last_seq = message.seq

    def _flaws_of_place(self, at: tuple[str, int], message: ArchivedMessage) -> Iterator[Flaw]:
        if (message.root_id is None) != (message.place is None):
            yield Flaw(at, "place: a message has both a root and a place, or neither (O1)")
        if message.root_id is None:
            return
        root = self._by_id.get(message.root_id)
        if root is None or root.root_id != root.id or root.place != root.seq:
            yield Flaw(at, f"root_id: {message.root_id!r:.60} is not the first message of a turn here")
        elif message.place is not None and message.place < root.seq:
            yield Flaw(at, "place: it stands before the turn it belongs to")

    def _flaws_of_results(self) -> Iterator[Flaw]:
        answered: set[str] = set()
        for index, result in enumerate(self.messages):
            if result.type is not Type.TOOL_RESULT:
                continue
            call = self._by_id.get(result.parent_id or "")
            if call is None or call.type is not Type.TOOL_CALL or call.root_id != result.root_id:
                yield Flaw(("messages", index), f"parent_id: {result.parent_id!r:.60} is not a call of its turn (M4)")
            elif call.id in answered:
                yield Flaw(("messages", index), f"parent_id: the call {call.id} has a result already (O4)")
            answered.add(result.parent_id or "")
        seen: set[str] = set()
        for index, call_row in enumerate(self.calls):
            message = self._by_id.get(call_row.call_id)
            if message is None or message.type is not Type.TOOL_CALL or message.root_id is None or message.id in seen:
                yield Flaw(("calls", index), f"call_id: {call_row.call_id!r:.60} is no call here, or stands here twice")
            if call_row.is_published != (call_row.call_id in answered):
                yield Flaw(("calls", index), "is_published: it says otherwise than the messages (O3)")
            if call_row.is_published and call_row.state is not CallState.SETTLED:
                yield Flaw(("calls", index), "state: a call with a result is settled (C3)")
            if call_row.state is CallState.SETTLED and call_row.outcome is None:
                yield Flaw(("calls", index), "outcome: a settled call has one (C3)")
            seen.add(call_row.call_id)
        for index, row in enumerate(self.messages):
            if row.type is Type.TOOL_CALL and row.id not in seen:
                yield Flaw(("messages", index), f"id: nothing says how the call {row.id} stands (C3)")

    def _flaws_of_turns(self) -> Iterator[Flaw]:
        keyed: tuple[tuple[str, list[tuple[str, int]]], ...] = (
            ("turns", [(turn.root_id, 0) for turn in self.turns]),
            ("steps", [(step.root_id, step.index) for step in self.steps]),
        )
        for name, keys in keyed:
            seen: set[tuple[str, int]] = set()
            for index, key in enumerate(keys):
                root = self._by_id.get(key[0])
                if root is None or root.root_id != root.id:
                    yield Flaw((name, index), f"root_id: {key[0]!r:.60} is not the first message of a turn here")
                if key in seen:
                    yield Flaw((name, index), f"root_id: {key[0]} stands here twice")
                seen.add(key)
        for index, step in enumerate(self.steps):
            if not 0 < step.index < HIGHEST:
                yield Flaw(("steps", index), f"index: {step.index} is none")
            strangers = [each for each in step.message_ids if each not in self._by_id]
            if strangers:
                yield Flaw(("steps", index), f"message_ids: {strangers[0]!r:.60} is not a message here")
        for index, turn in enumerate(self.turns):
            if not 0 <= turn.attempts < HIGHEST or not 0 <= turn.steps < HIGHEST:
                yield Flaw(("turns", index), "attempts: attempts and steps are not negative")

    def _flaws_of_jobs(self) -> Iterator[Flaw]:
        calls = {call.call_id for call in self.calls}
        seen: set[object] = set()
        for index, job in enumerate(self.jobs):
            if job.call_id not in calls or {job.call_id, job.number} & seen or not 0 < job.number < HIGHEST:
                yield Flaw(
                    ("jobs", index), f"call_id: {job.call_id!r:.60} is no call here, or its job stands here twice"
                )
            if (job.state is JobState.RUNNING) != (job.ending is None):
                yield Flaw(("jobs", index), "ending: a job that runs has none, any other has one (I8)")
            if (job.state is JobState.OVER) != (job.notice is not None):
                yield Flaw(("jobs", index), "notice: it stands here while it is not told, and only then (I8)")
            seen |= {job.call_id, job.number}

    def _flaws_of_summaries(self) -> Iterator[Flaw]:
        levels = {each.id: each.level for each in self.summaries}
        if len(levels) < len(self.summaries):
            yield Flaw(("summaries", len(self.summaries) - 1), "id: two summaries have one id")
        for index, summary in enumerate(self.summaries):
            spots = summary.first + summary.last
            if len(summary.first) != 2 or len(summary.last) != 2 or not all(0 < each < HIGHEST for each in spots):
                yield Flaw(("summaries", index), "first: a spot is the seq of a root and a place")
            # Up a tree the levels rise, so that it has no circle.
            if summary.parent_id is not None and levels.get(summary.parent_id, -1) <= summary.level:
                yield Flaw(("summaries", index), f"parent_id: {summary.parent_id!r:.60} is not a summary above it here")
            if not _is_id(summary.id) or not summary.content.strip():
                yield Flaw(("summaries", index), "id: a summary has an id and a content")


def _is_id(text: str) -> bool:
    return 0 < len(text) <= 64 and text.isascii() and all(sign.isalnum() or sign in "-_." for sign in text)


def _flaws_of_head(head: SessionHead) -> Iterator[Flaw]:
    if len(head.id) != ID_LENGTH or not (head.id.isascii() and head.id.isalnum()):
        yield Flaw(None, f"id: {head.id!r:.60} is not a session's id (M6)")
    if not head.chatbot_id or not head.channel_id:
        yield Flaw(None, "chatbot_id: a session has a chatbot and a channel")
    if not (0 <= head.created < _LATEST_S and 0 <= head.last_activity < _LATEST_S and 0 <= head.turns < HIGHEST):
        yield Flaw(None, "created: times are UTC seconds, and turns are not negative")


def _flaws_of_facts(at: tuple[str, int], message: ArchivedMessage) -> Iterator[Flaw]:
    """What a call or a result says of itself, and a store always writes as this kind of value (M4)."""
    for name in _FACTS.get(message.type, ()):
        is_kind, kind = _KINDS[name]
        if name in message.metadata and not is_kind(message.metadata[name]):
            yield Flaw(at, f"metadata: {name} of a {message.type} is {kind} (M4)")


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LATEST_S


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_KINDS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "tool_name": (_is_text, "a text"),
    "tool_call_id": (_is_text, "a text"),
    "tool_arguments": (lambda value: isinstance(value, Mapping), "an object"),
    "outcome": (_is_text, "a text"),
    "duration_s": (_is_duration, "seconds"),
}
_FACTS: Final[Mapping[Type, tuple[str, ...]]] = {
    Type.TOOL_CALL: ("tool_name", "tool_call_id", "tool_arguments"),
    Type.TOOL_RESULT: ("tool_name", "tool_call_id", "outcome", "duration_s"),
}


def _flaws_of_shape(at: tuple[str, int], head: SessionHead, message: ArchivedMessage) -> Iterator[Flaw]:
    try:
        as_message(head, message)
    except InvalidMessage as error:
        yield Flaw(at, str(error))


def as_message(head: SessionHead, row: ArchivedMessage) -> Message:
    """Return the message that a row stands for, unchanged since it was inserted. Raises `InvalidMessage`."""
    return Message(
        id=row.id,
        seq=row.seq,
        rev=row.seq,
        session_id=head.id,
        chatbot_id=head.chatbot_id,
        channel_id=head.channel_id,
        external_id=row.external_id,
        sender=row.sender,
        role=row.role,
        type=row.type,
        status=row.status,
        content=row.content,
        parent_id=row.parent_id,
        root_id=row.root_id,
        place=row.place,
        timestamp=row.timestamp,
        metadata=row.metadata,
    )
