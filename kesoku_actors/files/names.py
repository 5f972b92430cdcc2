"""Names for files that come from outside (case row A01). Pure.

A safe name is one plain component of a path: letters, digits and marks of any script, and `.-+_`; it begins with none
of the signs that mean something to a shell or hide a file, and stays short enough to be numbered and to get a suffix.
What was a path keeps its last component only; what is nothing then is called `attachment`.
"""

from __future__ import annotations

import unicodedata
from typing import Final

LONGEST_NAME: Final = 150
"""Bytes of UTF-8; file systems take 255."""
NAMELESS: Final = "attachment"

_LONGEST_EXTENSION: Final = 16
_PLAIN: Final = frozenset(".-+_")
_KEPT: Final = frozenset("LMN")
"""Categories of Unicode that stay: letters, marks, numbers."""


def safe_name(filename: str) -> str:
    """Return the name under which a file from outside may be kept. A safe name stays as it is."""
    last = filename.replace("\\", "/").rstrip("/").rpartition("/")[2]
    normal = unicodedata.normalize("NFC", last)
    plain = "".join(char if char in _PLAIN or unicodedata.category(char)[0] in _KEPT else "_" for char in normal)
    stem, extension = _parted(plain.strip(".").lstrip("-._"))
    cut = _cut(stem, LONGEST_NAME - len(extension.encode())) + extension
    return cut or NAMELESS


def numbered(name: str, number: int) -> str:
    """Return the name of the file that is the `number`th of this name; the first has the name itself."""
    stem, extension = _parted(name)
    return name if number == 1 else f"{stem}-{number}{extension}"


def extension_of(name: str) -> str:
    """Return the extension in lower case with its dot, or nothing."""
    return _parted(name)[1].lower()


def _parted(name: str) -> tuple[str, str]:
    stem, dot, extension = name.rpartition(".")
    if not stem or not extension or len(extension.encode()) >= _LONGEST_EXTENSION:
        return name, ""
    return stem, dot + extension


def _cut(text: str, limit: int) -> str:
    """Return the longest beginning of `text` within `limit` bytes that ends where a character does."""
    return text.encode()[:limit].decode(errors="ignore").rstrip(".")
