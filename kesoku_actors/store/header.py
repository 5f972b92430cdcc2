"""The beginning of a SQLite file, read without opening it as a database (C8).

https://www.sqlite.org/fileformat.html#the_database_header
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import BinaryIO, Final

from kesoku_actors.store import faults
from kesoku_actors.store.port import StoreDamaged
from kesoku_actors.store.schema import APPLICATION_ID, SCHEMA
from kesoku_actors.values import frozen

_MAGIC: Final = b"SQLite format 3\x00"
_BYTES: Final = 100
_FIRST_PAGE_BYTES: Final = 8
"""The header of the first page, behind that of the file: its kind and how many tables and indexes it names."""
_LEAF: Final = 0x0D


@frozen(kw_only=True)
class Header:
    """What the header says of the file."""

    page_size: int
    pages: int
    """Zero when it is not kept up to date."""
    schema: int
    application_id: int
    has_tables: bool


def check_header(path: Path, file: BinaryIO) -> Header | None:
    """Return what the header says, or none when there is none yet.

    Raises `StoreDamaged` unless the file is empty, or a whole database of ours that is not newer than we are.
    Beside a rollback journal the file may be half made: the power went while SQLite made the database, or gave it its
    first page. SQLite takes that back before anything is read.
    """
    # In this order: whoever makes the database meanwhile gives it its first page before it has a log.
    has_log, is_half_made = has_beside(path, "-wal"), has_beside(path, "-journal")
    size = os.fstat(file.fileno()).st_size
    if size == 0:
        if has_log:
            raise faults.damaged(path, "it is empty beside a write-ahead log")
        return None
    raw = file.read(_BYTES + _FIRST_PAGE_BYTES)
    if len(raw) < _BYTES or raw[:16] != _MAGIC:
        if is_half_made:
            return None
        raise StoreDamaged(f"{path} is not a database; it was left untouched: name another file in `db_path`")
    header = _parse(raw)
    if header.schema > SCHEMA:
        raise StoreDamaged(
            f"{path} has schema {header.schema}, newer than this program ({SCHEMA}); use the newer program"
        )
    # Ours gets its tables, its mark and its schema at once.
    if (header.schema or header.has_tables) and header.application_id != APPLICATION_ID:
        raise StoreDamaged(f"{path} is a database of another program; name another file in `db_path`")
    # Beside a log the file may be shorter than it says: a checkpoint writes its first page first.
    if not has_log and not is_half_made and size < header.pages * header.page_size:
        raise faults.damaged(path, f"it has {size} bytes of {header.pages * header.page_size}")
    return header


def has_beside(path: Path, suffix: str) -> bool:
    """Whether there is a file of this name beside the database, with something in it."""
    try:
        return path.with_name(path.name + suffix).stat().st_size > 0
    except FileNotFoundError:
        return False


def _parse(raw: bytes) -> Header:
    (page_size,) = struct.unpack_from(">H", raw, 16)
    changes, pages = struct.unpack_from(">II", raw, 24)
    user_version, application_id = struct.unpack_from(">I4xI", raw, 60)
    (valid_for,) = struct.unpack_from(">I", raw, 92)
    kind, cells = struct.unpack_from(">B2xH", raw.ljust(_BYTES + _FIRST_PAGE_BYTES, b"\0"), _BYTES)
    return Header(
        page_size=65536 if page_size == 1 else page_size,
        pages=pages if valid_for == changes else 0,
        schema=user_version,
        application_id=application_id,
        has_tables=kind != _LEAF or cells > 0,
    )
