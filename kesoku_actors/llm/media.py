"""Attachments as they go to a model: bytes of a type that it takes. Pure; loading is `media_files`."""

from __future__ import annotations

from base64 import b64encode
from functools import cached_property
from typing import Any

from attrs import define


@define(kw_only=True, slots=False)
class Media:
    """The content of an attachment that a model reads as such."""

    filename: str
    mime_type: str
    data: bytes

    @cached_property
    def base64(self) -> str:
        """The content as text."""
        return b64encode(self.data).decode()


def block_of(media: Media) -> dict[str, Any]:
    """Return the block of Claude's wire that holds it: a document for a PDF, else an image."""
    source = {"type": "base64", "media_type": media.mime_type, "data": media.base64}
    if media.mime_type == "application/pdf":
        return {"type": "document", "source": source, "title": media.filename}
    return {"type": "image", "source": source}
