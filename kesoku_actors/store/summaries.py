"""Summaries of older turns: what a compaction made is stored whole or not at all, and read as a tree.

Invariants: no message is touched. A summary stands for turns that have ended and whose calls have their results; an
open call pins its turn. Those the model reads never overlap. A summary gets one parent, ever.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import apsw

from kesoku_actors.protocol import SessionState
from kesoku_actors.protocol.summaries import Summary
from kesoku_actors.store import queries
from kesoku_actors.store.port import StoreSummaries
from kesoku_actors.store.sql import Row, select
from kesoku_actors.store.transaction import Session, Transaction

_COLUMNS: Final = (
    "id, level, first_root_seq, first_place, last_root_seq, last_place, content, parent_id, provider, model, created,"
    " tokens_before, tokens_after"
)
_OPEN_MESSAGE: Final = (
    "SELECT 1 FROM messages INDEXED BY messages_open WHERE session_no = ?"
    " AND status IN ('pending_agent', 'processing') AND root_seq BETWEEN ? AND ? LIMIT 1"
)
_OPEN_CALL: Final = "SELECT 1 FROM calls WHERE session_no = ? AND published = 0 AND root_seq BETWEEN ? AND ? LIMIT 1"


def store_summaries(tx: Transaction, command: StoreSummaries) -> bool:
    """Store what a compaction made, if it still fits; sent again it changes nothing and stands."""
    session = tx.known_session(command.session_id)
    if session is None or session.state is not SessionState.OPEN:
        return False
    if tx.one("SELECT 1 FROM summaries WHERE id = ?", (command.summaries[0].id,)):
        return True
    if not _fits(tx, session, command.summaries):
        return False
    for summary in command.summaries:
        _insert(tx, session, summary)
    for summary in command.summaries:
        for child in summary.children:
            tx.execute("UPDATE summaries SET parent_id = ? WHERE id = ?", (summary.id, child))
    return True


def of_session(connection: apsw.Connection, session_id: str) -> tuple[Summary, ...]:
    """Return a session's summaries, each before those it stands for, in the order of the history."""
    no = queries.session_no(connection, session_id)
    order = "ORDER BY first_root_seq, first_place, level DESC"
    rows = select(connection, f"SELECT {_COLUMNS} FROM summaries WHERE session_no = ? {order}", (no,))
    children: dict[str | None, list[str]] = {}
    for row in rows:
        children.setdefault(row[7], []).append(row[0])
    return tuple(_summary_of(row, tuple(children.get(row[0], ()))) for row in rows)


def _fits(tx: Transaction, session: Session, new: tuple[Summary, ...]) -> bool:
    """Tell whether the summaries read afterwards would stand side by side, over turns that have ended."""
    known = {each.id: each for each in of_session(tx.connection, session.id)}
    together = {**known, **{each.id: each for each in new}}
    adopted = [child for each in new for child in each.children]
    if len(set(adopted)) != len(adopted) or any(
        child not in together or together[child].parent_id is not None for child in adopted
    ):
        return False
    read = [each for each in together.values() if each.parent_id is None and each.id not in adopted]
    read.sort(key=lambda each: each.first)
    if any(after.first <= before.last for before, after in pairwise(read)):
        return False
    span = (session.no, min(each.first[0] for each in new), max(each.last[0] for each in new))
    return tx.first(_OPEN_MESSAGE, span) is None and tx.first(_OPEN_CALL, span) is None


def _insert(tx: Transaction, session: Session, summary: Summary) -> None:
    values: Row = (
        summary.id,
        session.no,
        summary.level,
        *summary.first,
        *summary.last,
        summary.content,
        summary.provider,
        summary.model,
        summary.created,
        summary.tokens_before,
        summary.tokens_after,
    )
    columns = _COLUMNS.replace("id, level", "id, session_no, level", 1).replace(" parent_id,", "")
    tx.execute(f"INSERT INTO summaries ({columns}) VALUES ({', '.join('?' * len(values))})", values)


def _summary_of(row: Row, children: tuple[str, ...]) -> Summary:
    id, level, first_root, first_place, last_root, last_place, content, parent_id, *rest = row
    provider, model, created, before, after = rest
    return Summary(
        id=id,
        level=level,
        first=(first_root, first_place),
        last=(last_root, last_place),
        content=content,
        children=children,
        parent_id=parent_id,
        provider=provider,
        model=model,
        created=created,
        tokens_before=before,
        tokens_after=after,
    )
