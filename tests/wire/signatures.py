"""Signatures as the strict servers give them: of what they stand on, so that nothing signed can be changed. Pure."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from typing import Any


def sign(*what: Any) -> str:
    """Return the signature of JSON data: base64 that reads the same in both alphabets."""
    digest = hashlib.sha256(json.dumps(what, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
    return b64encode(digest[:24].encode()).decode()


def is_signed(signature: Any, *what: Any) -> bool:
    """Tell whether a signature is that of the data."""
    return bool(signature == sign(*what))
