"""Pictures and documents for tests: real ones, and some that only claim to be large."""

from __future__ import annotations

import io
import random
import struct
import zlib

from PIL import Image


def picture(width: int, height: int, form: str = "PNG", *, noisy: bool = False, mode: str = "RGB") -> bytes:
    """Return a picture; a noisy one can hardly be packed."""
    if noisy:
        image = Image.frombytes(mode, (width, height), random.Random(7).randbytes(width * height * len(mode)))
    else:
        image = Image.new(mode, (width, height))
    out = io.BytesIO()
    image.save(out, form)
    return out.getvalue()


def claims(width: int, height: int) -> bytes:
    """Return a PNG of a few bytes whose header names these sizes."""
    return (
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + _chunk(b"IEND")
    )


def _chunk(kind: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pdf(pages: int, *, packed: bool = False, told: bool = True) -> bytes:
    """Return a PDF; with its objects packed into a stream, or without a count, as some programs write them."""
    kids = b" ".join(b"%d 0 R" % (number + 3) for number in range(pages))
    count = b"/Count %d" % pages if told else b""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type /Pages/Kids[%s]%s>>" % (kids, count)]
    objects += [b"<</Type/Page/Parent 2 0 R>>"] * pages
    if packed:
        stream = zlib.compress(b"\n".join(objects))
        objects = [b"<</Type /ObjStm/Filter/FlateDecode/Length %d>>\nstream\r\n%s\nendstream" % (len(stream), stream)]
    bodies = b"".join(b"%d 0 obj\n%s\nendobj\n" % (number, body) for number, body in enumerate(objects, 1))
    return b"%PDF-1.7\n" + bodies + b"trailer<</Root 1 0 R>>\n%%EOF"
