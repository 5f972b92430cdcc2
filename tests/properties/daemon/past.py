"""A database in which much has happened before: more rows, and more removals, than are read at once (B1)."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Final

import apsw

from kesoku_actors.clock import Clock, IdSource
from kesoku_actors.protocol import Inbound, Message
from kesoku_actors.store import Durability, MarkDelivered, Post, Posted, PostNotice, WithdrawMessage
from kesoku_actors.store.engine import Engine
from kesoku_actors.store.opening import open_store
from kesoku_actors.store.transaction import Rules

TIMES: Final = 300
"""More than the 256 rows of a page."""


def long_past() -> bytes:
    """Return a database, closed in order, in which as many notices were delivered as messages were withdrawn.

    Not to be called in a run: files of its own are made.
    """
    clock = Clock(wall=lambda: 1.0, monotonic=lambda: 1.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "past.db"
        store = open_store(
            path,
            durability=Durability.NORMAL,
            connect=lambda path, flags: apsw.Connection(str(path), flags=flags),
            now=1.0,
            warn=lambda _line: None,
        )
        with store as opened:
            engine = Engine(
                connection=opened.connection,
                clock=clock,
                ids=IdSource(clock=clock, rng=random.Random(0)),
                rules=Rules(max_waiting=TIMES),
                life="past",
                probe=lambda _point: None,
            )
            _live_through(engine)
            opened.end_in_order()
        return path.read_bytes()


def _live_through(engine: Engine) -> None:
    """Let messages be said, notices be delivered, and then the messages be withdrawn: a page of changed rows ends long
    before one of removed rows does."""
    inbound = [
        Inbound(chatbot_id="bot", channel_id="past", sender="Ada", content="hello", external_id=f"past {number}")
        for number in range(TIMES)
    ]
    said = [
        reply.message
        for reply in engine.run([Post(id=one.external_id or "", inbound=one) for one in inbound])[0]
        if isinstance(reply, Posted)
    ]
    notices = [PostNotice(session_id=one.session_id, content="told") for one in said]
    told = [reply for reply in engine.run(notices)[0] if isinstance(reply, Message)]
    engine.run([MarkDelivered(message_id=one.id, delivered=True) for one in told])
    engine.run([WithdrawMessage(message_id=one.id) for one in said])
