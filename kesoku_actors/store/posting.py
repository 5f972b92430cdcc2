"""What comes from outside: people's messages, notices, edits and withdrawals.

A message is accepted by the commit that stores it, and everything about it is decided there: which session it belongs
to (M6, M7), whether it was posted before (M5), whether too many wait already (B4).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from attrs import evolve

from kesoku_actors.protocol import (
    SYSTEM,
    Channel,
    Inbound,
    Message,
    Role,
    SessionState,
    Status,
    Type,
    attachments_in,
)
from kesoku_actors.protocol.titles import first_words
from kesoku_actors.store.attachments import content_with_references
from kesoku_actors.store.port import (
    EditMessage,
    Gone,
    Post,
    Posted,
    PostNotice,
    PostRefused,
    PostReply,
    WithdrawMessage,
)
from kesoku_actors.store.sessions import open_session
from kesoku_actors.store.stops import settle_stops
from kesoku_actors.store.transaction import Session, Transaction

REFUSAL_EVERY_S: Final = 60.0
"""People are told once in this time that too many messages wait (B4)."""
NO_METADATA: Final[Mapping[str, Any]] = MappingProxyType({})

# A post without an external id gives its message its own id, so that the message and its tombstone remember the post.
_KNOWN = (
    "SELECT EXISTS (SELECT 1 FROM messages WHERE id = ?1), EXISTS (SELECT 1 FROM refused WHERE id = ?1),"
    " EXISTS (SELECT 1 FROM removed WHERE message_id = ?1)"
)
_REFUSE = "INSERT INTO refused VALUES (?, (SELECT value FROM meta WHERE name = 'epoch'))"


def post(tx: Transaction, command: Post) -> PostReply:
    """Store an inbound message once, or say what became of it when it came before."""
    inbound = command.inbound
    before = _posted_before(tx, command)
    if before is not None:
        return before
    session = _session_for(tx, inbound)
    if inbound.role is Role.USER and _is_full(tx, session):
        if inbound.external_id is not None:
            _have_seen(tx, inbound, None)
        else:
            tx.execute(_REFUSE, (command.id,))
        _tell_refusal(tx, session)
        return PostRefused(max_waiting=tx.rules.max_waiting)
    message = tx.insert(
        session,
        role=inbound.role,
        type=Type.TEXT,
        status=Status.PENDING_AGENT,
        sender=inbound.sender,
        content=content_with_references(inbound.content, attachments_in(inbound.metadata)),
        metadata=inbound.metadata,
        external_id=inbound.external_id,
        id=command.id if inbound.external_id is None else None,
    )
    if inbound.external_id is not None:
        _have_seen(tx, inbound, message.id)
    if inbound.role is Role.USER and not session.title:
        session.title = first_words(inbound.content)
    return Posted(message=message, is_new=True)


def post_notice(tx: Transaction, command: PostNotice) -> Message:
    """Store a notice to people."""
    session = tx.session(command.session_id)
    root = tx.get(command.root_id) if command.root_id is not None else None
    return notify(tx, session, command.content, root, command.metadata)


def notify(
    tx: Transaction,
    session: Session,
    content: str,
    root: Message | None = None,
    metadata: Mapping[str, Any] = NO_METADATA,
) -> Message:
    """Add a notice to people, in the turn of `root` if there is one."""
    return tx.insert(
        session,
        role=Role.SYSTEM,
        type=Type.TEXT,
        status=Status.PENDING,
        sender=SYSTEM,
        content=content,
        metadata=metadata,
        root=root,
        parent_id=root.id if root else None,
    )


def edit(tx: Transaction, command: EditMessage) -> Message | None:
    """Replace the content of a message nobody has taken; its attachments stay named in it (M8)."""
    message = tx.get(command.message_id)
    if message is None or not _is_untaken(message):
        return None
    content = content_with_references(command.content, attachments_in(message.metadata))
    return tx.save(evolve(message, content=content))


def withdraw(tx: Transaction, command: WithdrawMessage) -> bool:
    """Delete a message nobody has taken (M8)."""
    message = tx.get(command.message_id)
    if message is None or not _is_untaken(message):
        return False
    session = tx.session(message.session_id)
    tx.remove(session, [message.id])
    settle_stops(tx, session)
    return True


def _is_untaken(message: Message) -> bool:
    return message.status is Status.PENDING_AGENT and message.root_id is None


def _posted_before(tx: Transaction, command: Post) -> Posted | Gone | PostRefused | None:
    inbound = command.inbound
    if inbound.external_id is None:
        ((is_stored, is_refused, is_gone),) = tx.select(_KNOWN, (command.id,))
        if is_refused:
            return PostRefused(max_waiting=tx.rules.max_waiting)
        if not is_stored:
            return Gone(external_id=command.id) if is_gone else None
        message_id: str | None = command.id
    else:
        key = (inbound.chatbot_id, inbound.external_id)
        row = tx.first("SELECT message_id FROM seen WHERE chatbot_id = ? AND external_id = ?", key)
        if row is None:
            return None
        message_id = row[0]
    message = None if message_id is None else tx.get(message_id)
    return Posted(message=message, is_new=False) if message else Gone(external_id=inbound.external_id or command.id)


def _is_full(tx: Transaction, session: Session) -> bool:
    """Return whether as many messages of people wait as may (B4). Mostly there are not so many of any kind."""
    waiting, most = tx.waiting(session), tx.rules.max_waiting
    return len(waiting) >= most and sum(each.is_person for each in waiting) >= most


def _session_for(tx: Transaction, inbound: Inbound) -> Session:
    if inbound.session_id is not None:
        named = tx.session(inbound.session_id)
        if named.state is SessionState.OPEN:
            return named
    return open_session(tx, Channel(chatbot_id=inbound.chatbot_id, channel_id=inbound.channel_id))


def _have_seen(tx: Transaction, inbound: Inbound, message_id: str | None) -> None:
    tx.execute("INSERT INTO seen VALUES (?, ?, ?)", (inbound.chatbot_id, inbound.external_id, message_id))
    tx.execute(
        "INSERT INTO channels (chatbot_id, channel_id, last_seen) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET last_seen = excluded.last_seen",
        (inbound.chatbot_id, inbound.channel_id, inbound.external_id),
    )


def _tell_refusal(tx: Transaction, session: Session) -> None:
    channel, now = session.channel, tx.clock.wall()
    told = tx.one(
        "INSERT INTO channels (chatbot_id, channel_id, refusal_told) VALUES (?, ?, ?) ON CONFLICT DO UPDATE"
        " SET refusal_told = excluded.refusal_told"
        " WHERE refusal_told IS NULL OR abs(excluded.refusal_told - refusal_told) >= ? RETURNING 1",
        (channel.chatbot_id, channel.channel_id, now, REFUSAL_EVERY_S),
    )
    if told:
        waiting = f"{tx.rules.max_waiting} messages wait here already"
        notify(tx, session, f"{waiting}, so the last one was not taken. Please send it again when they are answered.")
