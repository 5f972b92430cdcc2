"""What a file is, from its first bytes (case row A04). Pure.

Invariants: a type that has a signature is never believed without it, so that a page named `.png` is no picture; the
name only says which text a text is, and what bytes without a known signature may be.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Mapping
from typing import Final

from kesoku_actors.adapters.filenames import extension_of
from kesoku_actors.protocol import UNKNOWN_TYPE

HEAD_BYTES: Final = 4096
"""How much of a file says what it is."""

_TEXT: Final = "text/plain"
_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_TEXTS: Final[Mapping[str, str]] = {
    ".css": "text/css",
    ".csv": "text/csv",
    ".htm": "text/html",
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".svg": "image/svg+xml",
    ".toml": "application/toml",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_BINARIES: Final[Mapping[str, str]] = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".flac": "audio/flac",
    ".gz": "application/gzip",
    ".m4a": "audio/mp4",
    ".mov": "video/quicktime",
    ".mp3": "audio/mpeg",
    ".mp4": "video/mp4",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".ogg": "audio/ogg",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".tar": "application/x-tar",
    ".wav": "audio/wav",
    ".webm": "video/webm",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".zip": "application/zip",
}


def mime_type_of(head: bytes, name: str) -> str:
    """Return the MIME type of a file that begins with `head`, at most `HEAD_BYTES` of it, and has this name."""
    for signature, mime_type in _SIGNATURES:
        if head.startswith(signature):
            return mime_type
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    extension = extension_of(name)
    return _TEXTS.get(extension, _TEXT) if _is_text(head) else _BINARIES.get(extension, UNKNOWN_TYPE)


def _is_text(head: bytes) -> bool:
    """Tell whether it is UTF-8 without zeros; where the head ends before the file, a character may be cut."""
    try:
        return "\0" not in getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD_BYTES)
    except UnicodeDecodeError:
        return False
