"""What picture a file is, from how it begins, and how many pixels it has (case rows A04, A05). Pure.

Only the header is read: a picture is never unpacked here, however small the file and large the picture.
"""

from __future__ import annotations

import struct
from typing import Final

from kesoku_actors.values import frozen

HEAD_BYTES: Final = 256 * 1024
"""How much of a file is looked at: a JPEG may say its size behind other things."""
PICTURES: Final = frozenset({"image/png", "image/gif", "image/jpeg", "image/webp"})
"""The types whose headers are read here."""
_WITHOUT_SIZE: Final = frozenset({0xC4, 0xC8, 0xCC})


@frozen
class Picture:
    """A picture that a model can look at."""

    mime_type: str
    width: int
    height: int
    """In pixels; 0 where the header does not say."""


def picture_of(head: bytes) -> Picture | None:
    """Return the picture that a file beginning like this is, if it is one."""
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            return Picture("image/png", *struct.unpack_from(">II", head, 16))
        if head.startswith((b"GIF87a", b"GIF89a")):
            return Picture("image/gif", *struct.unpack_from("<HH", head, 6))
        if head.startswith(b"\xff\xd8\xff"):
            return Picture("image/jpeg", *_jpeg_size(head))
        if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
            return Picture("image/webp", *_webp_size(head))
    except struct.error:  # cut off in its header
        return None
    return None


def _jpeg_size(head: bytes) -> tuple[int, int]:
    at = 2
    while at + 4 <= len(head):
        if head[at] != 0xFF:
            return 0, 0
        marker = head[at + 1]
        if marker == 0xFF:  # filling
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in _WITHOUT_SIZE:
            height, width = struct.unpack_from(">HH", head, at + 5)
            return width, height
        else:
            at += 2 + struct.unpack_from(">H", head, at + 2)[0]
    return 0, 0


def _webp_size(head: bytes) -> tuple[int, int]:
    match head[12:16]:
        case b"VP8X":
            width, height = (int.from_bytes(head[at : at + 3], "little") for at in (24, 27))
            return width + 1, height + 1
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", head, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", head, 26)
            return width & 0x3FFF, height & 0x3FFF
        case _:
            return 0, 0
