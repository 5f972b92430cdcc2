"""Programs of a world that goes wrong: an election over a network, work that a crash cuts. Not a test by itself."""

from __future__ import annotations

from typing import Any

import trio

from kesoku_actors.harness.world import World


class Node:
    """Asks its peers for their votes; it gives its own to whoever asks first, or it should."""

    def __init__(self, world: World, name: str, peers: list[str], leaders: list[str]) -> None:
        self.host, self.name, self.peers, self.leaders = world.net.host(name), name, peers, leaders
        self.has_voted = False

    async def serve(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        listener = await self.host.listen(80)
        task_status.started()
        while True:
            stream = await listener.accept()
            await stream.receive_some()
            answer = b"no" if self.has_voted else b"yes"
            await trio.lowlevel.checkpoint()
            self.has_voted = True
            await stream.send_all(answer)
            await stream.aclose()

    async def stand(self) -> None:
        if self.has_voted:
            return
        self.has_voted = True
        votes = 1
        for peer in self.peers:
            stream = await self.host.connect(peer, 80)
            await stream.send_all(self.name.encode())
            votes += await stream.receive_some() == b"yes"
            await stream.aclose()
        if votes > 1:
            self.leaders.append(self.name)


async def election(world: World) -> None:
    """Wrong: a node looks whether it has voted, and votes a step later."""
    names, leaders = ["a", "b", "c"], list[str]()
    nodes = [Node(world, name, [one for one in names if one != name], leaders) for name in names]
    async with trio.open_nursery() as nursery:
        for node in nodes:
            await nursery.start(node.serve, name=f"serve {node.name}")
        async with trio.open_nursery() as standing:
            standing.start_soon(nodes[0].stand, name="a stands")
            standing.start_soon(nodes[1].stand, name="b stands")
        nursery.cancel_scope.cancel()
    assert len(leaders) <= 1, "two leaders"


async def _mail(world: World, mails: list[int]) -> None:
    """Wrong: what was mailed is written down a step later."""
    database: Any = world.disk.connect("app.db")
    database.execute("create table if not exists sent(id integer primary key)")
    done = {number for (number,) in database.execute("select id from sent")}
    for number in range(3):
        if number not in done:
            mails.append(number)
            await trio.lowlevel.checkpoint()
            database.execute("insert into sent values (?)", (number,))


async def mailed_twice_as_the_power_goes(world: World) -> None:
    mails: list[int] = []
    while not await world.life(_mail, world, mails, may_crash=world.crashes < 2):
        pass
    assert len(mails) == len(set(mails)), "a mail twice"


async def mailed_twice_as_it_crashes(world: World) -> None:
    mails: list[int] = []

    async def crash() -> None:
        for _ in range(6):
            await trio.lowlevel.checkpoint()
            if world.fault("pulled plug"):
                world.crash()

    async def life() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crash)
            await _mail(world, mails)
            nursery.cancel_scope.cancel()

    while not await world.life(life):
        pass
    assert len(mails) == len(set(mails)), "a mail twice"
