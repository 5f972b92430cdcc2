"""Which attachments each provider reads as such, and how large they may be. Pure.

The figures are those of the public API references; they are lower where a larger picture only costs time, because the
service makes it smaller before its model looks at it.
"""

from __future__ import annotations

from typing import Final

from kesoku_actors.llm import claude_names, gemini_names
from kesoku_actors.llm.media import PDF
from kesoku_actors.values import frozen

MOST_PIXELS: Final = 50_000_000
"""Of a picture that is unpacked here to be made smaller: about 200 MB of memory."""

LARGEST_FILE: Final = 25 << 20
"""Bytes of a file that is read at all; a picture may be made smaller."""


@frozen(kw_only=True)
class MediaRules:
    """What one provider takes."""

    pictures: frozenset[str]
    largest_picture: int
    """Bytes."""
    largest_edge: int
    """Pixels of a picture's longer side."""
    largest_edge_of_many: int
    """The same when there are more pictures than `many` in a request."""
    many: int
    best_edge: int
    """What a picture is made smaller to."""
    others: frozenset[str]
    """Types of documents, sounds and films."""
    largest_other: int
    """Bytes of one."""
    most_pages: int
    largest_text: int
    """Bytes of a text; it goes as plain text, whatever else it is."""
    largest_whole: int
    """Bytes of all attachments of a request; the newest are kept."""


CLAUDE: Final = MediaRules(
    pictures=claude_names.IMAGE_TYPES,
    largest_picture=claude_names.LARGEST_IMAGE // 4 * 3,
    largest_edge=8000,
    largest_edge_of_many=2000,
    many=20,
    best_edge=1568,
    others=frozenset({PDF}),
    largest_other=20 << 20,
    most_pages=100,
    largest_text=512 << 10,
    largest_whole=22 << 20,
)
GEMINI: Final = MediaRules(
    pictures=gemini_names.IMAGE_TYPES,
    largest_picture=7 << 20,
    largest_edge=8192,
    largest_edge_of_many=8192,
    many=3000,
    best_edge=3072,
    others=frozenset(
        {
            PDF,
            "audio/aac",
            "audio/aiff",
            "audio/flac",
            "audio/mp4",
            "audio/mpeg",
            "audio/ogg",
            "audio/wav",
            "video/3gpp",
            "video/mp4",
            "video/quicktime",
            "video/webm",
        }
    ),
    largest_other=13 << 20,
    most_pages=1000,
    largest_text=512 << 10,
    largest_whole=13 << 20,
)
PLAIN_TEXTS: Final = (
    "text/",
    "application/json",
    "application/toml",
    "application/xml",
    "application/yaml",
    "image/svg+xml",
)
"""How the types of what is a text begin."""
