"""Folders for measurements: on the file system of the repository, where a disk is a disk, and removed at the end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder, removed at the end."""
    parent = ROOT / ".cache"
    parent.mkdir(exist_ok=True)
    path = Path(tempfile.mkdtemp(prefix="bench-", dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path)
