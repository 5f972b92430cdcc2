"""A running store for tests: the real actor over a real file, and short words for what people and workers do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import apsw
from attrs import define

from kesoku_actors.actors import ChildSpec, Mailbox, System, run_system
from kesoku_actors.actors import SupervisorSpec as Tree
from kesoku_actors.clock import Clock, seeded_world
from kesoku_actors.protocol import (
    AGENT,
    SYSTEM,
    Channel,
    Draft,
    Inbound,
    Message,
    Outcome,
    Reason,
    Role,
    Status,
    Step,
    StepState,
    Stop,
    Type,
)
from kesoku_actors.store import (
    BeginEpoch,
    CallStarted,
    Command,
    Commit,
    CommitReply,
    Committed,
    Durability,
    Ending,
    Post,
    Posted,
    Publication,
    Reader,
    RegisterWorker,
    RequestStop,
    StageOutcome,
    Store,
    StoreOptions,
    Taking,
    WorkerKey,
    open_reader,
    store_actor,
)
from kesoku_actors.store.schema import migrate

ROOM = Channel(chatbot_id="bot", channel_id="room")
"""Makes a store one of the first schema."""


def made_by_an_earlier_program(path: Path, schema: int = 1) -> None:
    """Make of a closed store what the program of an earlier schema would have left, with the rows it could hold."""
    old = path.with_name("old.db")
    with closing(apsw.Connection(str(old))) as connection:
        migrate(connection, 5.0, upto=schema)
        connection.execute("ATTACH ? AS present", (str(path),))
        for (table,) in connection.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'").fetchall():
            if table == "migrations":
                continue
            names = "SELECT name FROM pragma_table_info(?, ?)"
            columns = f"{names} INTERSECT {names}"
            shared = [name for (name,) in connection.execute(columns, (table, "main", table, "present")).fetchall()]
            if shared:
                wanted = ", ".join(shared)
                connection.execute(f"DELETE FROM main.{table}")
                connection.execute(f"INSERT INTO main.{table} ({wanted}) SELECT {wanted} FROM present.{table}")
    old.replace(path)


@define
class HandClock:
    """Time that stands still until a test moves it."""

    now: float = 1_000.0

    def clock(self) -> Clock:
        return Clock(wall=lambda: self.now, monotonic=lambda: self.now)


@define(kw_only=True)
class Home:
    """A store that runs."""

    store: Store
    options: StoreOptions
    time: HandClock
    publications: list[Publication]
    system: System
    life: int
    """Tells ids made in one life from those of another."""
    _epoch: int = 0
    _number: int = 0

    @property
    def reader(self) -> Reader:
        return self.store.reader

    def next(self) -> str:
        self._number += 1
        return f"n{self.life}.{self._number}"

    def published(self) -> Publication:
        """Return the last publication."""
        return self.publications[-1]

    async def say(self, content: str = "hello", *, external_id: str | None = None, channel: Channel = ROOM) -> Message:
        """A person says something."""
        inbound = Inbound(
            chatbot_id=channel.chatbot_id,
            channel_id=channel.channel_id,
            content=content,
            sender="Ada",
            external_id=external_id,
        )
        reply = await self.store.post(Post(id=self.next(), inbound=inbound))
        assert isinstance(reply, Posted)
        return reply.message

    async def ring(self, *, wakes: bool = True, channel: Channel = ROOM) -> Message:
        """A notice for the model arrives."""
        inbound = Inbound(
            chatbot_id=channel.chatbot_id,
            channel_id=channel.channel_id,
            content="a job ended",
            sender=SYSTEM,
            role=Role.SYSTEM,
            metadata={"wakes": wakes},
        )
        reply = await self.store.post(Post(id=self.next(), inbound=inbound))
        assert isinstance(reply, Posted)
        return reply.message

    async def hire(self, session_id: str) -> WorkerKey:
        """Register a worker for a session, in an epoch begun when there is none."""
        if not self._epoch:
            self._epoch = (await self.store.begin_epoch(BeginEpoch(clean=True))).epoch
        self._number += 1
        key = WorkerKey(session_id=session_id, epoch=self._epoch, worker=self._number)
        await self.store.register(RegisterWorker(key=key))
        return key

    async def new_epoch(self, **parts: Any) -> tuple[str, ...]:
        """Begin a new life of the agents; return what a worker can be started for."""
        begun = await self.store.begin_epoch(BeginEpoch(**{"clean": False, **parts}))
        self._epoch = begun.epoch
        return begun.runnable

    async def commit(self, key: WorkerKey, root: Message | None = None, **parts: Any) -> CommitReply:
        """Send a commit with an id of its own."""
        command = Commit(id=self.next(), key=key, root_id=root.id if root else None, **parts)
        return await self.store.commit(command)

    async def stand(self, key: WorkerKey, root: Message | None = None, **parts: Any) -> Committed:
        """Send a commit that must stand."""
        reply = await self.commit(key, root, **parts)
        assert isinstance(reply, Committed), reply
        return reply

    async def begin(self, content: str = "hello") -> tuple[WorkerKey, Message]:
        """A person speaks and a worker takes it; return both."""
        message = await self.say(content)
        key = await self.hire(message.session_id)
        await self.stand(key, claim=take(message))
        return key, message

    async def call(self, key: WorkerKey, root: Message, *names: str) -> tuple[str, ...]:
        """The model calls tools; return the ids of the calls in order."""
        reply = await self.stand(key, root, step=step(), insert=tuple(calling(name) for name in names))
        return tuple(row.id for row in reply.rows if row.type is Type.TOOL_CALL)

    async def run(self, call_id: str, outcome: Outcome = Outcome.OK, content: str = "done") -> None:
        """A tool starts and ends."""
        assert await self.store.call_started(CallStarted(call_id=call_id))
        staged = StageOutcome(call_id=call_id, outcome=outcome, content=content, duration_s=2.0)
        assert await self.store.stage(staged)

    async def answer(self, key: WorkerKey, root: Message, content: str = "hi") -> Committed:
        """The turn ends with an answer (C4)."""
        return await self.stand(key, root, step=step(), insert=(saying(content),), ends=(done(root),))

    async def stop(self, session_id: str, message: Message | None = None) -> Stop:
        """A person stops."""
        reply = await self.store.stop(RequestStop(session_id=session_id, message_id=message.id if message else None))
        assert isinstance(reply, Stop), reply
        return reply

    async def now(self, message: Message) -> Message:
        """Return the message as it is stored now."""
        found = await self.reader.message(message.id)
        assert found is not None
        return found

    async def contents(self, session_id: str) -> list[str]:
        """Return what the history says, in order."""
        return [row.content for row in (await self.reader.history(session_id)).messages]


def take(message: Message, reason: Reason = Reason.FRESH) -> Taking:
    return Taking(message_id=message.id, reason=reason)


def done(message: Message) -> Ending:
    return Ending(message_id=message.id, status=Status.PROCESSED)


def cut(message: Message, reason: Reason = Reason.SUPERSEDED) -> Ending:
    return Ending(message_id=message.id, status=Status.INTERRUPTED, reason=reason)


def saying(content: str, status: Status = Status.PENDING) -> Draft:
    return Draft(role=Role.ASSISTANT, type=Type.TEXT, status=status, sender=AGENT, content=content)


def calling(name: str) -> Draft:
    return Draft(
        role=Role.ASSISTANT,
        type=Type.TOOL_CALL,
        status=Status.RESPONDED,
        sender=AGENT,
        content="",
        metadata={"tool_name": name, "tool_arguments": {}, "tool_call_id": f"call_{name}"},
    )


def step(state: StepState = StepState.FINISHED, duration_s: float = 1.0) -> Step:
    return Step(inference_id="i", provider="p", model="m", state=state, duration_s=duration_s)


@asynccontextmanager
async def living(
    path: Path,
    *,
    durability: Durability = Durability.NORMAL,
    time: HandClock | None = None,
    publish: Callable[[Publication], None] | None = None,
    seed: int = 0,
    intensity: int = 0,
    **options: Any,
) -> AsyncIterator[Home]:
    """Run a store on `path` while the block runs; stopped in order at its end."""
    time = time or HandClock()
    chosen = StoreOptions(path=path, durability=durability, **options)
    mailbox = Mailbox[Command]("store")
    publications: list[Publication] = []
    start = partial(
        store_actor,
        options=chosen,
        world=seeded_world(seed, time.clock()),
        publish=publish or publications.append,
    )
    tree = Tree(id="test", children=(ChildSpec(id="store", start=start, mailbox=mailbox),), intensity=intensity)
    async with run_system(tree) as system:
        publications.clear()  # the one of the start says nothing but where it starts
        yield Home(
            store=Store(mailbox.ref, open_reader(chosen)),
            options=chosen,
            time=time,
            publications=publications,
            system=system,
            life=seed,
        )
