"""Attachments as they go to a model: bytes of a type that it takes, or a note why they do not. Pure.

Loading is `media_files`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from attrs import field

from kesoku_actors.files.kinds import TEXT
from kesoku_actors.llm.port import ProviderError, Remedy, Request
from kesoku_actors.values import define, frozen

PDF: Final = "application/pdf"


@define(kw_only=True, slots=False)
class Media:
    """The content of an attachment that a model reads as such."""

    filename: str
    mime_type: str
    data: bytes = field(repr=False)

    @cached_property
    def base64(self) -> str:
        """The content as text."""
        return b64encode(self.data).decode()


@frozen(kw_only=True)
class Unsent:
    """An attachment that a model only hears of."""

    path: str
    reason: str

    @property
    def note(self) -> str:
        """What it hears."""
        return f"[{self.path} is not shown to you here: {self.reason}]"


Item = Media | Unsent
MediaByRow = Mapping[str, Sequence[Item]]
"""By the id of the message that the attachments came with."""


def unshown(media: MediaByRow) -> tuple[str, ...]:
    """Return which attachments a model only hears of, and why, for people."""
    left_out = [item for items in media.values() for item in items if isinstance(item, Unsent)]
    return tuple(dict.fromkeys(f"{item.path}: {item.reason}" for item in left_out))


def size_of(media: MediaByRow) -> int:
    """Return how many bytes files have together."""
    return sum(len(item.data) for items in media.values() for item in items if isinstance(item, Media))


def doubt_files(error: ProviderError, request: Request, media: MediaByRow) -> None:
    """Have a request that was too long asked again without its files, if they are most of it.

    No history is cut so far that they would fit, and nothing is learnt from it about how much text is read.
    """
    texts = sum(len(row.content) for row in request.history)
    if error.remedy is Remedy.COMPACT and size_of(media) > texts:
        error.remedy = Remedy.REPAIR


def claude_block(item: Item) -> dict[str, Any]:
    """Return the block of Claude's wire: an image, a document, or the note."""
    match item:
        case Unsent():
            return {"type": "text", "text": item.note}
        case Media(mime_type=mime_type) if mime_type == TEXT:
            source = {"type": "text", "media_type": TEXT, "data": item.data.decode("utf-8", "replace")}
            return {"type": "document", "source": source, "title": item.filename}
        case Media():
            source = {"type": "base64", "media_type": item.mime_type, "data": item.base64}
            if item.mime_type == PDF:
                return {"type": "document", "source": source, "title": item.filename}
            return {"type": "image", "source": source}


def gemini_part(item: Item) -> dict[str, Any]:
    """Return the part of Gemini's wire: the data, or the note."""
    match item:
        case Unsent():
            return {"text": item.note}
        case Media():
            return {"inlineData": {"mimeType": item.mime_type, "data": item.base64}}
