"""A gateway in memory for the tests of adapters: rows, their deliveries, and events on demand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import trio
from attrs import define, evolve, field, frozen

from kesoku_actors.protocol import (
    AGENT,
    LEAVES,
    SYSTEM,
    Changed,
    Channel,
    Event,
    Message,
    Role,
    Status,
    StoredStep,
    Type,
)
from kesoku_actors.store.port import Chunk

CHANNEL = Channel(chatbot_id="terminal", channel_id="here")
SESSION = "session"


def row(seq: int, role: Role, type: Type, status: Status, content: str = "", **changes: Any) -> Message:
    """Return a stored row of the one session."""
    metadata = changes.get("metadata", {})
    senders = {Role.ASSISTANT: AGENT, Role.SYSTEM: SYSTEM, Role.USER: "User", Role.TOOL: metadata.get("tool_name", "")}
    values: dict[str, Any] = {
        "id": f"m{seq}",
        "rev": seq,
        "session_id": SESSION,
        "chatbot_id": CHANNEL.chatbot_id,
        "channel_id": CHANNEL.channel_id,
        "timestamp": float(seq),
        "sender": senders[role],
    }
    return Message(seq=seq, role=role, type=type, status=status, content=content, **(values | changes))


def person(seq: int, status: Status = Status.PENDING_AGENT, content: str = "Hello?", **changes: Any) -> Message:
    """Return a person's message."""
    return row(seq, Role.USER, Type.TEXT, status, content, **changes)


def answer(seq: int, root_id: str, content: str, **changes: Any) -> Message:
    """Return a final answer that has not left yet."""
    return row(seq, Role.ASSISTANT, Type.TEXT, Status.PENDING, content, root_id=root_id, **changes)


def said(seq: int, root_id: str, content: str, type: Type = Type.TEXT, **changes: Any) -> Message:
    """Return a text or thought beside calls."""
    return row(seq, Role.ASSISTANT, type, Status.RESPONDED, content, root_id=root_id, **changes)


def notice(seq: int, root_id: str | None, content: str) -> Message:
    """Return a notice to people."""
    return row(seq, Role.SYSTEM, Type.TEXT, Status.PENDING, content, root_id=root_id)


def call(seq: int, root_id: str, name: str, arguments: dict[str, Any]) -> Message:
    """Return a tool call."""
    metadata = {"tool_name": name, "tool_arguments": arguments, "tool_call_id": f"c{seq}"}
    return row(seq, Role.ASSISTANT, Type.TOOL_CALL, Status.RESPONDED, root_id=root_id, metadata=metadata)


def result(seq: int, root_id: str, of: Message, content: str, outcome: str = "ok", **extra: Any) -> Message:
    """Return a tool call's result."""
    metadata = {"tool_name": of.metadata["tool_name"], "tool_call_id": of.metadata["tool_call_id"], "outcome": outcome}
    return row(
        seq,
        Role.TOOL,
        Type.TOOL_RESULT,
        Status.RESPONDED,
        content,
        root_id=root_id,
        parent_id=of.id,
        metadata=metadata | extra,
    )


class Crash(Exception):
    """The process dies here."""


@frozen
class Told:
    """A session as it is read back."""

    messages: tuple[Message, ...]
    steps: tuple[StoredStep, ...]


@define(eq=False)
class MemoryGateway:
    """Rows and chunks that survive, and a live feed. `probe` is called around each record and may raise `Crash`."""

    rows: dict[str, Message] = field(factory=dict)
    steps: tuple[StoredStep, ...] = ()
    chunks: dict[str, dict[int, Chunk]] = field(factory=dict)
    refusals: dict[str, str] = field(factory=dict)
    probe: Callable[[str], None] = lambda _place: None
    listeners: list[trio.MemorySendChannel[Event]] = field(factory=list)
    rev: int = 1000

    def put(self, *messages: Message) -> None:
        """Commit rows: each is stored and told to who listens."""
        for message in messages:
            self.rev += 1
            self.rows[message.id] = stored = evolve(message, rev=self.rev)
            self.tell(Changed(message=stored))

    def tell(self, event: Event) -> None:
        """Tell who listens."""
        for listener in self.listeners:
            listener.send_nowait(event)

    def statuses(self) -> dict[str, Status]:
        """Return the status of each row that leaves."""
        return {message.id: message.status for message in self.rows.values() if message.status in LEAVES}

    async def listen(self, *, session_id: str, after: int, label: str) -> AsyncGenerator[Event, None]:
        send, receive = trio.open_memory_channel[Event](10_000)
        for stored in sorted(self.rows.values(), key=lambda message: message.rev):
            if stored.rev > after and stored.session_id == session_id:
                send.send_nowait(Changed(message=stored))
        self.listeners.append(send)
        try:
            async for event in receive:
                yield event
        finally:
            self.listeners.remove(send)
            receive.close()

    async def leaving(self, channel: Channel) -> tuple[Message, ...]:
        await trio.lowlevel.checkpoint()
        return tuple(
            row for row in self.rows.values() if row.status is Status.PENDING and row.channel_id == channel.channel_id
        )

    async def plan_delivery(self, message_id: str, chunks: tuple[str, ...]) -> tuple[Chunk, ...]:
        self.probe("before plan")
        fresh = {
            index: Chunk(
                message_id=message_id,
                index=index,
                content=content,
                state="planned",
                attempts=0,
                nonce=f"{message_id}/{index}",
                remote_id=None,
            )
            for index, content in enumerate(chunks)
        }
        stored = self.chunks.setdefault(message_id, fresh)
        self.probe("after plan")
        return tuple(stored.values())

    async def chunk_attempt(self, message_id: str, index: int) -> Chunk:
        self.probe("before attempt")
        chunk = self.chunks[message_id][index]
        self.chunks[message_id][index] = chunk = evolve(chunk, attempts=chunk.attempts + 1)
        self.probe("after attempt")
        return chunk

    async def chunk_sent(self, message_id: str, index: int, remote_id: str | None = None) -> Chunk:
        self.probe("before sent")
        chunk = evolve(self.chunks[message_id][index], state="sent", remote_id=remote_id)
        self.chunks[message_id][index] = chunk
        self.probe("after sent")
        return chunk

    async def delivered(self, message_id: str) -> bool:
        return self._ends(message_id, Status.DELIVERED)

    async def undeliverable(self, message_id: str, detail: str) -> bool:
        self.refusals[message_id] = detail
        return self._ends(message_id, Status.UNDELIVERABLE)

    async def history(self, session_id: str) -> Told:
        rows = sorted(self.rows.values(), key=lambda message: message.seq)
        return Told(tuple(row for row in rows if row.session_id == session_id), self.steps)

    def _ends(self, message_id: str, status: Status) -> bool:
        self.probe("before end")
        before = self.rows[message_id]
        if before.status is Status.PENDING:
            self.put(before.moved(status))
        self.probe("after end")
        return before.status is Status.PENDING
