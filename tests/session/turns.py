"""A turn machine and the store's answers to it, one event at a time, for tests."""

from __future__ import annotations

from typing import Any, TypeVar

from kesoku_actors.llm.port import CallRequest, Remedy, Reply
from kesoku_actors.protocol import (
    BusyMode,
    CallState,
    Channel,
    Reason,
    Status,
    Stop,
    Type,
    Waiting,
)
from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.turn import State, TurnLimits, begin, step
from kesoku_actors.store.port import (
    Commit,
    Committed,
    OpenCall,
    RefusalReason,
    Refused,
    Registered,
    WorkerKey,
)

KEY = WorkerKey(session_id="s", epoch=7, worker=3)
E = TypeVar("E", bound=v.Effect)


def person(number: int) -> Waiting:
    return Waiting(id=f"m{number}", seq=number, is_person=True, wakes=True)


def notice(number: int, *, wakes: bool = True) -> Waiting:
    return Waiting(id=f"n{number}", seq=number, is_person=False, wakes=wakes)


def reply(text: str = "", *calls: CallRequest, **more: Any) -> Reply:
    return Reply(provider="openai", model="gpt", text=text, calls=calls, **more)


def call(name: str = "look", id: str = "", **arguments: Any) -> CallRequest:
    return CallRequest(name=name, arguments=arguments, id=id)


class Session:
    """A machine and the store's answers to it, one event at a time."""

    def __init__(self, *waiting: Waiting, mode: BusyMode = BusyMode.INTERRUPT, **more: Any) -> None:
        self.limits = more.pop("limits", TurnLimits())
        self.mode, self.stops, self.steps, self.spent_s = mode, more.pop("stops", ()), 0, 0.0
        self.tokens, self.cost = 0, 0.0
        self.state: State = begin(KEY, self.limits)
        self.effects: tuple[v.Effect, ...] = ()
        self.last: dict[type[object], v.Effect] = {}
        registered = Registered(
            channel=Channel(chatbot_id="bot", channel_id="room"),
            mode=mode,
            waiting=waiting,
            returned=more.pop("returned", ()),
            returned_began=None,
            stops=self.stops,
            self_started=more.pop("self_started", 0),
        )
        self.hear(v.Resumed(registered, **more))

    def hear(self, *events: v.Event) -> Session:
        for event in events:
            self.state, self.effects = step(self.state, event)
            self.last |= {type(each): each for each in self.effects}
        return self

    def asked(self, kind: type[E]) -> E:
        """The last effect of a kind: what the next event answers."""
        effect = self.last[kind]
        assert isinstance(effect, kind)
        return effect

    def the(self, kind: type[E]) -> E:
        (effect,) = [each for each in self.effects if isinstance(each, kind)]
        return effect

    def has(self, kind: type[v.Effect]) -> bool:
        return any(isinstance(each, kind) for each in self.effects)

    @property
    def commit(self) -> Commit:
        return self.the(v.SendCommit).commit

    def stand(self, *calls: str, state: CallState = CallState.COMMITTED) -> Session:
        sent = self.asked(v.SendCommit)
        self.steps += sent.commit.step is not None
        committed = Committed(
            rows=(),
            open_calls=tuple(OpenCall(call_id=each, state=state) for each in calls),
            steps=self.steps,
            spent_s=self.spent_s,
            tokens=self.tokens,
            cost=self.cost,
            mode=self.mode,
            stops=self.stops,
        )
        return self.hear(v.CommitStands(sent.ticket, committed))

    def refuse(self, reason: RefusalReason, *waiting: Waiting) -> Session:
        refused = Refused(reason=reason, detail="", waiting=waiting, stops=self.stops)
        return self.hear(v.CommitRefused(self.asked(v.SendCommit).ticket, refused))

    def think(self) -> Session:
        """Build the prompt and begin the inference."""
        return self.hear(v.PromptBuilt(self.asked(v.BuildPrompt).ticket))

    def say(self, answer: Reply) -> Session:
        return self.hear(v.ModelFinished(self.asked(v.CallModel).ticket, answer, 2.0))

    def fail(self, remedy: Remedy = Remedy.RETRY, after_s: float | None = None, jitter: float = 0.5) -> Session:
        ticket = self.asked(v.CallModel).ticket
        return self.hear(v.ModelFailed(ticket, "openai", "gpt", "503 overloaded", remedy, after_s, jitter, 2.0))

    def stop(self, *covers: str, **more: Any) -> Session:
        self.stops = (Stop(seq=90, session_id="s", root_id=covers[0], covers=frozenset(covers), **more),)
        return self.hear(v.StopRequested(self.stops[0]))


def thinking(*waiting: Waiting, **more: Any) -> Session:
    """A session whose first inference has begun."""
    return Session(*(waiting or (person(1),)), **more).stand().think()


def working(*calls: str, **more: Any) -> Session:
    """A session whose first step made these calls, started."""
    session = thinking(**more).say(reply("", *(call(id=each) for each in calls))).stand(*calls)
    return session.hear(*(v.ToolStarted(each) for each in calls))


def rows(commit: Commit) -> list[tuple[Type, Status, str]]:
    return [(each.type, each.status, each.content) for each in commit.insert]


def ends(commit: Commit) -> dict[str, tuple[Status, Reason | None]]:
    return {each.message_id: (each.status, each.reason) for each in commit.ends}


def streaming(*texts: str, **more: Any) -> tuple[Session, int]:
    session = thinking(**more)
    ticket = session.the(v.CallModel).ticket
    return session.hear(*(v.ModelDelta(ticket, each) for each in texts)), ticket
