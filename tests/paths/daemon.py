"""A daemon as a process of its own, for tests that kill it: `python -m tests.paths.daemon CONFIG`.

It runs the real tree from a real configuration and obeys one JSON command a line on standard input: `post` a text,
`stop` a session, `approve` a call, tell which calls are `waiting` for a yes. Each event it hears from then on is one
JSON line on standard output. End of input ends it in order.
A second argument names a point at which its store crashes whenever it comes there.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import aclosing
from functools import partial
from pathlib import Path

import trio

from kesoku_actors.actors import run_system
from kesoku_actors.app.house import House, build_house
from kesoku_actors.app.models import provider_registry
from kesoku_actors.app.plan import plan_run
from kesoku_actors.app.settings import load_settings
from kesoku_actors.clock import real_world
from kesoku_actors.log import Logger, stream_sink
from kesoku_actors.protocol import (
    ANONYMOUS,
    ActivityChanged,
    ApprovalChanged,
    CallState,
    Changed,
    Inbound,
    ToolProgress,
)
from kesoku_actors.store import Posted


async def main(config: Path, crash_at: str | None = None) -> None:
    settings, world = load_settings(config, environ={}), real_world()
    log = Logger(sink=stream_sink(sys.stderr, mask=str, environ={}), wall=world.clock.wall)
    registry = provider_registry(settings, world, log)
    provider = registry.choose(settings.agent.llm).provider
    plan = plan_run(
        settings,
        provider,
        world=world,
        log=log,
        channels=None,
        edges=lambda _gateway: (),
        probe=partial(crash, crash_at),
        spares=registry.spares(settings.agent.failover, provider).providers,
    )
    house = build_house(plan)
    async with run_system(house.spec), trio.open_nursery() as nursery:
        await nursery.start(tell, house)
        say({"event": "ready", "pid": os.getpid()})
        await obey(house)
        nursery.cancel_scope.cancel()


async def tell(house: House, *, task_status: trio.TaskStatus[None]) -> None:
    async with aclosing(house.gateway.listen(after=0, label="test")) as events:
        task_status.started()
        async for event in events:
            match event:
                case Changed(message=row):
                    shown = {
                        key: getattr(row, key)
                        for key in ("id", "session_id", "role", "type", "status", "content", "root_id", "parent_id")
                    }
                    say({"event": "row", **shown, "metadata": row.metadata})
                case ApprovalChanged(call_id=call_id, state=CallState.WAITING):
                    say({"event": "asks", "call": call_id})
                case ToolProgress(call_id=call_id):
                    say({"event": "started", "call": call_id})
                case ActivityChanged(activity=activity):
                    say({"event": "activity", "activity": activity})
                case _:
                    pass


async def obey(house: House) -> None:
    async for line in trio.wrap_file(sys.stdin):
        command = json.loads(line)
        match command["do"]:
            case "post":
                inbound = Inbound(chatbot_id="test", channel_id="room", content=command["text"])
                posted = await house.gateway.post(inbound)
                assert isinstance(posted, Posted)
                say({"event": "posted", "id": posted.message.id, "session_id": posted.message.session_id})
            case "stop":
                await house.gateway.stop(command["session"])
            case "approve":
                await house.gateway.answer_approval(command["call"], command["yes"], ANONYMOUS)
            case "waiting":
                for approval in await house.gateway.reader.approvals(command["session"]):
                    say({"event": "asks", "call": approval.call_id})


def crash(at: str | None, point: str) -> None:
    if point == at:
        raise RuntimeError("told to crash")


def say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), *sys.argv[2:])
