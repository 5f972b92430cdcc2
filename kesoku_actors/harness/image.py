"""What a disk holds when the power comes back: pieces of files, and which of them survive. Pure.

A file is its *durable* bytes and the *pieces* done to it since the last sync, in order. A written block is cut at
sector boundaries, so that a torn write is simply one of whose sectors some survived. What survives a power loss is
chosen per piece:

* `NOTHING`: the disk had everything in its cache;
* `EVERYTHING`: nothing was lost, as when only the process dies;
* `PREFIX`: the disk wrote in order and stopped somewhere;
* `SUBSET`: the disk wrote in any order: what came later may be there without what came before.

Laws: what was durable and is not written over is there, whatever survives; pieces that survive are applied in the order
in which they were done, because the cache above the disk holds only the newest content of a sector.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Final, assert_never

from attrs import frozen

SECTOR_BYTES: Final = 512

Survival = Callable[[random.Random, int], Iterable[int]]
"""Given how many pieces there are, returns in ascending order the numbers (from 0) of those that survive."""


@frozen
class Block:
    """Bytes written at an offset; within one sector once it is cut."""

    offset: int
    data: bytes


@frozen
class Cut:
    """The file was truncated to `size` bytes."""

    size: int


@frozen
class Removal:
    """The file's name was removed."""


Piece = Block | Cut | Removal
Image = bytes | None
"""A file's content; none: there is no such file."""


def torn(pieces: Iterable[Piece], sector_bytes: int = SECTOR_BYTES) -> Iterator[Piece]:
    """Cut written blocks at sector boundaries; other pieces are whole or not at all."""
    for piece in pieces:
        if not isinstance(piece, Block):
            yield piece
            continue
        begin, end = piece.offset, piece.offset + len(piece.data)
        while begin < end:
            stop = min(end, (begin // sector_bytes + 1) * sector_bytes)
            yield Block(begin, piece.data[begin - piece.offset : stop - piece.offset])
            begin = stop


def applied(image: Image | bytearray, pieces: Iterable[Piece]) -> Image:
    """Return the content after `pieces`: a write makes the file if need be, what it skips over reads as zeros."""
    content = changed(None if image is None else bytearray(image), pieces)
    return None if content is None else bytes(content)


def changed(content: bytearray | None, pieces: Iterable[Piece]) -> bytearray | None:
    """As `applied`, in place: it takes as long as what is written is, however much there is. Return the content."""
    for piece in pieces:
        match piece:
            case Block(offset=offset, data=data):
                content = bytearray() if content is None else content
                content.extend(bytes(max(0, offset - len(content))))
                content[offset : offset + len(data)] = data
            case Cut(size=size):
                if content is not None:
                    del content[size:]
                    content.extend(bytes(size - len(content)))
            case Removal():
                content = None
            case _:
                assert_never(piece)
    return content


def nothing(_rng: random.Random, _count: int) -> Iterable[int]:
    """No piece survives."""
    return ()


def everything(_rng: random.Random, count: int) -> Iterable[int]:
    """Every piece survives."""
    return range(count)


def prefix(rng: random.Random, count: int) -> Iterable[int]:
    """The first few survive."""
    return range(rng.randint(0, count))


def subset(rng: random.Random, count: int) -> Iterable[int]:
    """Each survives or not."""
    return [number for number in range(count) if rng.random() < 0.5]


NOTHING: Final[Survival] = nothing
EVERYTHING: Final[Survival] = everything
PREFIX: Final[Survival] = prefix
SUBSET: Final[Survival] = subset
SURVIVALS: Final = (NOTHING, EVERYTHING, PREFIX, SUBSET)
