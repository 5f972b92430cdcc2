"""Titles of sessions: the first words at once, what a model proposes later, and only in the place of those."""

from __future__ import annotations

from kesoku_actors.store.port import SetTitle
from kesoku_actors.store.transaction import Transaction


def set_title(tx: Transaction, command: SetTitle) -> bool:
    """Replace the title of an open session, if it is still the one that the new one was made for."""
    sql = "UPDATE sessions SET title = ? WHERE id = ? AND title = ? AND state = 'open' RETURNING 1"
    return tx.one(sql, (command.title, command.session_id, command.instead_of)) is not None
