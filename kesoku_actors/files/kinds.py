"""What a file is, from its first bytes (case row A04). Pure.

Invariants: a type that has a signature is never believed without it, so that a page named `.png` is no picture; the
name only says which text a text is, and what bytes without a known signature may be.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Mapping
from typing import Final

from kesoku_actors.files.names import extension_of
from kesoku_actors.protocol import UNKNOWN_TYPE

HEAD_BYTES: Final = 4096
"""How much of a file says what it is."""

TEXT: Final = "text/plain"
_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"fLaC\0", "audio/flac"),
    (b"OggS\0", "audio/ogg"),
    *((b"ID3" + bytes([version]), "audio/mpeg") for version in (2, 3, 4)),
)
_IN_RIFF: Final[Mapping[bytes, str]] = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_BRANDS: Final[Mapping[bytes, str]] = {
    b"M4A ": "audio/mp4",
    b"M4B ": "audio/mp4",
    b"qt  ": "video/quicktime",
    b"avif": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heif",
}
"""Of the boxes of ISO media; any other is a video."""
_WEBM: Final = b"\x1a\x45\xdf\xa3"
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
    ".gz": "application/gzip",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".tar": "application/x-tar",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".zip": "application/zip",
}


def mime_type_of(head: bytes, name: str) -> str:
    """Return the MIME type of a file that begins with `head`, at most `HEAD_BYTES` of it, and has this name."""
    if (signed := _signed_type(head)) is not None:
        return signed
    extension = extension_of(name)
    return _TEXTS.get(extension, TEXT) if is_text(head) else _BINARIES.get(extension, UNKNOWN_TYPE)


def _signed_type(head: bytes) -> str | None:
    for signature, mime_type in _SIGNATURES:
        if head.startswith(signature):
            return mime_type
    if head[:4] == b"RIFF":
        return _IN_RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "video/mp4")
    if head.startswith(_WEBM):
        return "video/webm" if b"webm" in head[:64] else "video/x-matroska"
    is_mpeg_audio = len(head) > 3 and head[0] == 0xFF and head[1] & 0xE6 == 0xE2
    return "audio/mpeg" if is_mpeg_audio else None


def is_text(head: bytes) -> bool:
    """Tell whether it is UTF-8 without zeros; where the head ends before the file, a character may be cut."""
    try:
        return "\0" not in getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD_BYTES)
    except UnicodeDecodeError:
        return False
