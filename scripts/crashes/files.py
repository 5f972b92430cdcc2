"""Files of a trial to which a life adds facts, one line for each, whatever moment it is killed at."""

from __future__ import annotations

import os
from pathlib import Path


def append(path: Path, line: str) -> None:
    """Add a line to a file in one write, so that it is there whole or not at all when the process dies."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def lines(path: Path) -> list[list[str]]:
    """Return the lines of such a file, as words."""
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []
