"""One life of the program: the real tree from a real configuration, with people who follow the script and a platform.

What happened outside the program is kept in files of the trial's folder, one line for each fact, written at once:
`facts` has what people were told is done (see `people`), `sent` what the platform was sent (`MESSAGE NUMBER`),
`passages` how often each point was passed, written when the life ends by itself.

A life that is not killed, but ends by itself or by SIGTERM, also holds what its workers did against the pure turn
machine (the live check).
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Final

import trio
from attrs import define, evolve

from kesoku_actors.actors import Cell, ChildSpec, run_system
from kesoku_actors.adapters import deliver_channel
from kesoku_actors.app.house import build_house
from kesoku_actors.app.models import provider_registry
from kesoku_actors.app.plan import plan_run
from kesoku_actors.app.settings import load_settings
from kesoku_actors.app.signals import signals_to
from kesoku_actors.clock import World, real_world
from kesoku_actors.gateway import Gateway
from kesoku_actors.log import Logger, stream_sink
from kesoku_actors.protocol import Channel, Message, Status
from kesoku_actors.session import Recorded, first_difference
from kesoku_actors.store import Chunk
from scripts.crashes.files import append
from scripts.crashes.people import Facts, People, channel_of
from scripts.crashes.points import Kill, Probe
from scripts.crashes.script import SCRIPT

STOP_S: Final = 8.0
"""How long a life may take to stop; half of it is for tools that run on. A tenth is for giving turns back, which on a
machine with ten times the work it can do takes half a second."""


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
    house = build_house(evolve(plan, record=records.append, stop_s=STOP_S))
    system = run_system(house.spec)
    with signals_to(system):
        async with system, trio.open_nursery() as nursery:
            for name, steps in SCRIPT.items():
                people = People(
                    gateway=house.gateway,
                    channel=channel_of(name),
                    facts=Facts(folder / "facts"),
                    sessions_dir=settings.workspace.sessions_dir,
                    log=log,
                )
                nursery.start_soon(people.follow, steps)
    difference = first_difference(records, plan.limits)
    assert difference is None, f"live check: a worker did what the pure machine does not: {difference}"


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
