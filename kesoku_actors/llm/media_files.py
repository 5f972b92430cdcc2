"""Loads the attachments of a request from the session's folder, as far as its model reads them (T3).

Invariants: what is opened lies beneath the session's folder and is reached over no link; its type is what its bytes
say, whatever was declared; its size in bytes, pixels or pages is looked at before anything is unpacked (case rows A04,
A05). What does not go becomes a note to the model and a line in the log, never an error: no file can spoil a turn. All
of it happens in a thread, and the newest attachments come first when not all of them fit.

What was loaded is kept, up to a bound, as each inference of a turn sends the same again; a file that has changed since
is loaded anew.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import trio
from attrs import field

from kesoku_actors.files.descent import descended
from kesoku_actors.files.documents import is_locked, pages_in
from kesoku_actors.files.kinds import HEAD_BYTES, TEXT, mime_type_of
from kesoku_actors.files.pictures import HEAD_BYTES as PICTURE_HEAD
from kesoku_actors.files.pictures import PICTURES, picture_of
from kesoku_actors.files.places import Refused, Root, place_of
from kesoku_actors.llm.media import PDF, Item, Media, MediaByRow, Unsent
from kesoku_actors.llm.media_pictures import has_pillow, is_sound, smaller
from kesoku_actors.llm.media_rules import LARGEST_FILE, MOST_PIXELS, PLAIN_TEXTS, MediaRules
from kesoku_actors.llm.port import Request
from kesoku_actors.log import Logger
from kesoku_actors.protocol import ATTACHMENTS, Attachment, attachments_in
from kesoku_actors.values import define

_KEPT: Final = 32 << 20
"""Bytes of loaded attachments that are kept."""
_MOST_KEPT: Final = 256
_AT_ONCE: Final = 2
"""Threads that load: each may unpack a large picture."""


@define(eq=False)
class MediaFiles:
    """The attachments of one provider's requests."""

    rules: MediaRules
    log: Logger
    _kept: OrderedDict[tuple[Any, ...], Item] = field(factory=OrderedDict, init=False, repr=False)
    _keeping: threading.Lock = field(factory=threading.Lock, init=False, repr=False)
    _threads: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(_AT_ONCE), init=False, repr=False)

    async def of(self, request: Request) -> MediaByRow:
        """Return the attachments of a request; none of a session without a folder."""
        if request.workspace is None or not any(ATTACHMENTS in row.metadata for row in request.history):
            return {}
        if request.is_plain:
            return {row.id: tuple(map(self._refused, _saved(row.metadata))) for row in request.history}
        load = partial(self._load, request, request.workspace)
        return await trio.to_thread.run_sync(load, abandon_on_cancel=True, limiter=self._threads)

    def _load(self, request: Request, workspace: Path) -> MediaByRow:
        """Load from the newest on, as long as there is room."""
        wanted = [(row.id, list(_saved(row.metadata))) for row in request.history if ATTACHMENTS in row.metadata]
        pictures = sum(one.mime_type.startswith("image/") for _, saved in wanted for one in saved)
        edge = self.rules.largest_edge if pictures <= self.rules.many else self.rules.largest_edge_of_many
        root, left = Root(path=workspace), self.rules.largest_whole
        loaded: dict[str, tuple[Item, ...]] = {}
        for row_id, saved in reversed(wanted):
            items: list[Item] = []
            for attachment in reversed(saved):
                item = self._item(root, attachment, edge)
                if isinstance(item, Media) and len(item.data) > left:
                    item = self._unsent(attachment, "newer files take all the room there is")
                left -= _size(item)
                items.append(item)
            loaded[row_id] = tuple(reversed(items))
        return loaded

    def _item(self, root: Root, attachment: Attachment, edge: int) -> Item:
        try:
            with descended(place_of(attachment.path or "", root)) as spot, open(spot.open(), "rb") as stream:
                status = os.fstat(stream.fileno())
                key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, edge, attachment)
                with self._keeping:
                    if (kept := self._kept.get(key)) is not None:
                        self._kept.move_to_end(key)
                        return kept
                item = self._read(stream, status.st_size, attachment, edge)
        except Refused as refused:
            return self._unsent(attachment, str(refused))
        except OSError as problem:
            return self._unsent(attachment, f"it cannot be read, {problem.strerror}")
        self._keep(key, item)
        return item

    def _read(self, stream: BinaryIO, size: int, attachment: Attachment, edge: int) -> Item:
        unsent = partial(self._unsent, attachment)
        if size > LARGEST_FILE:
            return unsent(f"it has {size:,} bytes, and {LARGEST_FILE:,} are the most")
        head = stream.read(PICTURE_HEAD)
        mime_type = mime_type_of(head[:HEAD_BYTES], attachment.filename)
        is_text = mime_type.startswith(PLAIN_TEXTS)
        if mime_type.startswith("image/") and not is_text:
            if (problem := self._picture_problem(head, mime_type)) is not None:
                return unsent(problem)
            return self._picture(head + stream.read(size), mime_type, edge, attachment)
        largest = self.rules.largest_text if is_text else self.rules.largest_other
        if not is_text and mime_type not in self.rules.others:
            return unsent(f"this model reads no {mime_type}")
        if size > largest:
            return unsent(f"it has {size:,} bytes, and {largest:,} are the most")
        data = head + stream.read(size)
        if mime_type == PDF and (problem := self._pdf_problem(data)) is not None:
            return unsent(problem)
        if is_text and not data.decode("utf-8", "replace").strip():
            return unsent("there is nothing in it")
        return _media(attachment, TEXT if is_text else mime_type, data)

    def _picture_problem(self, head: bytes, mime_type: str) -> str | None:
        """Return why a picture is not even read, or none."""
        if mime_type not in PICTURES:
            return None if mime_type in self.rules.pictures else f"this model reads no {mime_type}"
        picture = picture_of(head)
        if picture is None or not picture.width * picture.height:
            return "it does not say how many pixels it has"
        if picture.width * picture.height > MOST_PIXELS:
            return f"it has {picture.width:,} x {picture.height:,} pixels, and {MOST_PIXELS:,} are the most"
        return None

    def _picture(self, data: bytes, mime_type: str, edge: int, attachment: Attachment) -> Item:
        picture = picture_of(data[:PICTURE_HEAD])
        longer = max(picture.width, picture.height) if picture is not None else 0
        is_taken = mime_type in self.rules.pictures
        is_small = len(data) <= self.rules.largest_picture
        if not has_pillow():
            if is_taken and is_small and longer <= edge:
                return _media(attachment, mime_type, data)
            lack = "it is too large" if is_taken else f"this model reads no {mime_type}"
            return self._unsent(attachment, f"{lack}; with kesoku-actors[images] it would be made to fit")
        if is_taken and is_small and longer <= self.rules.best_edge:
            if mime_type not in PICTURES or is_sound(data):
                return _media(attachment, mime_type, data)
        elif made := smaller(data, edge=self.rules.best_edge, largest=self.rules.largest_picture):
            return _media(attachment, made.mime_type, made.data)
        return self._unsent(attachment, f"it is no whole {mime_type}")

    def _pdf_problem(self, data: bytes) -> str | None:
        if is_locked(data):
            return "it is encrypted"
        if (pages := pages_in(data)) > self.rules.most_pages:
            return f"it has {pages:,} pages, and {self.rules.most_pages:,} are the most"
        return None

    def _unsent(self, attachment: Attachment, reason: str) -> Unsent:
        path = attachment.path or ""
        self.log.warning("an attachment is not shown to the model", path=path, reason=reason)
        return Unsent(path=path, reason=reason)

    def _refused(self, attachment: Attachment) -> Unsent:
        return self._unsent(
            attachment, "the model's service refused the question as it was, so it was asked without files"
        )

    def _keep(self, key: tuple[Any, ...], item: Item) -> None:
        with self._keeping:
            self._kept[key] = item
            size = sum(map(_size, self._kept.values()))
            while size > _KEPT or len(self._kept) > _MOST_KEPT:
                _, gone = self._kept.popitem(last=False)
                size -= _size(gone)


def _saved(metadata: Any) -> Iterator[Attachment]:
    return (attachment for attachment in attachments_in(metadata) if attachment.path is not None)


def _size(item: Item) -> int:
    return len(item.data) if isinstance(item, Media) else 0


def _media(attachment: Attachment, mime_type: str, data: bytes) -> Media:
    # Its name is a line that a service takes.
    filename = "".join(char if char.isprintable() else "_" for char in attachment.filename)[:200]
    return Media(filename=filename, mime_type=mime_type, data=data)
