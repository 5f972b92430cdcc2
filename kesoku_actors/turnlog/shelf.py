"""One session's turn log as a thread works on it: the next index, the files there are, what goes when a new one comes.

Everything here touches the disk and runs in a thread, one call at a time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final, TextIO

from attrs import field

from kesoku_actors.turnlog.document import make_document
from kesoku_actors.turnlog.folder import LogFile, delete, survey, write_new
from kesoku_actors.turnlog.inference import Inference
from kesoku_actors.turnlog.yaml_text import Edit, write_yaml
from kesoku_actors.values import define

_BREATH_CHARS: Final = 16_384
_BREATH_S: Final = 0.0001


class _Polite:
    """Writes, and lets the thread of the event loop have the interpreter between two gulps.

    Without a real pause this thread would take it back at once, and the loop would wait for the interpreter's own
    switch, five milliseconds each time.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._gulp = 0
        self._never = threading.Event()

    def write(self, text: str) -> None:
        self._file.write(text)
        self._gulp += len(text)
        if self._gulp > _BREATH_CHARS:
            self._gulp = 0
            self._never.wait(_BREATH_S)


@define(eq=False)
class Shelf:
    """The log of one session. Forgotten and made again it goes on above what it finds."""

    folder: Path
    keep: int
    """Files that are kept."""
    keep_bytes: int
    edit: Edit
    last: int
    """The highest index given so far; at first the number of inferences that the store knows."""
    strange: int = field(default=0, init=False)
    """Files whose numbers cannot be ours, passed over."""
    _files: deque[LogFile] | None = field(default=None, init=False)
    """Oldest first; none before the first look."""

    def write(self, inference: Inference) -> LogFile:
        """Write an inference under the next index. Raises `OSError`; the index is used up all the same."""
        if self._files is None:
            found = survey(self.folder)
            self._files, self.strange = deque(found.files), found.strange
            self.last = max(self.last, found.last)
        self.last += 1
        written = write_new(self.folder, self.last, partial(self._fill, inference))
        self.last = written.idx
        self._files.append(written)
        if surplus := tuple(self._surplus(self._files)):
            delete(self.folder, iter(surplus))
        return written

    def _fill(self, inference: Inference, file: TextIO, idx: int) -> None:
        write_yaml(make_document(inference, idx), _Polite(file).write, self.edit)

    def _surplus(self, files: deque[LogFile]) -> Iterator[LogFile]:
        """Take the oldest files beyond the bounds off the shelf; the newest always stays."""
        size = sum(file.size for file in files)
        while len(files) > 1 and (len(files) > self.keep or size > self.keep_bytes):
            oldest = files.popleft()
            size -= oldest.size
            yield oldest
