"""Titles of sessions: the first words at once, what a model proposes later, and only in the place of those."""

from __future__ import annotations

from kesoku_actors.protocol import SessionState
from kesoku_actors.store.port import SetTitle
from kesoku_actors.store.transaction import Transaction


def set_title(tx: Transaction, command: SetTitle) -> bool:
    """Replace the title of an open session, if it is still the one that the new one was made for."""
    session = tx.known_session(command.session_id)
    if session is None or session.state is not SessionState.OPEN or session.title != command.instead_of:
        return False
    session.title = command.title
    return True
