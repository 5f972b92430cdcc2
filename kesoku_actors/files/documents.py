"""How many pages a PDF has and whether it is locked, as far as its bytes say (case row A05). Pure.

Nothing is drawn, and little is unpacked: the objects of a page are counted where they lie open, and in the packed
streams that newer files keep them in, up to a bound. A file may lie; then it says too few, and the service refuses it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import Final

_PAGE: Final = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_PAGES: Final = re.compile(rb"/Type\s*/Pages(?![A-Za-z])")
_COUNT: Final = re.compile(rb"/Count\s+(\d{1,9})")
_PACKED: Final = re.compile(rb"/Type\s*/ObjStm(?![A-Za-z])")
_MOST_UNPACKED: Final = 32 << 20
"""Bytes of packed objects that are looked at."""


def is_locked(pdf: bytes) -> bool:
    """Tell whether it is encrypted, so that a model could not read it."""
    return b"/Encrypt" in pdf


def pages_in(pdf: bytes) -> int:
    """Return how many pages it has; 0 where it does not say."""
    counted = len(_PAGE.findall(pdf)) + sum(len(_PAGE.findall(objects)) for objects in _unpacked(pdf))
    return max([counted, *_told(pdf)])


def _told(pdf: bytes) -> Iterator[int]:
    """Yield the counts that the open nodes of the tree of pages name."""
    for match in _PAGES.finditer(pdf):
        begin, end = pdf.rfind(b"obj", 0, match.start()), pdf.find(b"endobj", match.end())
        found = _COUNT.search(pdf, max(begin, 0), end if end >= 0 else len(pdf))
        if found is not None:
            yield int(found[1])


def _unpacked(pdf: bytes) -> Iterator[bytes]:
    left = _MOST_UNPACKED
    for match in _PACKED.finditer(pdf):
        begin = pdf.find(b"stream", match.end())
        if begin < 0 or left <= 0:
            return
        begin += len(b"stream")
        begin += 2 if pdf[begin : begin + 2] == b"\r\n" else 1
        try:
            objects = zlib.decompressobj().decompress(pdf[begin : begin + left], left)
        except zlib.error:  # packed in another way, or encrypted
            continue
        left -= len(objects)
        yield objects
