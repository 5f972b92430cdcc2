"""Every leaving message arrives, in order, whatever fails or crashes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.adapters import (
    Backoff,
    BackoffPolicy,
    Failed,
    MarkDelivered,
    MarkUndeliverable,
    Plan,
    Refused,
    Send,
    SendFailed,
    SendRefused,
    SurfaceGone,
    Withdrawn,
    deliver,
    deliver_channel,
    next_action,
    next_leaf,
)
from kesoku_actors.errors import NotFound
from kesoku_actors.protocol import Message, Status
from kesoku_actors.store.port import Chunk
from tests.adapters.world import CHANNEL, Crash, MemoryGateway, answer

POLICY = BackoffPolicy()


def chunk(index: int, state: str = "planned", attempts: int = 0) -> Chunk:
    return Chunk(
        message_id="m",
        index=index,
        content=str(index),
        state=state,
        attempts=attempts,
        nonce=f"n{index}",
        remote_id=None,
    )


def action(chunks, last=None, jitter=0.5):
    return next_action(chunks, last, planned=("a", "b"), policy=POLICY, jitter=jitter)


def test_the_plan_comes_before_the_first_send():
    assert action(None) == Plan(chunks=("a", "b"))
    assert action(()) == MarkDelivered()


def test_a_delivery_goes_on_at_the_first_chunk_not_sent():
    assert action((chunk(0, "sent", 1), chunk(1), chunk(2))) == Send(index=1, nonce="n1", is_resend=False)
    assert action((chunk(0, "sent", 1), chunk(1, attempts=1))) == Send(index=1, nonce="n1", is_resend=True)
    assert action((chunk(0, "failed", 3),)) == Send(index=0, nonce="n0", is_resend=True)
    assert action((chunk(0, "sent", 2),)) == MarkDelivered()


def test_a_refusal_ends_a_delivery_at_once():
    assert action((chunk(0, attempts=1),), Refused(reason="unknown channel")) == MarkUndeliverable(
        reason="unknown channel"
    )


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True), st.none() | st.floats(0, 1000))
def test_a_pause_grows_within_bounds_and_respects_what_was_asked_for(attempts, jitter, asked):
    step = action((chunk(0, attempts=attempts),), Failed(retry_after_s=asked), jitter)
    assert isinstance(step, Backoff)
    assert POLICY.first_s / 2 <= step.delay_s <= max(POLICY.longest_s, asked or 0)
    assert step.delay_s >= (asked or 0)


def test_pauses_double_and_are_spread():
    pauses = [POLICY.delay_s(attempts, 0.0, None) for attempts in range(1, 5)]
    assert pauses == [0.25, 0.5, 1.0, 2.0]
    assert POLICY.delay_s(1, 0.99, None) > POLICY.delay_s(1, 0.0, None)


@given(st.permutations([1, 2, 3, 4]))
def test_the_oldest_pending_message_leaves_first(order):
    rows = [answer(seq, "m0", "text") for seq in order]
    rows[order.index(1)] = rows[order.index(1)].moved(Status.DELIVERED)
    leaf = next_leaf(rows)
    assert leaf is not None
    assert leaf.seq == 2
    assert next_leaf(()) is None


FATE = st.sampled_from(["ok", "ok", "ok", "fails", "crash"])


@given(st.lists(FATE, max_size=60), st.lists(st.integers(1, 3), min_size=1, max_size=3))
async def test_each_chunk_arrives_in_order_and_twice_only_around_a_crash(fates, sizes):
    """Messages of several chunks; each probe and each send takes the next fate."""
    fate = itertools.chain(fates, itertools.repeat("ok"))
    gateway = MemoryGateway(probe=lambda _place: crash_if(fate))
    for seq, size in enumerate(sizes, 1):
        gateway.put(answer(seq, "m0", "".join("abc"[:size])))
    arrived: list[tuple[str, int]] = []
    in_doubt: list[tuple[str, int]] = []
    nonces: dict[tuple[str, int], set[str]] = {}

    async def send(message: Message, chunk: Chunk) -> str | None:
        happens = next(fate)
        if happens == "fails":
            raise SendFailed("the network is down")
        key = (message.id, chunk.index)
        nonces.setdefault(key, set()).add(chunk.nonce)
        if key in arrived:
            assert chunk.attempts > 1
        arrived.append(key)
        if happens == "crash":
            raise Crash
        return f"remote {chunk.index}"

    async def no_pause(_seconds: float) -> None:
        return

    while gateway.statuses() and Status.PENDING in gateway.statuses().values():
        before = len(arrived)
        try:
            await deliver_channel(CHANNEL, gateway, send, jitter=lambda: 0.5, split=tuple, sleep=no_pause)
        except Crash:
            unsent = [
                (m, c.index) for m, chunks in gateway.chunks.items() for c in chunks.values() if c.state != "sent"
            ]
            in_doubt += [key for key in arrived[before:] if key in unsent]
    wanted = [(f"m{seq}", index) for seq, size in enumerate(sizes, 1) for index in range(size)]
    assert [key for key, _again in itertools.groupby(arrived)] == wanted
    assert len(arrived) == len(wanted) + len(in_doubt)
    assert all(len(given) == 1 for given in nonces.values())
    assert set(gateway.statuses().values()) == {Status.DELIVERED}
    assert all(c.remote_id == f"remote {c.index}" for chunks in gateway.chunks.values() for c in chunks.values())


def crash_if(fate: Iterator[str]) -> None:
    if next(fate) == "crash":
        raise Crash


async def test_a_refused_message_does_not_hold_up_the_next():
    gateway = MemoryGateway()
    gateway.put(answer(1, "m0", "too rude"), answer(2, "m0", "fine"))
    shown = []

    async def send(message: Message, chunk: Chunk) -> str | None:
        if message.id == "m1":
            raise SendRefused("blocked by the platform")
        shown.append(chunk.content)
        return None

    assert await deliver_channel(CHANNEL, gateway, send, jitter=lambda: 0.0) == 2
    assert shown == ["fine"]
    assert gateway.statuses() == {"m1": Status.UNDELIVERABLE, "m2": Status.DELIVERED}
    assert gateway.refusals == {"m1": "blocked by the platform"}


async def test_a_failing_channel_waits_longer_each_time(autojump_clock):
    gateway, failures, pauses = MemoryGateway(), iter([None, 5.0, None]), []
    gateway.put(answer(1, "m0", "text"))

    async def send(_chunk: Chunk) -> str | None:
        for asked in failures:
            raise SendFailed("busy", retry_after_s=asked)
        return "r"

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    ended = await deliver(gateway.rows["m1"], gateway, send, jitter=lambda: 0.0, sleep=sleep)
    assert ended == MarkDelivered()
    assert pauses == [0.25, 5.0, 1.0]


async def test_a_surface_that_is_gone_leaves_the_message_pending():
    gateway = MemoryGateway()
    gateway.put(answer(1, "m0", "text"))

    async def send(_chunk: Chunk) -> str | None:
        raise SurfaceGone("nobody reads")

    with pytest.raises(SurfaceGone):
        await deliver(gateway.rows["m1"], gateway, send, jitter=lambda: 0.0)
    assert gateway.statuses() == {"m1": Status.PENDING}


@pytest.mark.parametrize("place", ["plan", "attempt", "sent"])
async def test_a_message_that_is_cleared_meanwhile_is_withdrawn_and_holds_nothing_up(place):
    class Cleared(MemoryGateway):
        """Its first message is gone when a method of this name is called."""

        def look(self, called: str, message_id: str) -> None:
            if message_id == "m1" and called == place:
                self.rows.pop(message_id, None)
                raise NotFound("there is no such message")

        async def plan_delivery(self, message_id, chunks):
            self.look("plan", message_id)
            return await super().plan_delivery(message_id, chunks)

        async def chunk_attempt(self, message_id, index):
            self.look("attempt", message_id)
            return await super().chunk_attempt(message_id, index)

        async def chunk_sent(self, message_id, index, remote_id=None):
            self.look("sent", message_id)
            return await super().chunk_sent(message_id, index, remote_id)

    gateway = Cleared()
    gateway.put(answer(1, "m0", "one"), answer(2, "m0", "two"))

    async def send(_message: Message, _chunk: Chunk) -> str | None:
        return None

    message = gateway.rows["m1"]
    assert await deliver(message, gateway, partial(send, message), jitter=lambda: 0.0) == Withdrawn()
    assert await deliver_channel(CHANNEL, gateway, send, jitter=lambda: 0.0) == 1
    assert gateway.statuses() == {"m2": Status.DELIVERED}


async def test_a_blank_message_is_delivered_without_a_chunk():
    gateway = MemoryGateway()
    gateway.put(answer(1, "m0", " \n"))

    async def send(_chunk: Chunk) -> str | None:
        raise AssertionError("there is nothing to send")

    assert await deliver(gateway.rows["m1"], gateway, send, jitter=lambda: 0.0) == MarkDelivered()
