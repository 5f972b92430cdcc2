"""Recorded traffic of the providers' wires: each exchange as the request's body and the bytes that answered it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import frozen

FOLDER: Final = Path(__file__).parents[3] / "shared" / "recordings"


@frozen(kw_only=True)
class Exchange:
    """One request and its answer."""

    label: str
    uri: str
    request: dict[str, Any]
    status: int
    body: bytes
    """As it came; of an answer that was recorded as data, that data as JSON."""
    is_stream: bool


def exchanges(wire: str) -> list[Any]:
    """Return the exchanges of a wire as parameters of a test; one that is skipped where there are no recordings."""
    if not (FOLDER / wire).is_dir():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"there are no recordings at {FOLDER}"))]
    return [pytest.param(one, id=one.label) for path in sorted((FOLDER / wire).iterdir()) for one in _of(path)]


def _of(path: Path) -> Iterator[Exchange]:
    if path.suffix == ".sse":
        data = path.read_bytes()
        yield Exchange(label=path.stem, uri="", request={}, status=200, body=data, is_stream=True)
        return
    from ruamel.yaml import YAML

    for number, one in enumerate(YAML(typ="safe").load(path)["interactions"]):
        request, response = one["request"], one["response"]
        is_stream = "parsed_body" not in response
        body = response["body"]["string"] if is_stream else json.dumps(response["parsed_body"])
        yield Exchange(
            label=f"{path.stem}-{number}",
            uri=request["uri"],
            request=request.get("parsed_body") or {},
            status=response["status"]["code"],
            body=body if isinstance(body, bytes) else body.encode(),
            is_stream=is_stream,
        )
