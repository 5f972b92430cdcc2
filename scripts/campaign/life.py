"""One life of the program: the real tree from a real configuration, with people who follow the script and a platform.

What happened outside the program is kept in files of the trial's folder, one line for each fact, written at once:
`facts` has what people were told is done (`posted ID MESSAGE SESSION`, `stopped ID`, `cleared ID SESSION`), `sent` what
the platform was sent (`MESSAGE NUMBER`), `passages` how often each point was passed, written when the life ends by
itself. Followed again after a kill, the script goes on at the first step that is not a fact.

A life that ends by itself also holds what its workers did against the pure turn machine (the live check).
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import assert_never

import trio
from attrs import define, evolve

from kesoku_actors.actors import Cell, ChildSpec, run_system
from kesoku_actors.adapters import deliver_channel
from kesoku_actors.app.house import build_house
from kesoku_actors.app.models import provider_registry
from kesoku_actors.app.plan import plan_run
from kesoku_actors.app.settings import load_settings
from kesoku_actors.clock import World, real_world
from kesoku_actors.errors import NotFound
from kesoku_actors.gateway import Gateway
from kesoku_actors.log import Logger, stream_sink
from kesoku_actors.protocol import Changed, Channel, Inbound, Message, Removed, Status, Type
from kesoku_actors.session import Recorded, first_difference
from kesoku_actors.store import Chunk, Posted
from scripts.campaign.points import Kill, Probe
from scripts.campaign.script import SCRIPT, Clear, Say, SetMode, Step, StopTurn

CHATBOT = "campaign"


def live(folder: Path, config: Path, kill: Kill | None) -> None:
    """Live until everybody has what they wanted, or until `kill`."""
    probe = Probe(kill, Counter())
    trio.run(_live, folder, config, probe)
    (folder / "passages").write_text(json.dumps(probe.passed))


async def _live(folder: Path, config: Path, probe: Probe) -> None:
    settings, world = load_settings(config, environ={}), real_world()
    log = Logger(sink=stream_sink(sys.stderr, mask=str, environ={}), wall=world.clock.wall)
    provider = provider_registry(settings, world, log).choose(settings.agent.llm).provider
    platform = Platform(folder, world, probe)
    plan = plan_run(
        settings,
        provider,
        world=world,
        log=log,
        channels=None,
        edges=lambda gateway: tuple(platform.courier(gateway, name) for name in SCRIPT),
        probe=probe,
    )
    records: list[Recorded] = []
    house = build_house(evolve(plan, record=records.append))
    async with run_system(house.spec), trio.open_nursery() as nursery:
        for name, steps in SCRIPT.items():
            people = People(house.gateway, channel_of(name), Facts(folder / "facts"), settings.workspace.sessions_dir)
            nursery.start_soon(people.follow, steps)
    difference = first_difference(records, plan.limits)
    assert difference is None, f"live check: a worker did what the pure machine does not: {difference}"


def channel_of(name: str) -> Channel:
    """Return the channel of a part of the script."""
    return Channel(chatbot_id=CHATBOT, channel_id=name)


def append(path: Path, line: str) -> None:
    """Add a line to a file in one write, so that it is there whole or not at all when the process dies."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def lines(path: Path) -> list[list[str]]:
    """Return the lines of such a file, as words."""
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


@define(eq=False)
class Platform:
    """Takes what leaves."""

    folder: Path
    world: World
    probe: Callable[[str], None]

    def courier(self, gateway: Gateway, name: str) -> ChildSpec:
        """Return the actor that delivers to one channel. It is cut off at the end, when nothing is left to deliver."""
        start = partial(self.deliver, gateway=gateway, channel=channel_of(name))
        return ChildSpec(id=f"courier {name}", start=start, shutdown_s=0.0)

    async def deliver(self, cell: Cell[None], *, gateway: Gateway, channel: Channel) -> None:
        """Deliver to a channel until stopped."""
        pending = frozenset({Status.PENDING})
        async with aclosing(gateway.listen(channel=channel, statuses=pending, hints=False, after=0)) as leaving:
            cell.started()
            async for _event in leaving:
                await deliver_channel(channel, gateway, self.send, jitter=self.world.rng.random)

    async def send(self, message: Message, chunk: Chunk) -> str | None:
        """Show a part of a message."""
        self.probe("platform.before_send")
        append(self.folder / "sent", f"{message.id} {chunk.index}")
        self.probe("platform.sent")
        await trio.lowlevel.checkpoint()
        return None


@define(eq=False)
class Facts:
    """What people were told is done."""

    path: Path

    def add(self, *words: str) -> None:
        append(self.path, " ".join(words))

    def find(self, *words: str) -> list[str] | None:
        """Return the first fact that begins with these words, or none."""
        return next((fact for fact in lines(self.path) if fact[: len(words)] == list(words)), None)


@define(eq=False)
class People:
    """Follow the script in one channel."""

    gateway: Gateway
    channel: Channel
    facts: Facts
    sessions_dir: Path

    async def follow(self, steps: tuple[Step, ...]) -> None:
        """Do every step that is not a fact, then wait until all has left and nothing of a cleared session is there."""
        for step in steps:
            match step:
                case Say():
                    await self._say(step)
                case StopTurn(id=id):
                    await self._stop(id)
                case Clear(id=id):
                    await self._clear(id)
                case SetMode(mode=mode):
                    await self.gateway.set_mode(self.channel, mode)
                case _:
                    assert_never(step)
        while await self._is_something_left():  # noqa: ASYNC110  (nothing tells when a folder is gone)
            await trio.sleep(0.02)

    async def _say(self, step: Say) -> None:
        posted = await self.gateway.post(
            Inbound(
                chatbot_id=self.channel.chatbot_id,
                channel_id=self.channel.channel_id,
                content=step.text,
                external_id=step.id,
            )
        )
        if not isinstance(posted, Posted):
            return  # its session was cleared
        message = posted.message
        if self.facts.find("posted", step.id) is None:
            self.facts.add("posted", step.id, message.id, message.session_id)
        if step.until == "posted":
            return

        async with aclosing(self.gateway.listen(session_id=message.session_id, hints=False, after=0)) as events:
            async for event in events:
                match event:
                    case Changed(message=row) if row.id == message.id and row.has_ended:
                        return
                    case Changed(message=row) if row.type is Type.TOOL_CALL and row.root_id == message.id:
                        if step.until == "calls":
                            return
                    case Removed(message_id=message.id):
                        return  # a clear that an earlier life began
                    case _:
                        continue

    async def _stop(self, id: str) -> None:
        if self.facts.find("stopped", id) is None:
            posted = self.facts.find("posted", id)
            assert posted is not None
            await self.gateway.stop(posted[3], posted[2])
            self.facts.add("stopped", id)

    async def _clear(self, id: str) -> None:
        if self.facts.find("cleared", id) is None:
            posted = self.facts.find("posted", id)
            assert posted is not None
            with suppress(NotFound):  # an earlier life has cleared it, and was killed before it told
                await self.gateway.clear(posted[3])
            self.facts.add("cleared", id, posted[3])

    async def _is_something_left(self) -> bool:
        return bool(
            await self.gateway.leaving(self.channel)
            or await self.gateway.reader.closed_sessions()
            or (self.sessions_dir / ".trash").exists()
        )
