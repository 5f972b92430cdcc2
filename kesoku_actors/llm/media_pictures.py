"""Pictures made smaller with Pillow, where it is installed; functions for a thread.

Invariants: only what the header says is small enough is unpacked (case row A05); what comes out is a JPEG or a PNG
without anything in it but the picture.
"""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, Final

from kesoku_actors.values import frozen

if TYPE_CHECKING:
    from PIL.Image import Image

_QUALITY: Final = 85


@frozen(kw_only=True)
class Smaller:
    """A picture as it was made."""

    mime_type: str
    data: bytes


def has_pillow() -> bool:
    """Tell whether pictures can be made smaller here."""
    try:
        import PIL
    except ImportError:
        return False
    return bool(PIL.__version__)


def is_sound(data: bytes) -> bool:
    """Tell whether a picture can be unpacked to its end."""
    return _opened(data, None) is not None


def smaller(data: bytes, *, edge: int, largest: int) -> Smaller | None:
    """Return a picture of at most `edge` pixels and `largest` bytes; none for one that cannot be read."""
    picture = _opened(data, edge)
    while picture is not None and edge >= 1:
        picture.thumbnail((edge, edge))
        for form in ("PNG", "JPEG") if picture.mode == "RGBA" else ("JPEG",):
            made = _written(picture, form)
            if len(made.data) <= largest:
                return made
        edge //= 2
    return None


def _opened(data: bytes, edge: int | None) -> Image | None:
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(data)) as opened:
            if edge is None:
                opened.load()
                return opened
            opened.draft("RGB", (edge, edge))  # a JPEG is unpacked at the size that is wanted
            picture = ImageOps.exif_transpose(opened)
            has_alpha = picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info
            return picture.convert("RGBA" if has_alpha else "RGB")
    except (OSError, ValueError, SyntaxError, EOFError, struct.error, Image.DecompressionBombError):
        return None  # what Pillow raises for what it cannot read


def _written(picture: Image, form: str) -> Smaller:
    from PIL import Image

    out = io.BytesIO()
    if form == "JPEG" and picture.mode == "RGBA":
        flat = Image.new("RGB", picture.size, "white")
        flat.paste(picture, mask=picture.getchannel("A"))
        picture = flat
    picture.save(out, form, **({"quality": _QUALITY} if form == "JPEG" else {"optimize": True}))
    return Smaller(mime_type=f"image/{form.lower()}", data=out.getvalue())
