"""`read_file`, `write_file` and `edit_file`, the tools (T3). Functions for a thread: they wait for the disk."""

from __future__ import annotations

import hashlib
import io
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final

from attrs import field

from kesoku_actors.files.descent import Spot, descended
from kesoku_actors.files.pictures import HEAD_BYTES, Picture, picture_of
from kesoku_actors.files.places import Place, Refused, Root, place_of
from kesoku_actors.protocol import ATTACHMENTS, Attachment, Outcome
from kesoku_actors.tools.files.replacing import check_root, check_writable, replace
from kesoku_actors.tools.files.texts import SNIFFED, Excerpt, encoded, excerpt, is_binary, is_wide, replaced_once
from kesoku_actors.tools.port import ToolContext, ToolOutcome
from kesoku_actors.values import frozen

ATTACHED: Final = "attachments"
"""Where pictures from outside of the session's folder are copied to, in it: a provider finds them there (M8)."""
_FRAME: Final = 400
"""Characters of a result beside the lines it shows."""

FilePath = Annotated[str, "Relative to the session's folder, or absolute."]
Tool = Callable[..., ToolOutcome]


def _told(tool: Tool) -> Tool:
    """Make a refusal what the model reads."""

    @wraps(tool)
    def told(*arguments: Any, **named: Any) -> ToolOutcome:
        try:
            return tool(*arguments, **named)
        except Refused as refused:
            return ToolOutcome(outcome=Outcome.ERROR, content=str(refused), metadata={"reason": "refused"})

    return told


