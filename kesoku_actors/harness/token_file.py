"""Tokens that are too long to be pasted stand in a file, and its name goes wherever a token goes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from kesoku_actors.harness.errors import HarnessError

LONGEST: Final = 2_048
"""Characters that somebody would paste."""

_SUFFIX: Final = ".token"


def pasteable(token: str, folder: Path) -> str:
    """Return a token, or, if it is a long one, the file in this folder that it was written to.

    Equal tokens have the same file.
    """
    if len(token) <= LONGEST:
        return token
    name = hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    path = folder / f"ka1-{name}{_SUFFIX}"
    path.write_text(f"{token}\n", encoding="utf-8")
    return str(path)


def whole_token(said: str) -> str:
    """Return the token that was pasted, or that stands in the file of this name. Raises `HarnessError`."""
    text = said.strip()
    if not text.endswith(_SUFFIX) and (len(text) > LONGEST or not Path(text).is_file()):
        return text
    try:
        return Path(text).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise HarnessError(f"{text}: the token in it cannot be read: {error}") from None
