"""Saving files that come with messages (M8), inside a workspace that tools write to as well.

Invariants: a file is beneath `attachments/` of the workspace and nowhere else, as no link is followed on the way (it is
0600, the folder 0700: T6); it has its name only when it is whole and on the disk; one that is too large or broken off
leaves nothing behind; none replaces another, however many of one name come at once (case rows A01 to A03).

The name is reserved by the partial file, `.NAME.part`, which only one can create; whoever has it sees every file that
was finished under the name before.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import BinaryIO, Final, Protocol, TypeVar

import trio

from kesoku_actors.errors import PeerError
from kesoku_actors.files.kinds import HEAD_BYTES, mime_type_of
from kesoku_actors.files.names import numbered, safe_name
from kesoku_actors.gateway import Gateway
from kesoku_actors.log import Logger
from kesoku_actors.protocol import Message, attachments_in
from kesoku_actors.store.again import until_answered
from kesoku_actors.values import frozen

FOLDER: Final = "attachments"
LARGEST: Final = 25 << 20
"""Bytes of one attachment."""

_BENEATH: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

T = TypeVar("T")


class NotSaved(PeerError):
    """A file could not be saved; the text is the reason, told to people and to the model."""


class Run(Protocol):
    """Runs what waits for a disk."""

    def __call__(self, call: Callable[[], T], /) -> Awaitable[T]: ...


async def in_thread(call: Callable[[], T]) -> T:
    """Run a call beside the event loop."""
    return await trio.to_thread.run_sync(call)


@frozen(kw_only=True)
class SavedFile:
    """A file that was saved."""

    path: str
    """Relative to the workspace."""
    mime_type: str
    size: int
    """Bytes."""


def save(workspace: Path, filename: str, pieces: Iterable[bytes], *, largest: int = LARGEST) -> SavedFile:
    """Save what `pieces` yield under a name made of `filename`. Raises `NotSaved`, also when `pieces` raise `OSError`.

    The workspace must exist. Blocks until the file is on the disk.
    """
    try:
        with _folder(workspace) as folder:
            return _save(folder, safe_name(filename), pieces, largest)
    except OSError as problem:
        raise NotSaved(os.strerror(problem.errno) if problem.errno else str(problem)) from problem


def discard(workspace: Path, saved: SavedFile) -> None:
    """Remove a saved file that no message names; one that is gone already is no error."""
    with suppress(OSError), _folder(workspace) as folder:
        os.unlink(Path(saved.path).name, dir_fd=folder)


async def receive(
    message: Message,
    index: int,
    pieces: Iterable[bytes],
    *,
    gateway: Gateway,
    workspace: Path,
    log: Logger,
    largest: int = LARGEST,
    run: Run = in_thread,
) -> None:
    """Save an attachment that `message` expects and settle it, as saved or with the reason why not."""
    filename = attachments_in(message.metadata)[index].filename
    settle = partial(gateway.settle_attachment, message.id, index)
    try:
        saved = await run(partial(save, workspace, filename, pieces, largest=largest))
    except NotSaved as problem:
        log.warning("an attachment was not saved", message=message.id, index=index, reason=str(problem))
        await until_answered(partial(settle, reason=str(problem)), log, "settle an attachment")
        return
    settled = partial(settle, path=saved.path, mime_type=saved.mime_type)
    now = await until_answered(settled, log, "settle an attachment")
    if now is None or attachments_in(now.metadata)[index].path != saved.path:
        await run(partial(discard, workspace, saved))


@contextmanager
def _folder(workspace: Path) -> Iterator[int]:
    """Open the folder of attachments, made if need be."""
    top = os.open(workspace, _BENEATH)
    try:
        with suppress(FileExistsError):
            os.mkdir(FOLDER, 0o700, dir_fd=top)
        folder = os.open(FOLDER, _BENEATH, dir_fd=top)
    finally:
        os.close(top)
    try:
        yield folder
    finally:
        os.close(folder)


def _save(folder: int, wanted: str, pieces: Iterable[bytes], largest: int) -> SavedFile:
    name, file = _reserve(folder, wanted)
    try:
        with os.fdopen(file, "wb") as stream:
            head, size = _copy(pieces, stream, largest)
            stream.flush()
            os.fsync(file)
        os.rename(_part(name), name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(_part(name), dir_fd=folder)
        raise
    os.fsync(folder)
    return SavedFile(path=f"{FOLDER}/{name}", mime_type=mime_type_of(head, name), size=size)


def _reserve(folder: int, wanted: str) -> tuple[str, int]:
    """Return the first free name and its partial file, open for writing."""
    for number in count(1):
        name = numbered(wanted, number)
        try:
            file = os.open(_part(name), _NEW, 0o600, dir_fd=folder)
        except FileExistsError:
            continue
        if not _is_there(folder, name):
            return name, file
        os.close(file)
        os.unlink(_part(name), dir_fd=folder)
    raise AssertionError("numbers do not end")


def _copy(pieces: Iterable[bytes], stream: BinaryIO, largest: int) -> tuple[bytes, int]:
    """Return how the file begins and its size. Raises `NotSaved` as soon as it is too large."""
    head, size = b"", 0
    for piece in pieces:
        size += len(piece)
        if size > largest:
            raise NotSaved(f"it is larger than {largest >> 20} MiB")
        head += piece[: HEAD_BYTES - len(head)]
        stream.write(piece)
    return head, size


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _part(name: str) -> str:
    return f".{name}.part"
