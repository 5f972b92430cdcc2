"""Deliveries (C5, O2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesoku_actors.errors import NotFound
from kesoku_actors.protocol import Message, Status
from kesoku_actors.store import ChunkAttempt, ChunkSent, MarkDelivered, PlanDelivery
from tests.store.home import ROOM, Home, living


async def answered(home: Home) -> Message:
    key, root = await home.begin()
    return (await home.answer(key, root)).rows[0]


async def test_c5_the_first_plan_stands_and_a_nonce_stays_the_same(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        answer = await answered(home)
        plan = await home.store.plan_delivery(PlanDelivery(message_id=answer.id, chunks=("a", "b")))
        assert [(chunk.index, chunk.content, chunk.state, chunk.attempts) for chunk in plan] == [
            (0, "a", "planned", 0),
            (1, "b", "planned", 0),
        ]
        assert len({chunk.nonce for chunk in plan}) == 2
        assert all(len(chunk.nonce) <= 25 for chunk in plan)
        assert await home.store.plan_delivery(PlanDelivery(message_id=answer.id, chunks=("other",))) == plan
        again = await home.store.chunk_attempt(ChunkAttempt(message_id=answer.id, index=1))
        assert (again.attempts, again.nonce) == (1, plan[1].nonce)


async def test_c5_a_restarted_adapter_goes_on_at_the_first_part_not_sent(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        answer = await answered(home)
        await home.store.plan_delivery(PlanDelivery(message_id=answer.id, chunks=("a", "b")))
        await home.store.chunk_attempt(ChunkAttempt(message_id=answer.id, index=0))
        await home.store.chunk_sent(ChunkSent(message_id=answer.id, index=0, remote_id="r0"))
        await home.store.chunk_sent(ChunkSent(message_id=answer.id, index=0, remote_id="other"))
    async with living(tmp_path / "k.db", seed=1) as home:
        assert await home.reader.leaving(ROOM) == (answer,)
        first, second = await home.reader.chunks(answer.id)
        assert (first.state, first.attempts, first.remote_id) == ("sent", 1, "r0")
        assert (second.state, second.remote_id) == ("planned", None)


async def test_c5_a_message_leaves_once(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        answer = await answered(home)
        assert await home.store.mark_delivered(MarkDelivered(message_id=answer.id, delivered=True))
        now = await home.now(answer)
        assert (now.status, now.metadata) == (Status.DELIVERED, answer.metadata)
        assert [row.id for row in home.published().changed] == [answer.id]
        assert not await home.store.mark_delivered(MarkDelivered(message_id=answer.id, delivered=False))
        assert await home.reader.leaving(ROOM) == ()


async def test_c5_what_can_never_leave_says_why(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        answer = await answered(home)
        await home.store.plan_delivery(PlanDelivery(message_id=answer.id, chunks=("a", "b")))
        await home.store.chunk_sent(ChunkSent(message_id=answer.id, index=0))
        await home.store.mark_delivered(MarkDelivered(message_id=answer.id, delivered=False, detail="forbidden"))
        now = await home.now(answer)
        assert (now.status, now.metadata["delivery"]) == (Status.UNDELIVERABLE, "forbidden")
        assert [chunk.state for chunk in await home.reader.chunks(answer.id)] == ["sent", "failed"]


async def test_what_was_never_planned_cannot_be_sent(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        answer = await answered(home)
        with pytest.raises(NotFound):
            await home.store.chunk_sent(ChunkSent(message_id=answer.id, index=0))
        with pytest.raises(NotFound):
            await home.store.plan_delivery(PlanDelivery(message_id="unknown", chunks=("a",)))
        assert not await home.store.mark_delivered(MarkDelivered(message_id="unknown", delivered=True))


async def test_o2_a_channel_hears_in_order_of_seq(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        first, second = await answered(home), await answered(home)
        assert await home.reader.leaving(ROOM) == (first, second)
