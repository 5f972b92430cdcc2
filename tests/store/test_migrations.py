"""A store of an earlier program is taken over with everything in it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw

from kesoku_actors.protocol import CallState, Reason, StepState
from kesoku_actors.store import (
    Commit,
    GiveBack,
    Gone,
    OpenCall,
    Post,
    Posted,
    RegisterWorker,
    ResultMode,
    Taking,
    WithdrawMessage,
)
from kesoku_actors.store.port import PostRefused
from tests.store.home import ROOM, done, living, made_by_an_earlier_program, saying, step
from tests.store.test_posting import inbound


async def test_a_store_of_the_first_schema_goes_on_where_it_was_left(tmp_path: Path):
    path = tmp_path / "k.db"
    async with living(path) as home:
        key, root = await home.begin("first")
        await home.stand(key, root, step=step())
        answered = await home.answer(key, root)
        second = await home.say("second")
        claim = Taking(message_id=second.id, reason=Reason.FRESH)
        await home.store.commit(Commit(id="claim", key=key, claim=claim))
        (call,) = await home.call(key, second, "look")
        await home.store.give_back(GiveBack(key=key, clean=False))
        waiting = await home.say("third", external_id="x3")
        head = await home.reader.head()
        changes = await home.reader.changes(0, 100)
        history = await home.reader.history(key.session_id)
    made_by_an_earlier_program(path)
    with closing(apsw.Connection(str(path))) as connection:
        ((attempts, steps),) = connection.execute(
            "SELECT attempts, steps FROM turns WHERE root_seq = ?", (second.seq,)
        ).fetchall()
        assert (attempts, steps) == (1, 1)
        connection.execute("INSERT INTO posts VALUES ('refused', 1, NULL)")
    async with living(path, seed=1) as home:
        assert await home.reader.head() == head
        assert await home.reader.changes(0, 100) == changes
        assert await home.reader.history(key.session_id) == history
        assert [stored.step.state for stored in history.steps] == [StepState.FINISHED] * 3
        key = await home.hire(key.session_id)
        registered = await home.store.register(RegisterWorker(key=key))
        assert registered.returned == (second.id,)
        assert registered.returned_began == root.timestamp
        assert [one.id for one in registered.waiting] == [waiting.id]
        taken = await home.stand(key, None, claim=Taking(message_id=second.id, reason=Reason.RESUMED))
        assert (taken.steps, taken.open_calls) == (1, (OpenCall(call_id=call, state=CallState.COMMITTED),))
        again = await home.store.post(Post(id="p", inbound=inbound(external_id="x3")))
        assert isinstance(again, Posted)
        assert not again.is_new
        assert isinstance(await home.store.post(Post(id="refused", inbound=inbound())), PostRefused)
        assert await home.store.withdraw(WithdrawMessage(message_id=waiting.id))
        assert await home.store.post(Post(id="p", inbound=inbound(external_id="x3"))) == Gone(external_id="x3")
        ended = await home.stand(key, second, insert=(saying("so"),), results=ResultMode.SETTLE, ends=(done(second),))
        assert ended.steps == 1
        assert answered.rows[0].rev < ended.rows[0].rev
        assert await home.reader.open_session(ROOM) == key.session_id
