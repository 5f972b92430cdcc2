"""Attachments of stored messages: each is settled once, and what the model has read of it is never changed (M8).

While one is expected nobody has read its message, as a prompt waits for it or settles it as late: only then may its
settlement change the content. One that arrives after that leaves content and state alone; its path is kept beside
them, and a notice that does not wake (I6) tells the model.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from kesoku_actors.errors import NotFound
from kesoku_actors.protocol import (
    ATTACHMENTS,
    SYSTEM,
    Attachment,
    AttachmentState,
    Message,
    Role,
    SessionState,
    Status,
    Type,
    attachments_in,
)
from kesoku_actors.store.port import SettleAttachment
from kesoku_actors.store.transaction import Session, Transaction


def settle(tx: Transaction, command: SettleAttachment) -> Message | None:
    """Settle one attachment, unless it is settled; raises `NotFound` for an index that the message does not have."""
    message = tx.get(command.message_id)
    if message is None:
        return None
    attachments = attachments_in(message.metadata)
    if not 0 <= command.index < len(attachments):
        raise NotFound(f"message {message.id} has no attachment {command.index}, it has {len(attachments)}")
    before = attachments[command.index]
    match before.state:
        case AttachmentState.EXPECTED:
            return tx.save(_with(message, command.index, _settled(before, command)))
        case AttachmentState.LATE if before.path is None and command.path is not None:
            arrived = _settled(before, command)
            _tell(tx, tx.session(message.session_id), arrived)
            return tx.save(_keeping(message, command.index, evolve(arrived, state=AttachmentState.LATE)))
        case _:
            return message


def settle_as_late(tx: Transaction, message: Message) -> None:
    """Give up waiting for what is still expected; the message is left alone when nothing is."""
    now = message
    for index, attachment in enumerate(attachments_in(message.metadata)):
        if attachment.is_expected:
            now = _with(now, index, evolve(attachment, state=AttachmentState.LATE))
    if now is not message:
        tx.save(now)


def content_with_references(content: str, attachments: Sequence[Attachment]) -> str:
    """Return the content with one line for each attachment that is settled."""
    return "\n".join([content, *(attachment.reference for attachment in attachments if attachment.reference)])


def _settled(attachment: Attachment, command: SettleAttachment) -> Attachment:
    if command.path is not None:
        found = command.mime_type or attachment.mime_type
        return evolve(attachment, state=AttachmentState.SAVED, path=command.path, mime_type=found)
    return evolve(attachment, state=AttachmentState.FAILED, reason=command.reason or "of an unknown reason")


def _with(message: Message, index: int, attachment: Attachment) -> Message:
    """Return the message with an attachment settled, and named in the content."""
    kept = _keeping(message, index, attachment)
    return evolve(kept, content=content_with_references(message.content, [attachment]))


def _keeping(message: Message, index: int, attachment: Attachment) -> Message:
    items = list(message.metadata[ATTACHMENTS])
    items[index] = attachment.as_data()
    return evolve(message, metadata={**message.metadata, ATTACHMENTS: items})


def _tell(tx: Transaction, session: Session, arrived: Attachment) -> None:
    """Tell the model of a file that came late; a session that is being cleared hears nothing more (M7)."""
    if session.state is not SessionState.OPEN:
        return
    tx.insert(
        session,
        role=Role.SYSTEM,
        type=Type.TEXT,
        status=Status.PENDING_AGENT,
        sender=SYSTEM,
        content=f"A file that was missing before has arrived: {arrived.reference}",
        metadata={"wakes": False, ATTACHMENTS: [arrived.as_data()]},
    )
