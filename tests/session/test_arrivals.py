"""M8: who waits for the files of a prompt hears of each change of them."""

from __future__ import annotations

import trio
import trio.testing
from attrs import evolve
from trio.testing import MockClock

from kesoku_actors.protocol import Message, Role, Status, Type, expected
from kesoku_actors.session.arrivals import Bell, wait_for_files
from kesoku_actors.session.history import History

EXPECTED = Message(
    id="m1",
    seq=1,
    rev=1,
    session_id="s1",
    chatbot_id="bot",
    channel_id="room",
    external_id=None,
    sender="Ada",
    role=Role.USER,
    type=Type.TEXT,
    status=Status.PROCESSING,
    content="Look.",
    parent_id=None,
    root_id="m1",
    place=1,
    timestamp=1.0,
    metadata={"attachments": [expected("a.png", "image/png").as_data()]},
)


async def test_a_wait_that_is_given_up_before_it_begins_takes_the_ring_from_nobody(autojump_clock: MockClock) -> None:
    bell, history, stored = Bell(), History(), [EXPECTED]
    history.add(stored)
    assert history.awaiting == ("m1",)

    async def read(_message_id: str) -> Message:
        await trio.lowlevel.checkpoint()
        return stored[-1]

    async def wait(scope: trio.CancelScope) -> None:
        with scope:
            await wait_for_files(history, bell, read)

    begun, given_up = trio.current_time(), trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, trio.CancelScope())
        await trio.testing.wait_all_tasks_blocked()
        given_up.cancel()
        await wait(given_up)
        saved = {"path": "attachments/a.png", "mime_type": "image/png", "filename": "a.png"}
        stored.append(evolve(EXPECTED, rev=2, metadata={"attachments": [saved]}))
        bell.ring()
    assert trio.current_time() - begun < 1.0
