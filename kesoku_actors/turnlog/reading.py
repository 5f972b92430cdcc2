"""Reads turn logs back as texts, for people: which inference a file is of, and its parts. It trusts nothing in them.

A log is not parsed as YAML, which would take longer than everything else that is done with it. The writer puts each
part at the first column and each message of the history at the third; inner lines stand further in, so lines tell where
a part or a message ends. A file that was made by something else gives other texts, never more than texts.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

from kesoku_actors.turnlog.folder import LogFile, survey
from kesoku_actors.values import frozen

LARGEST: Final = 64 << 20
"""Bytes of a file that are read."""
_PARTS: Final = ("metadata", "history", "tools", "request", "response")
_MESSAGE: Final = "\n  - "
_ID: Final = re.compile(r'^  inference_id: "?([0-9A-Za-z._-]{1,64})"?$', re.MULTILINE)
_WORDS: Final = re.compile(r"^  (model|purpose|state): (\S.{0,200})$", re.MULTILINE)
_TOKENS: Final = re.compile(r"^    (input|cached|output|thinking): ([0-9]{1,12})$", re.MULTILINE)
_FLOATS: Final = re.compile(r"^  (unix_time|latency_s|first_piece_s): ([0-9]{1,12}(?:\.[0-9]{1,9})?)$", re.MULTILINE)


@frozen(kw_only=True)
class LoggedInference:
    """One file of the log as texts."""

    name: str
    idx: int
    inference_id: str
    began: float | None
    """UTC seconds."""
    latency_s: float | None
    first_piece_s: float | None
    model: str
    purpose: str
    state: str
    """How it ended, in one word; empty when the file does not tell."""
    tokens: tuple[tuple[str, int], ...]
    """Those that the provider told, by name."""
    history: tuple[str, ...]
    """Each message that was sent, as YAML."""
    request: str
    """The rest of what was sent, as YAML."""
    tools: str
    response: str


def read_logs(folder: Path) -> Iterator[LoggedInference]:
    """Return the inferences that are logged in a folder, by index; one that cannot be read is left out."""
    files: tuple[LogFile, ...] = ()
    with suppress(OSError):
        files = survey(folder).files
    for file in files:
        text = None
        with suppress(OSError):
            text = _read(folder / file.name)
        if text is not None and (logged := _parted(file, text)) is not None:
            yield logged


def _read(path: Path) -> str | None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST:
            return None
        return file.read(LARGEST).decode("utf-8", "replace")


def _parted(file: LogFile, text: str) -> LoggedInference | None:
    parts = dict(_parts(text))
    metadata, response = parts.get("metadata", ""), parts.get("response", "")
    identity = _ID.search(metadata)
    if identity is None or "response" not in parts:  # cut short, or not ours
        return None
    words = {name: word.strip('"') for name, word in _WORDS.findall(f"{metadata}\n{response}")}
    floats = {name: float(value) for name, value in _FLOATS.findall(f"{metadata}\n{response}")}
    return LoggedInference(
        name=file.name,
        idx=file.idx,
        inference_id=identity[1],
        began=floats.get("unix_time"),
        latency_s=floats.get("latency_s"),
        first_piece_s=floats.get("first_piece_s"),
        model=words.get("model", ""),
        purpose=words.get("purpose", ""),
        state=words.get("state", ""),
        tokens=tuple((name, int(number)) for name, number in _TOKENS.findall(response)),
        history=tuple(_messages(parts.get("history", ""))),
        request=parts.get("request", ""),
        tools=parts.get("tools", ""),
        response=response,
    )


def _messages(history: str) -> Iterator[str]:
    _, *messages = history.split(_MESSAGE)
    for message in messages:
        yield f"  - {message}".rstrip("\n")


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts that are there, in the order in which they are written."""
    text = f"\n{text}"
    places = [(name, at) for name in _PARTS if (at := text.find(f"\n{name}:")) >= 0]
    for (name, at), (_, end) in pairwise([*places, ("", len(text))]):
        yield name, text[at + len(name) + 2 : end].strip("\n")
