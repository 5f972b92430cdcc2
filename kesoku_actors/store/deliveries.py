"""Deliveries (C5): the plan of a leaving message is stored before its first send, then each part's way."""

from __future__ import annotations

from typing import Final

from kesoku_actors.errors import NotFound
from kesoku_actors.protocol import Status
from kesoku_actors.store import queries
from kesoku_actors.store.port import Chunk, ChunkAttempt, ChunkSent, MarkDelivered, PlanDelivery
from kesoku_actors.store.rows import CHUNK_COLUMNS, chunk_of
from kesoku_actors.store.transaction import Transaction

NONCE_CHARS: Final = 25
"""Discord takes no longer one."""


def plan(tx: Transaction, command: PlanDelivery) -> tuple[Chunk, ...]:
    """Store the parts of a delivery; the first plan stands. Raises `NotFound`."""
    planned = queries.chunks(tx.connection, command.message_id)
    if planned:
        return planned
    if tx.get(command.message_id) is None:
        raise NotFound(f"there is no message {command.message_id!r} to deliver")
    columns = "(message_id, number, content, state, nonce)"
    for number, content in enumerate(command.chunks):
        values = (command.message_id, number, content, tx.ids()[-NONCE_CHARS:])
        tx.execute(f"INSERT INTO chunks {columns} VALUES (?, ?, ?, 'planned', ?)", values)
    return queries.chunks(tx.connection, command.message_id)


def attempt(tx: Transaction, command: ChunkAttempt) -> Chunk:
    """Count an attempt at a part. Raises `NotFound`."""
    return _update(tx, "attempts = attempts + 1", (), command.message_id, command.index)


def sent(tx: Transaction, command: ChunkSent) -> Chunk:
    """A part was sent; the remote id told first stands. Raises `NotFound`."""
    change = "state = 'sent', remote_id = coalesce(remote_id, ?)"
    return _update(tx, change, (command.remote_id,), command.message_id, command.index)


def mark(tx: Transaction, command: MarkDelivered) -> bool:
    """A leaving message has left, or never will; its parts not sent then failed."""
    message = tx.get(command.message_id)
    if message is None or message.status is not Status.PENDING:
        return False
    status = Status.DELIVERED if command.delivered else Status.UNDELIVERABLE
    detail = {"delivery": command.detail} if command.detail else {}
    tx.save(message.moved(status, metadata={**message.metadata, **detail}))
    if not command.delivered:
        tx.execute("UPDATE chunks SET state = 'failed' WHERE message_id = ? AND state = 'planned'", (message.id,))
    return True


def _update(tx: Transaction, change: str, values: tuple[str | None, ...], message_id: str, index: int) -> Chunk:
    sql = f"UPDATE chunks SET {change} WHERE message_id = ? AND number = ? RETURNING {CHUNK_COLUMNS}"
    row = tx.first(sql, (*values, message_id, index))
    if row is None:
        raise NotFound(f"no part {index} of the message {message_id!r} was planned")
    return chunk_of(row)
