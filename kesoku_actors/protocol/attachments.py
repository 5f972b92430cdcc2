"""Attachments: the files that come with a message, and what the model reads of them. Pure.

A message keeps them as plain data in `metadata.attachments`, in the order they came; an attachment is named by its
message and its index there. Invariants (M8): it begins as `expected` and is settled once, as `saved`, `failed` or
`late`; what was settled as late may still arrive, once, and stays late where the model has read that it was missing.

The data of one that is saved is `{"path", "mime_type", "filename"}` and nothing else; any other has a `state` too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any, Final

from attrs import Attribute, field
from attrs.validators import optional

from kesoku_actors.protocol.invalid import InvalidMessage
from kesoku_actors.values import frozen

ATTACHMENTS: Final = "attachments"
"""The key of a message's metadata."""
UNKNOWN_TYPE: Final = "application/octet-stream"

_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
_KEYS: Final = frozenset({"filename", "mime_type", "state", "path", "reason"})
_SHOWN_CHARS: Final = 120


class AttachmentState(StrEnum):
    """Where an attachment stands in its life (M8)."""

    EXPECTED = "expected"
    SAVED = "saved"
    FAILED = "failed"
    LATE = "late"


def _is_text(_attachment: object, attribute: Attribute[Any], value: Any) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InvalidMessage(f"M8: an attachment's {attribute.name} is a text, not {value!r:.40}")


def _is_type(_attachment: object, _attribute: Attribute[Any], value: Any) -> None:
    if not isinstance(value, str) or not _TYPE.fullmatch(value):
        raise InvalidMessage(f"M8: {value!r:.80} is no MIME type such as image/png")


@frozen(kw_only=True)
class Attachment:
    """One attachment of a message. Raises `InvalidMessage` for a shape that M8 does not know."""

    filename: str = field(validator=_is_text)
    """As the sender named it: foreign text, never a path."""
    mime_type: str = field(validator=_is_type)
    """As declared while it is expected, as found in its content once it is saved."""
    state: AttachmentState = AttachmentState.SAVED
    path: str | None = None
    """Relative to the workspace, with slashes; only of what was saved or came late."""
    reason: str | None = field(default=None, validator=optional(_is_text))
    """Why it could not be saved, for people and the model."""

    def __attrs_post_init__(self) -> None:
        with_path = {AttachmentState.SAVED: (True,), AttachmentState.LATE: (True, False)}.get(self.state, (False,))
        if (self.path is not None) not in with_path:
            raise InvalidMessage(f"M8: an attachment that is {self.state} has {'no' if self.path else 'a'} path")
        if self.path is not None and not _is_beneath(self.path):
            raise InvalidMessage(f"M8: {self.path!r:.80} is not a path inside a workspace")
        if (self.state is AttachmentState.FAILED) != (self.reason is not None):
            raise InvalidMessage("M8: an attachment has a reason when it failed and only then")

    @property
    def is_expected(self) -> bool:
        """Whether it is still on its way."""
        return self.state is AttachmentState.EXPECTED

    @property
    def reference(self) -> str:
        """The line that tells the model of it; empty while it is expected."""
        name = _shown(self.filename)
        match self.state:
            case AttachmentState.EXPECTED:
                return ""
            case AttachmentState.SAVED:
                return f"[attachment {name} ({self.mime_type}): {self.path}]"
            case AttachmentState.FAILED:
                return f"[attachment {name}: not saved, {_shown(self.reason or '')}]"
            case AttachmentState.LATE:
                return f"[attachment {name}: did not arrive in time]"

    def as_data(self) -> dict[str, str]:
        """Return what is kept in the metadata."""
        state = {} if self.state is AttachmentState.SAVED else {"state": str(self.state)}
        path = {} if self.path is None else {"path": self.path}
        reason = {} if self.reason is None else {"reason": self.reason}
        return {"filename": self.filename, "mime_type": self.mime_type, **state, **path, **reason}


def expected(filename: str, declared_type: str | None = None) -> Attachment:
    """Return an attachment that is on its way, whatever its sender says of its name and type."""
    wanted = (declared_type or "").partition(";")[0].strip().lower()
    return Attachment(
        filename=filename if filename.strip() else "attachment",
        mime_type=wanted if _TYPE.fullmatch(wanted) else UNKNOWN_TYPE,
        state=AttachmentState.EXPECTED,
    )


def attachments_in(metadata: Mapping[str, Any]) -> tuple[Attachment, ...]:
    """Return the attachments that a message's metadata names. Raises `InvalidMessage`."""
    if ATTACHMENTS not in metadata:
        return ()
    items = metadata[ATTACHMENTS]
    if not isinstance(items, list | tuple):
        raise InvalidMessage("M8: metadata.attachments is a list")
    return tuple(_attachment(item) for item in items)


def awaits_attachments(metadata: Mapping[str, Any]) -> bool:
    """Tell whether an attachment of a message is still expected."""
    return ATTACHMENTS in metadata and any(attachment.is_expected for attachment in attachments_in(metadata))


def _attachment(item: object) -> Attachment:
    if not isinstance(item, Mapping) or not item.keys() <= _KEYS or not {"filename", "mime_type"} <= item.keys():
        raise InvalidMessage(f"M8: an attachment is an object with filename and mime_type, not {item!r:.80}")
    state = item.get("state", "saved")
    if state not in list(AttachmentState):
        raise InvalidMessage(f"M8: an attachment cannot be {state!r:.40}; one of {', '.join(AttachmentState)} can")
    return Attachment(
        filename=item["filename"],
        mime_type=item["mime_type"],
        state=AttachmentState(state),
        path=item.get("path"),
        reason=item.get("reason"),
    )


def _is_beneath(path: object) -> bool:
    if not isinstance(path, str) or not path or not path.isprintable():
        return False
    return not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts


def _shown(text: str) -> str:
    """Return foreign text so that it stays in its line and between its brackets."""
    cut = text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."
    return "".join(char if char.isprintable() and char not in "[]" else "_" for char in cut)
