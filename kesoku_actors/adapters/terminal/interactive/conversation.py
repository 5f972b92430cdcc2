"""A conversation at a terminal: what is typed goes to the gateway, what happens in the channel goes to the screen.

Every text is posted as soon as it is entered; what it does to a turn that runs is the channel's mode (I5). Events say
that something leaves; what leaves is read from the gateway, in order, and recorded as delivered when it stands on the
screen (O2, C5). Answers not delivered before are shown first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final, assert_never

import trio
from attrs import evolve, field

from kesoku_actors.adapters.approvals import Decision
from kesoku_actors.adapters.commands import (
    COMMANDS,
    Choice,
    CommandTable,
    Do,
    Lines,
    ModelInfo,
    Refuse,
    Say,
    Values,
    session_line,
)
from kesoku_actors.adapters.courier import deliver
from kesoku_actors.adapters.delivery import next_leaf
from kesoku_actors.adapters.terminal.interactive.desk import Desk
from kesoku_actors.adapters.terminal.interactive.questions import Questions
from kesoku_actors.adapters.terminal.interactive.screen import Screen
from kesoku_actors.adapters.terminal.interactive.stopping import Press, Stopping
from kesoku_actors.adapters.terminal.view import Leaf
from kesoku_actors.clock import World
from kesoku_actors.errors import UsageError
from kesoku_actors.gateway import Gateway
from kesoku_actors.llm.prices import spelled, total
from kesoku_actors.protocol import (
    LEAVES,
    ActivityChanged,
    Approval,
    ApprovalChanged,
    BusyMode,
    Changed,
    Channel,
    Event,
    Inbound,
    Job,
    Message,
    ModeChanged,
    Role,
    SessionInfo,
    SessionState,
    Status,
    Stop,
    Type,
)
from kesoku_actors.store import Chunk, NothingToStop, Posted, PostRefused, StoreFault
from kesoku_actors.values import define

LISTED: Final = 50
_AGAIN: Final = "Ctrl-C again leaves"
_RECALLED: Final = 2
"""How many of the last texts are shown of a session that is gone on with."""


@define(eq=False)
class Conversation:
    """The talk in one channel at a time; a `Surface` of the commands."""

    gateway: Gateway
    desk: Desk
    screen: Screen
    channel: Channel
    world: World
    leaving: trio.CancelScope
    """Cancelled to end it."""
    clear_input: Callable[[], None] = lambda: None
    """Empties the input line."""
    session_id: str | None = field(default=None, init=False)
    """The channel's open session, as far as one was begun."""
    _stopping: Stopping = field(init=False)
    _is_armed: bool = field(default=False, init=False)
    """Whether the next Ctrl-C leaves."""
    _listening: trio.CancelScope = field(factory=trio.CancelScope, init=False)
    _questions: Questions = field(init=False)
    _values: dict[Values, tuple[Choice, ...]] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._stopping = Stopping(self.gateway)
        self._questions = Questions(gateway=self.gateway, clock=self.world.clock, say=self.screen.say)

    @property
    def commands(self) -> CommandTable:
        """All of them."""
        return COMMANDS

    def values(self) -> Mapping[Values, Sequence[Choice]]:
        """Return what arguments can be completed with, as it was lately; callable from any thread."""
        return self._values

    async def run(self) -> None:
        """Show what happens in the channel, or in the one it was changed for, until cancelled."""
        while True:
            with trio.CancelScope() as self._listening:
                # Read first: what leaves while the channel is entered is heard of as well.
                after = await self.gateway.reader.head()
                await self._enter_channel()
                await self._listen(after)

    async def obey(self, text: str) -> None:
        """Do what an entered text asks for: post it, or run its command."""
        self._disarm()
        try:
            if await self._questions.obey(text):
                return
            match self.commands.parse(text):
                case Say(text=content):
                    await self._post(content)
                case Do(command=command, argument=argument):
                    self.screen.say((f"› {command.typed(argument)}",))
                    self.screen.say(await command.run(self, argument))
                case Refuse(line=line):
                    self.screen.say((line,), "yellow")
                case never:
                    assert_never(never)
        except (UsageError, StoreFault) as error:
            self.screen.say((str(error),), "yellow")

    async def pressed(self, is_empty: bool) -> None:
        """Do what a Ctrl-C means now (I7): stop, force what still runs, leave; leaving alone takes two."""
        try:
            press = await self._stopping.press(self.session_id)
        except StoreFault as error:
            self.screen.say((str(error),), "yellow")
            return
        if press is Press.LEAVE:
            self.leave()
        if press is not Press.NOTHING or self.end_compaction():
            return
        if not is_empty:
            self.clear_input()
        elif self._is_armed:
            self.leave()
        else:
            self._is_armed = True
            self._tell(notice=_AGAIN)

    def typing(self) -> None:
        """Something was typed: a Ctrl-C counts anew."""
        self._disarm()

    # What commands do.

    async def stop(self) -> Stop | NothingToStop:
        """Stop what runs and what waits (I7)."""
        return await self._stopping.stop(self.session_id)

    async def force(self) -> Stop | NothingToStop:
        """End the running tools of what was stopped (I7)."""
        return await self._stopping.force()

    async def clear(self) -> Stop | NothingToStop:
        """Clear the session (M7); the channel's next message begins another one."""
        if self.session_id is None:
            return NothingToStop()
        reply = await self.gateway.clear(self.session_id)
        self.session_id = None
        self._tell(context_tokens=None, cost=None)
        return self._stopping.asked(reply)

    async def compact(self) -> Lines:
        """Begin to summarise the older part of the session."""
        if self.session_id is None:
            return ("there is nothing to summarise yet",)
        self.desk.compact(self.session_id, self.screen.say)
        return ("summarising what was said before; the next answer waits for it",)

    def end_compaction(self) -> bool:
        """Cancel that."""
        return self.session_id is not None and self.desk.end_compaction(self.session_id)

    async def status(self) -> Lines:
        """Return what a person wants to know."""
        facts = self.screen.facts
        context = "unknown" if facts.context_tokens is None else f"{facts.context_tokens:,} tokens"
        lines = [
            f"session   {self.session_id or 'none yet'}",
            f"model     {self.desk.model_of(self.channel).label}",
            f"mode      {facts.mode}",
            f"shell     {self.desk.shell}",
            f"activity  {self.screen.activity.value}",
            f"context   {context}",
        ]
        if self.session_id is not None:
            usage = await self.gateway.reader.usage((self.session_id,))
            lines += [f"used      {spelled(each)}" for each in usage.values()]
            waiting = await self.gateway.reader.waiting(self.session_id)
            lines += [f"waiting   {len(waiting)} message{'' if len(waiting) == 1 else 's'}"] if waiting else []
        return tuple(lines)

    async def sessions(self) -> Sequence[tuple[SessionInfo, bool]]:
        """Return the sessions of the terminal, newest first."""
        found = await self._open_sessions()
        return [(session, session.id == self.session_id) for session in found]

    async def resume(self, session_id: str) -> Lines:
        """Go on with the one session whose id is this or holds it."""
        found = [session for session in await self._open_sessions() if session_id.upper() in session.id]
        if not found:
            raise UsageError(f"no session {session_id[:40]!r} that is open; /sessions lists them")
        if len(found) > 1:
            raise UsageError(f"{len(found)} sessions have {session_id[:40]!r} in their id; name more of it")
        if found[0].id == self.session_id:
            raise UsageError("this is the session you are in")
        self.channel = Channel(chatbot_id=found[0].chatbot_id, channel_id=found[0].channel_id)
        await self.desk.work_for(self.channel)
        self.screen.turn_page()
        self._listening.cancel()
        return ()

    async def models(self) -> Sequence[ModelInfo]:
        """Return the models there are."""
        return self.desk.models(self.channel)

    async def choose_model(self, name: str) -> str:
        """Let another model answer here."""
        answering = await self.desk.choose_model(self.channel, name)
        self._tell(model=answering.model)
        return answering.label

    async def mode(self) -> BusyMode:
        """Return the channel's mode."""
        return await self.gateway.reader.mode(self.channel)

    async def set_mode(self, mode: BusyMode) -> BusyMode:
        """Change the channel's mode (I5)."""
        return await self.gateway.set_mode(self.channel, mode)

    async def trace(self) -> str:
        """Write what happened in this session."""
        if self.session_id is None:
            raise UsageError("there is nothing to trace yet")
        return await self.desk.trace(self.session_id)

    async def approvals(self) -> Sequence[Approval]:
        """Return the calls that wait for a yes."""
        return () if self.session_id is None else await self.gateway.reader.approvals(self.session_id)

    async def decide(self, approval: Approval, decision: Decision) -> str:
        """Answer about one of them."""
        return await self._questions.decide(approval, decision)

    async def jobs(self) -> Sequence[Job]:
        """Return the jobs of the session."""
        return () if self.session_id is None else await self.gateway.reader.jobs(self.session_id)

    def now(self) -> float:
        """Return the time."""
        return self.world.clock.wall()

    async def stop_job(self, job: Job) -> bool:
        """End a job."""
        return await self.desk.stop_job(job.call_id)

    def leave(self) -> None:
        """End the conversation."""
        self.leaving.cancel()

    # Inner things.

    async def _enter_channel(self) -> None:
        """Show where the talk stands in this channel, and what was not delivered yet."""
        self.session_id = await self.gateway.reader.open_session(self.channel)
        self._questions.forget()
        self._tell(
            model=self.desk.model_of(self.channel).model,
            mode=(await self.mode()).value,
            context_tokens=None,
            cost=None,
        )
        if self.session_id is not None:
            await self._recall(self.session_id)
        await self._deliver()
        await self._learn_values()
        await self._ask()

    async def _recall(self, session_id: str) -> None:
        """Show the end of a session that is gone on with; what was not delivered yet comes through its delivery."""
        session = await self.gateway.session(session_id)
        assert session is not None, "an open session is there"
        self.screen.say((f"going on with {session_line(session)}", ""))
        history = await self.gateway.history(session_id)
        texts = [row for row in history.messages if row.type is Type.TEXT and row.status is not Status.PENDING]
        for row in texts[-_RECALLED:]:
            if row.role is Role.USER:
                self.screen.seen.add(row.id)
                self.screen.quote(row.content)
            elif row.role is Role.ASSISTANT:
                await self.screen.leave(Leaf(message=row, text=row.content, is_ours=True, is_again=False))
        await self._count(session_id)

    async def _listen(self, after: int) -> None:
        listening = self.gateway.listen(channel=self.channel, after=after, label="terminal")
        async with aclosing(listening) as events, trio.open_nursery() as nursery:
            async for event in events:
                await self._hear(event, nursery)

    async def _hear(self, event: Event, nursery: trio.Nursery) -> None:
        match event:
            case Changed(message=row) if row.status in LEAVES:
                if row.status is Status.PENDING:
                    await self._deliver(row.seq)
            case Changed(message=row):
                self.screen.show(event)
                if row.waits and "job" in row.metadata:
                    self.screen.seen.add(row.id)
                    self.screen.say((row.content.partition("\n")[0],))
                if row.root_id == row.id and row.has_ended and row.session_id == self.session_id:
                    nursery.start_soon(self._count, row.session_id)
            case ApprovalChanged(session_id=self.session_id):
                await self._ask()
            case ModeChanged(mode=mode):
                self._tell(mode=mode.value)
            case ActivityChanged(session_id=other) if self.session_id not in (None, other):
                pass  # the channel has moved to another session since, and the status line tells of that one
            case _:
                self.screen.show(event)

    async def _post(self, content: str) -> None:
        inbound = Inbound(chatbot_id=self.channel.chatbot_id, channel_id=self.channel.channel_id, content=content)
        try:
            reply = await self.gateway.post(inbound)
        except StoreFault:
            self.screen.quote(content)  # it stands nowhere else
            raise
        match reply:
            case Posted(message=message):
                self.session_id = message.session_id
            case PostRefused(max_waiting=count):
                self.screen.quote(content)
                self.screen.say((f"not taken: {count} messages wait already; wait for their answers",), "yellow")
            case _:
                raise AssertionError("a message without an external id is not known yet")

    async def _deliver(self, upto: float = math.inf) -> None:
        """Deliver what waits, in order (O2), up to a number: what comes after it was not heard of yet, and the talk
        would show an answer before its question."""
        while (message := next_leaf(await self.gateway.leaving(self.channel))) is not None and message.seq <= upto:
            await deliver(message, self.gateway, partial(self._send, message), jitter=self.world.rng.random)

    async def _send(self, message: Message, chunk: Chunk) -> None:
        is_ours = message.root_id in self.screen.seen
        leaf = Leaf(message=message, text=chunk.content, is_ours=is_ours, is_again=chunk.attempts > 1)
        await self.screen.leave(leaf)

    async def _ask(self) -> None:
        """Show the call that waits first for a yes."""
        await self._questions.refresh(self.session_id)
        self._values[Values.APPROVAL] = self._questions.choices()

    async def _count(self, session_id: str) -> None:
        """Show what the last inference that said so had to read."""
        history = await self.gateway.history(session_id)
        counts = (stored.step.usage.input for stored in reversed(history.steps))
        cost = total(stored.step.usage for stored in history.steps).cost
        self._tell(context_tokens=next((count for count in counts if count is not None), None), cost=cost)

    async def _open_sessions(self) -> list[SessionInfo]:
        found = await self.gateway.sessions(LISTED, self.channel.chatbot_id)
        return [session for session in found if session.state is SessionState.OPEN]

    async def _learn_values(self) -> None:
        sessions = await self._open_sessions()
        self._values = {
            Values.MODE: tuple(Choice(mode.value) for mode in BusyMode),
            Values.MODEL: tuple(Choice(model.name, model.missing or "") for model in self.desk.models(self.channel)),
            Values.SESSION: tuple(Choice(session.id, session.title) for session in sessions),
        }

    def _disarm(self) -> None:
        if self._is_armed:
            self._is_armed = False
            self._tell(notice="")

    def _tell(self, **facts: Any) -> None:
        self.screen.facts = evolve(self.screen.facts, **facts)
        self.screen.touch()
