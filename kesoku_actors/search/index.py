"""The index: a SQLite file with FTS5, beside the store and made from it. Synchronous; knows nothing of tasks.

Invariants:

* it holds nothing that the store does not: it may be deleted at any time, and is made anew when it is damaged;
* its cursor is a `rev` of the store, moved in the transaction that brings the index there; a batch read at another
  cursor is not taken, so that several processes may keep one index up to date;
* what left the store leaves no trace in the file (`secure_delete`, and FTS5's own for its segments). There is no
  write-ahead log: pages of before would stay in it for as long as somebody reads;
* a text that did not change is not split into words again, however often its row did.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import apsw

from kesoku_actors.errors import Fault
from kesoku_actors.protocol import Message, Role, Type
from kesoku_actors.store import Publication
from kesoku_actors.values import define, frozen

FORMAT: Final = 1
"""Another one in the file, older or newer: it is made anew."""
_APPLICATION_ID: Final = 0x4B736B73
"""Marks the file as an index of ours: "Ksks"."""
LONGEST_TEXT: Final = 200_000
"""Characters of one message that can be found; of a longer one its beginning."""
_TOKENIZER: Final = "simplify strip true casefold true unicodewords"
_BUSY_MS: Final = 2_000
_SCHEMA: Final = f"""
CREATE TABLE state (name TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;
INSERT INTO state VALUES ('store', NULL), ('rev', 0), ('unicode', ?);
CREATE TABLE entries (
    seq INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL UNIQUE,
    chatbot_id TEXT NOT NULL,
    channel_id TEXT NOT NULL
) STRICT;
CREATE VIRTUAL TABLE words USING fts5 (content, tokenize='{_TOKENIZER}');
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {FORMAT};
"""
_TABLES: Final = ("state", "entries", "words_data", "words_idx", "words_content", "words_docsize", "words_config")
_UNUSABLE: Final = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.FullError,
    apsw.IOError,
    apsw.LockedError,
    apsw.PermissionsError,
    apsw.ReadOnlyError,
)


class IndexDamaged(Fault):
    """The file is no index, or a broken one; `discard` it and make it anew."""


class IndexUnusable(Fault):
    """The file cannot be read or written now: no room, no right, or another process keeps it."""


@frozen(kw_only=True)
class Scope:
    """Whose messages are searched: those of one channel, of one chatbot, or all."""

    chatbot_id: str | None = None
    channel_id: str | None = None


EVERYWHERE: Final = Scope()


@define(eq=False)
class Index:
    """One open index. Methods raise `IndexDamaged` and `IndexUnusable`; nothing of a batch that failed is kept."""

    path: Path | None
    connection: apsw.Connection
    _file: tuple[int, int] | None

    def is_there(self) -> bool:
        """Tell whether the file that is open is the one its name leads to: somebody may have deleted it."""
        return self._file is None or self._file == _identity(self.path)

    def cursor(self) -> tuple[str | None, int]:
        """Return which store this was made from, and the `rev` up to which it was."""
        with _errors():
            rows = self.connection.execute("SELECT name, value FROM state WHERE name IN ('rev', 'store') ORDER BY name")
            match rows.fetchall():
                case [("rev", int(rev)), ("store", (str() | None) as store)]:
                    return store, rev
                case _:
                    raise IndexDamaged("its cursor is gone")

    def newest(self) -> tuple[str, int] | None:
        """Return the id and the `seq` of its newest entry, or none when it is empty."""
        with _errors():
            row = self._first("SELECT message_id, seq FROM entries ORDER BY seq DESC LIMIT 1", ())
        return (row[0], row[1]) if row is not None else None

    def take(self, store: str, batch: Publication) -> bool:
        """Bring the index from `batch.base` to `batch.rev`, whole; false when it does not stand at `base` any more."""
        with self._writing():
            known, rev = self.cursor()
            if rev != batch.base or known not in (None, store):
                return False
            for message_id, _session, _rev in batch.removed:
                self._remove(message_id)
            for message in batch.changed:
                self._put(message)
            self._execute("UPDATE state SET value = ? WHERE name = 'store'", (store,))
            self._execute("UPDATE state SET value = ? WHERE name = 'rev'", (batch.rev,))
        return True

    def find(self, expression: str, scope: Scope, limit: int) -> tuple[str, ...]:
        """Return the ids of the messages that match, the best first, of two as good the newer."""
        of = [
            (f"entries.{name} = ?", value)
            for name, value in (("chatbot_id", scope.chatbot_id), ("channel_id", scope.channel_id))
            if value is not None
        ]
        # From the words to the entries: the other way round every entry would be asked for its words.
        join = "CROSS JOIN entries ON entries.seq = words.rowid"
        where = "".join(f" AND {condition}" for condition, _ in of)
        best = f"SELECT entries.message_id FROM words {join} WHERE words MATCH ?{where} ORDER BY rank, seq DESC LIMIT ?"
        with _errors():
            values = (expression, *(value for _, value in of), limit)
            return tuple(str(message_id) for (message_id,) in self.connection.execute(best, values).fetchall())

    def check(self) -> None:
        """Raise `IndexDamaged` unless the pages hang together. What this does not see, a search may run into."""
        # Table by table: of the whole, SQLite would have FTS5 split every text into words again.
        with _errors():
            for table in _TABLES:
                row = self._first(f"PRAGMA quick_check('{table}')", ())
                if row is None or row[0] != "ok":
                    raise IndexDamaged(f"{table}: {row[0] if row else 'nothing is known of it'}")

    def close(self) -> None:
        """Close the file; an index that was never written to may have none."""
        with suppress(apsw.Error):
            self.connection.close()

    def _put(self, message: Message) -> None:
        text = text_of(message)[:LONGEST_TEXT]
        row = self._first("SELECT content FROM words WHERE rowid = ?", (message.seq,))
        if row is not None and row[0] == text:
            return
        self._remove(message.id)
        if text:
            values = (message.seq, message.id, message.chatbot_id, message.channel_id)
            self._execute("INSERT INTO entries VALUES (?, ?, ?, ?)", values)
            self._execute("INSERT INTO words (rowid, content) VALUES (?, ?)", (message.seq, text))

    def _remove(self, message_id: str) -> None:
        row = self._first("DELETE FROM entries WHERE message_id = ? RETURNING seq", (message_id,))
        if row is not None:
            self._execute("DELETE FROM words WHERE rowid = ?", row)

    def _first(self, sql: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        rows: Sequence[tuple[Any, ...]] = self.connection.execute(sql, values).fetchall()
        return rows[0] if rows else None

    def _execute(self, sql: str, values: tuple[Any, ...]) -> None:
        self.connection.execute(sql, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with _errors():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise


def open_index(path: Path | None) -> Index:
    """Open the index at `path`, made for its owner alone if it is not there (T6); in memory without a path.

    Raises `IndexDamaged` for what is no index of this format, `IndexUnusable`.
    """
    with _errors():
        if path is not None:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600))
        connection = apsw.Connection(":memory:" if path is None else str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            _prepare(connection)
        except BaseException:
            connection.close()
            raise
    return Index(path, connection, _identity(path))


def discard(path: Path) -> None:
    """Delete an index and what SQLite may have left beside it. Raises `IndexUnusable`.

    It is not kept beside: it may hold what was deleted from the store since.
    """
    with _errors():
        for name in (path.name, f"{path.name}-journal", f"{path.name}-wal", f"{path.name}-shm"):
            path.with_name(name).unlink(missing_ok=True)


def _prepare(connection: apsw.Connection) -> None:
    # Its tables of Unicode take a while to load, which a program that searches nothing does without.
    from apsw.fts5 import SimplifyTokenizer, UnicodeWordsTokenizer
    from apsw.unicode import unicode_version

    connection.set_busy_timeout(_BUSY_MS)
    connection.register_fts5_tokenizer("simplify", SimplifyTokenizer)
    connection.register_fts5_tokenizer("unicodewords", UnicodeWordsTokenizer)  # type: ignore[arg-type]  # as documented
    connection.pragma("secure_delete", True)
    connection.pragma("synchronous", "NORMAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = connection.pragma("user_version")
        if version == 0 and not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
            connection.execute(_SCHEMA, (unicode_version,)).fetchall()
        elif version != FORMAT or connection.pragma("application_id") != _APPLICATION_ID:
            raise IndexDamaged(f"it has format {version}, not {FORMAT}")
        # Another version may end words elsewhere: what one put in, the other would not find to take it out.
        split_by = connection.execute("SELECT value FROM state WHERE name = 'unicode'").fetchall()
        if split_by != [(unicode_version,)]:
            raise IndexDamaged("its words are those of another version of Unicode")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def text_of(message: Message) -> str:
    """Return what of a message can be found: what was said, and what a tool was asked and answered; no thoughts."""
    match message.type:
        case Type.THOUGHT:
            return ""
        case Type.TOOL_CALL:
            return " ".join([str(message.metadata["tool_name"]), *_strings(message.metadata["tool_arguments"])])
        case Type.TEXT | Type.TOOL_RESULT:
            return "" if message.role is Role.SYSTEM else message.content


def _strings(value: object) -> Iterator[str]:
    """Yield the texts in JSON data, keys left out."""
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _strings(inner)
        case list():
            for inner in value:
                yield from _strings(inner)
        case _:
            return


def _identity(path: Path | None) -> tuple[int, int] | None:
    if path is None:
        return None
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


@contextmanager
def _errors() -> Iterator[None]:
    """Tell what passes by itself or needs a person from what a new index puts right."""
    try:
        yield
    except _UNUSABLE as error:
        raise IndexUnusable(f"the search index cannot be used: {error}") from error
    except (apsw.Error, UnicodeError) as error:  # a damaged page may hold a text that is none
        raise IndexDamaged(str(error)) from error
    except OSError as error:
        raise IndexUnusable(f"the search index cannot be used: {error.strerror}") from error