@frozen(kw_only=True, eq=False)
class FileTools:
    """The tools, where they work, and how much at once."""

    roots: Sequence[Root] = ()
    """Beside the session's folder."""
    chars: int = 16_000
    """Of one result."""
    largest: int = 16 << 20
    """Bytes of a text that is edited, or written at once."""
    largest_scan: int = 256 << 20
    """Bytes of a text that is read for some of its lines."""
    largest_picture: int = 8 << 20
    """Bytes."""
    most_pixels: int = 50_000_000
    _changing: threading.Lock = field(factory=threading.Lock, init=False, repr=False)
    """Two changes of one file at once would lose one of them."""

    def all(self) -> tuple[Tool, ...]:
        """Return the tools, to be registered."""
        return self.read_file, self.write_file, self.edit_file

    @_told
    def read_file(
        self,
        path: FilePath,
        context: ToolContext,
        first_line: Annotated[int, "The first line to read, from 1."] = 1,
        last_line: Annotated[int | None, "The last line to read; without it as many as fit."] = None,
    ) -> ToolOutcome:
        """Read a text file, with line numbers, or look at a picture (PNG, JPEG, GIF, WebP)."""
        place = self._place(path, context)
        with descended(place) as spot, open(spot.open(), "rb") as stream:
            head = stream.read(HEAD_BYTES)
            stream.seek(0)
            size = os.fstat(stream.fileno()).st_size
            if (picture := picture_of(head)) is not None:
                return self._look(place, picture, size, stream, context)
            if is_binary(head[:SNIFFED]):
                raise Refused(
                    f"{place.shown} is no text ({size:,} bytes); look at it with run_shell_command, for instance with "
                    "file, strings or xxd, or unpack it there"
                )
            return self._read(place, stream, size, first_line, last_line)

    @_told
    def write_file(
        self, path: FilePath, content: Annotated[str, "The whole content."], context: ToolContext
    ) -> ToolOutcome:
        """Write a text file, a new one or in place of an old one; folders on the way are made."""
        data = encoded(content, "content")
        if len(data) > self.largest:
            raise Refused(f"content has {len(data):,} bytes, more than the {self.largest:,} that are written at once")
        place = self._place(path, context)
        check_root(place)
        with self._changing, descended(place, make_folders=True) as spot:
            check_writable(spot)
            replace(spot, data, context.call_id)
            before = "a new file" if spot.status is None else f"in place of {spot.status.st_size:,} bytes"
        lines = content.count("\n") + (not content.endswith("\n") and bool(content))
        return _done(f"wrote {place.shown}: {lines:,} lines, {len(data):,} bytes, {before}")

    @_told
    def edit_file(
        self,
        path: FilePath,
        old_text: Annotated[str, "What is replaced: stands in the file exactly once, blanks and line breaks included."],
        new_text: Annotated[str, "What it is replaced by."],
        context: ToolContext,
    ) -> ToolOutcome:
        """Replace one piece of a text file."""
        encoded(old_text, "old_text")
        encoded(new_text, "new_text")
        place = self._place(path, context)
        check_root(place)
        with self._changing, descended(place) as spot:
            content = self._whole(spot)
            check_writable(spot)
            if is_binary(content[:SNIFFED]):
                raise Refused(f"{place.shown} is no text; change it with run_shell_command")
            changed, line = replaced_once(content, old_text, new_text)
            replace(spot, changed, context.call_id)
        removed, added = (text.count("\n") + 1 if text else 0 for text in (old_text, new_text))
        return _done(f"edited {place.shown} at line {line}: {removed} lines became {added}")

    def _place(self, path: str, context: ToolContext) -> Place:
        workspace, *aliases = _names(Root(path=context.workspace))
        return place_of(path, workspace, [*aliases, *(name for root in self.roots for name in _names(root))])

    def _whole(self, spot: Spot) -> bytes:
        with open(spot.open(), "rb") as stream:
            content = stream.read(self.largest + 1)
        if len(content) > self.largest:
            raise Refused(f"{spot.place.shown} has more than the {self.largest:,} bytes that are edited at once")
        return content

    def _read(self, place: Place, stream: io.BufferedReader, size: int, first: int, last: int | None) -> ToolOutcome:
        if first < 1 or (last is not None and last < first):
            raise Refused(f"there are no lines from {first} to {last}; lines count from 1")
        lines: io.BufferedIOBase = stream
        wide = is_wide(stream.peek(2)[:2])
        most = self.largest if wide else self.largest_scan
        if size > most:
            raise Refused(
                f"{place.shown} has {size:,} bytes, more than the {most:,} that are read for some lines; take a part "
                "of it with run_shell_command, for instance with sed, head or tail"
            )
        if wide:
            lines = io.BytesIO(stream.read(most).decode("utf-16", "replace").encode("utf-8", "replace"))
        read = excerpt(lines, first=first, last=last, chars=max(self.chars - _FRAME, 100))
        if not read.shown and read.total:
            raise Refused(f"{place.shown} has {read.total:,} lines; there is no line {first}")
        return _done(f"{read.shown}\n{_note(place, read)}" if read.shown else f"[{place.shown} is empty]")

    def _look(
        self, place: Place, picture: Picture, size: int, stream: io.BufferedReader, context: ToolContext
    ) -> ToolOutcome:
        """Let the model look at a picture: it is attached to the result (M8)."""
        if size > self.largest_picture or picture.width * picture.height > self.most_pixels:
            raise Refused(
                f"{place.shown} is a picture of {picture.width} x {picture.height} pixels and {size:,} bytes, too "
                f"large to look at; {self.most_pixels:,} pixels and {self.largest_picture:,} bytes are the most"
            )
        path, filename = place.relative, place.parts[-1]
        if (
            place.root.path not in [root.path for root in _names(Root(path=context.workspace))]
            or not path.isprintable()
        ):
            path = self._copied(stream.read(self.largest_picture), picture, context)
        attachment = Attachment(filename=filename, mime_type=picture.mime_type, path=path)
        about = f"{picture.mime_type}, {picture.width} x {picture.height} pixels, {size:,} bytes"
        return _done(f"[{place.shown}: {about}; attached to this result]", **{ATTACHMENTS: [attachment.as_data()]})

    def _copied(self, content: bytes, picture: Picture, context: ToolContext) -> str:
        """Copy a picture into the session's folder, once however often it is looked at, and return its path there."""
        name = f"{hashlib.sha256(content).hexdigest()[:16]}.{picture.mime_type.partition('/')[2]}"
        copy = self._place(f"{ATTACHED}/{name}", context)
        with self._changing, descended(copy, make_folders=True) as spot:
            if spot.status is None:
                replace(spot, content, context.call_id)
        return copy.relative


def _names(root: Root) -> Iterator[Root]:
    """Yield a root under the path it was given and, if that leads over links, under the one it really has."""
    given = Path(os.path.abspath(root.path))
    yield Root(path=given, is_writable=root.is_writable)
    real = Path(os.path.realpath(given))
    if real != given:
        yield Root(path=real, is_writable=root.is_writable)


def _done(content: str, **metadata: Any) -> ToolOutcome:
    return ToolOutcome(outcome=Outcome.OK, content=content, metadata=metadata)


def _note(place: Place, read: Excerpt) -> str:
    of = f" of {read.total:,}" if read.is_end else f"; more follow, from first_line={read.last + 1}"
    return f"[{place.shown}: lines {read.first} to {read.last}{of}]"
