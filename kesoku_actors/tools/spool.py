"""The whole of what a command says, in a file of the session's folder that grows while it speaks (I8, T6).

* Nothing reaches the file that is not harmless and masked. What is written ends between words, so that no secret is
  cut in two; a word too long for that is cleaned before it is cut, and its end is held back, longer than any secret.
* The file is readable by nobody else, is made when there is something to write, and never through a link that a
  command may have put in its place.
* Memory stays flat: what is held is at most one word, and never more than `LONGEST_WORD`.
* Its methods wait for the disk: they are for a thread. What a disk does not take is left out, and said.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from attrs import field

from kesoku_actors.tools.output import harmless
from kesoku_actors.values import define

FOLDER: Final = "output"
"""In the session's folder."""
MOST_BYTES: Final = 1 << 30
"""Of one file; what is said beyond it is counted, not kept."""
LONGEST_WORD: Final = 64 * 1024
_HELD: Final = 4_096
"""Characters; longer than any secret."""
_PLAIN: Final = bytes((*range(0x20, 0x7F), 0x09, 0x0A))
"""What needs no cleaning but the mask."""

Mask = Callable[[str], str]


def open_new(workspace: Path, name: str) -> int:
    """Make a file in the output folder and return its descriptor, for reading and writing. Raises `OSError`."""
    folder = _open_folder(workspace, make=True)
    try:
        new = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, new, 0o600, dir_fd=folder)
    finally:
        os.close(folder)


def read_part(workspace: Path, name: str, start: int, size: int) -> tuple[bytes, int]:
    """Return up to `size` bytes of an output file from `start`, and how long the file is. Raises `OSError`.

    What a command has put in the place of a file of ours is not read when it is no plain file.
    """
    folder = _open_folder(workspace, make=False)
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            raise FileNotFoundError(2, "No such file", name)
        return os.pread(file, size, start), facts.st_size
    finally:
        os.close(file)


def _open_folder(workspace: Path, *, make: bool) -> int:
    beneath = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    top = os.open(workspace, beneath)
    try:
        if make and FOLDER not in os.listdir(top):
            os.mkdir(FOLDER, 0o700, dir_fd=top)
        return os.open(FOLDER, beneath, dir_fd=top)
    finally:
        os.close(top)


@define(eq=False)
class Spool:
    """The file of one command. One thread at a time."""

    workspace: Path
    name: str
    mask: Mask
    most_bytes: int = MOST_BYTES
    problem: str | None = field(default=None, init=False)
    """Why not all of it is kept."""
    _file: int | None = field(default=None, init=False)
    _size: int = field(default=0, init=False)
    _rest: str = field(default="", init=False)
    """Said, and not written yet."""
    _decoder: codecs.IncrementalDecoder = field(init=False)
    _is_closed: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def path(self) -> str | None:
        """The file in the session's folder; none while nothing was written."""
        return f"{FOLDER}/{self.name}" if self._size or self._file is not None else None

    def feed(self, data: bytes) -> None:
        """Take the next bytes; never raises."""
        if self.problem is not None or self._is_closed:
            return None
        if not self._rest and data.endswith(b"\n") and not data.translate(None, _PLAIN):
            return self._write(self.mask(self._decoder.decode(data)))
        text = self._rest + self._decoder.decode(data)
        cut = _end_of_words(text)
        ready, self._rest = self._clean(text[:cut]), text[cut:]
        if len(self._rest) > LONGEST_WORD:
            cleaned = self._clean(self._rest)
            ready, self._rest = ready + cleaned[:-_HELD], cleaned[-_HELD:]
        return self._write(ready)

    def close(self) -> None:
        """Write what is left; nothing is taken any more."""
        if self._is_closed:
            return
        self._is_closed = True
        self._write(self._clean(self._rest + self._decoder.decode(b"", final=True)))
        self._rest = ""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _clean(self, text: str) -> str:
        return self.mask(harmless(text)) if text else ""

    def _write(self, text: str) -> None:
        if not text or self.problem is not None:
            return
        data = text.encode("utf-8", "replace")
        room = self.most_bytes - self._size
        try:
            if self._file is None:
                self._file = open_new(self.workspace, self.name)
            self._put(data[:room])
            if len(data) > room:
                self.problem = f"only the first {self.most_bytes:,} bytes are kept"
                os.write(self._file, f"\n[{self.problem}]\n".encode())
        except OSError as error:
            self.problem = f"the rest could not be kept: {os.strerror(error.errno or 0)}"

    def _put(self, data: bytes) -> None:
        assert self._file is not None
        view = memoryview(data)
        while view:
            written = os.write(self._file, view)
            self._size += written
            view = view[written:]


def _end_of_words(text: str) -> int:
    """Return how much of `text` is finished words."""
    return max(text.rfind("\n"), text.rfind(" "), text.rfind("\t")) + 1
