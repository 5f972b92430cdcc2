"""Folders of skills, written as people write them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a skill into a root beneath the test's folder and return its folder."""

    def write(
        folder: str, header: str | None = None, *, root: str = "skills", file: str = "SKILL.md", body: str = "Do it."
    ) -> Path:
        place = tmp_path / root / folder
        place.mkdir(parents=True, exist_ok=True)
        header = f"name: {folder}\ndescription: About {folder}." if header is None else header
        (place / file).write_text(f"---\n{header}\n---\n{body}\n")
        return place

    return write
