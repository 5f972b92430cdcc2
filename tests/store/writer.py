"""A process that writes to a store until it is killed; run by the tests: writer.py PATH DURABILITY POINT COUNT.

It prints one line per accepted message. At the COUNTth passage of POINT it kills itself.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path

import trio

from kesoku_actors.actors import ChildSpec, Mailbox, SupervisorSpec, run_system
from kesoku_actors.clock import real_world
from kesoku_actors.protocol import Inbound
from kesoku_actors.store import Command, Durability, Post, Store, StoreOptions, open_reader, store_actor


def killer(point: str, count: int):
    left = [count]

    def probe(passed: str) -> None:
        if passed == point:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return probe


async def main(path: str, durability: str, point: str, count: str) -> None:
    options = StoreOptions(path=Path(path), durability=Durability(durability), probe=killer(point, int(count)))
    mailbox = Mailbox[Command]("store")
    start = partial(store_actor, options=options, world=real_world(), publish=lambda _publication: None)
    tree = SupervisorSpec(id="writer", children=(ChildSpec(id="store", start=start, mailbox=mailbox),))
    async with run_system(tree):
        store = Store(mailbox.ref, open_reader(options))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for number in range(1_000_000):
            inbound = Inbound(
                chatbot_id="bot", channel_id=f"room{number % 7}", content="x" * 300, external_id=f"{number}"
            )
            await store.post(Post(id=f"{number}", inbound=inbound))
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
