"""Tokens that are too long to be pasted stand in a file, and its name goes wherever a token goes."""

from __future__ import annotations

import hashlib
import os.path
import re
from pathlib import Path
from typing import Final

from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.schedule import VERSION

LONGEST: Final = 2_048
"""Characters that somebody would paste."""

_SUFFIX: Final = ".token"
_LIKE_A_TOKEN: Final = re.compile(r"ka\d+\.")
"""Of whichever version: what is wrong with it is for its reader to say."""


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
    is_name = text.endswith(_SUFFIX) or (
        len(text) <= LONGEST and (not _LIKE_A_TOKEN.match(text) or os.path.isfile(text))
    )
    if not is_name:
        return text
    try:
        return Path(text).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise HarnessError(f"there is no file {text!r}; a token is {VERSION}.FINGERPRINT.KIND.PAYLOAD") from None
    except (OSError, ValueError) as error:
        raise HarnessError(f"{text}: the token in it cannot be read: {error}") from None
