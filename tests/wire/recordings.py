"""Recorded traffic of the providers' wires: each exchange as the request's body and the bytes that answered it.

Any cassette of these wires will do, from whichever program: what is not a talk with a model (tokens, files, counts) is
passed over, and what a talk holds that no history of ours can hold is `Unheld`, with the reason. They are looked for
beside the project, or where `KESOKU_RECORDINGS` says.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import frozen

from .loopback import Answer

FOLDER: Final = Path(os.environ.get("KESOKU_RECORDINGS") or Path(__file__).parents[3] / "shared" / "recordings")
_TALKS: Final = re.compile(r"/messages(?:\?|\Z)|:(?:stream)?[rR]awPredict|:(?:streamG|g)enerateContent")
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_GZIP: Final = b"\x1f\x8b"


class Unheld(Exception):
    """A recorded talk holds what no history of ours can hold."""


@frozen(kw_only=True)
class Exchange:
    """One request and its answer."""

    label: str
    uri: str
    request: Mapping[str, Any]
    status: int
    body: bytes
    """As it came; of an answer that was recorded as data, that data as JSON."""
    content_type: str

    @property
    def is_stream(self) -> bool:
        """Whether it was answered piece by piece."""
        return self.content_type.startswith(_EVENTS)

    @property
    def answer(self) -> Answer:
        """The answer, to be played byte for byte."""
        packed = (("content-encoding", "gzip"),) if self.body.startswith(_GZIP) else ()
        return Answer(status=self.status, headers=(("content-type", self.content_type), *packed), parts=(self.body,))

    @property
    def model(self) -> str:
        """The model that was asked."""
        found = re.search(r"/models/([^/:?]+)", self.uri)
        return str(self.request.get("model") or (found[1] if found else "a-model"))


def exchanges(wire: str) -> list[Any]:
    """Return the exchanges of a wire as parameters of a test; one that is skipped where there are no recordings."""
    if not (FOLDER / wire).is_dir():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"there are no recordings at {FOLDER}"))]
    return [pytest.param(one, id=one.label) for path in sorted((FOLDER / wire).rglob("*")) for one in _of(path)]


def with_requests(found: list[Any], key: str) -> list[Any]:
    """Return those of which the request is known, as one that holds `key`."""
    return [one for one in found if one.values[0] is None or one.values[0].request.get(key)]


def _of(path: Path) -> Iterator[Exchange]:
    if path.suffix in (".sse", ".json"):
        kind = _EVENTS if path.suffix == ".sse" else _JSON
        yield Exchange(label=path.stem, uri="", request={}, status=200, body=path.read_bytes(), content_type=kind)
    elif path.suffix in (".yaml", ".yml"):
        from ruamel.yaml import YAML

        for number, one in enumerate(YAML(typ="safe").load(path)["interactions"]):
            if _TALKS.search(one["request"]["uri"]):
                yield _exchange(f"{path.stem}-{number}", one["request"], one["response"])


def _exchange(label: str, request: Mapping[str, Any], response: Mapping[str, Any]) -> Exchange:
    asked = request.get("parsed_body")
    if asked is None and request.get("body"):
        asked = json.loads(request["body"])
    if "parsed_body" in response:
        body: Any = json.dumps(response["parsed_body"])
    else:
        body = response.get("body", {}).get("string") or ""
    headers = {name.lower(): values for name, values in response.get("headers", {}).items()}
    kinds = headers.get("content-type") or [_JSON]
    return Exchange(
        label=label,
        uri=request["uri"],
        request=asked if isinstance(asked, Mapping) else {},
        status=response["status"]["code"],
        body=body if isinstance(body, bytes) else body.encode(),
        content_type=_JSON if "parsed_body" in response else kinds[0] if isinstance(kinds, list) else kinds,
    )
