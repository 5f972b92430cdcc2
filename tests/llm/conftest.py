"""The weights of the embedded model, fetched once into the user's cache as the product itself does it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesoku_actors.llm.weights import pull


@pytest.fixture(scope="session")
def smollm2() -> Path:
    return pull("smollm2", progress=lambda step, fraction: None)
