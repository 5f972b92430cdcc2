"""What is drawn for a property has to happen in its runs: each shows how often it did, and fails where it never did."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

import pytest

from kesoku_actors.harness.origin import MARK
from tests.properties.daemon.kinds import Tally

ENOUGH: Final = 24
"""Runs in which whatever is drawn may be expected to happen."""


@pytest.fixture(autouse=True)
def what_is_drawn_happens(request: pytest.FixtureRequest) -> Iterator[None]:
    """Look at the runs of a property when it has held."""
    yield
    exploration = getattr(request.function, MARK, None)
    tally = getattr(getattr(exploration, "world", None), "__self__", None)
    if not isinstance(tally, Tally):
        return
    tally.count()
    sys.stdout.write(f"in {tally.runs} runs: {tally}\n")
    if tally.runs >= ENOUGH:
        assert tally.never == [], f"never happened: {', '.join(tally.never)}"
