"""What a trace shows of a session, as values: its turns, what happened, what the model read and said. Pure.

Times are UTC seconds. Texts that occur again and again, the messages of the requests above all, stand once in `pool`
and are named by their index.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from attrs import asdict, field

from kesoku_actors.protocol import SessionInfo
from kesoku_actors.values import frozen


class Kind(StrEnum):
    """What an item is."""

    PERSON = "person"
    """A message of a person."""
    NOTICE = "notice"
    """A notice, for the model or for people."""
    INFERENCE = "inference"
    """The model was asked; a request, and a reply or the lack of one."""
    THOUGHT = "thought"
    TEXT = "text"
    """What the model said beside its calls, or before it was interrupted."""
    CALL = "call"
    """A tool call and its result."""
    ANSWER = "answer"
    STOP = "stop"
    """A person asked to stop."""
    INTERRUPTION = "interruption"
    """A newer message, a stop or a budget ended the turn."""


class State(StrEnum):
    """How it went."""

    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    UNKNOWN = "unknown"
    """A call whose end nobody saw."""
    BACKGROUND = "background"
    """A call that went on as a job."""
    OPEN = "open"
    """Not over, or not when the program last ran."""


class Source(StrEnum):
    """Where the request and the reply come from."""

    LOG = "log"
    """The turn log: exactly as they were."""
    ROWS = "rows"
    """What is stored: the turn log is gone or was never kept."""


@frozen(kw_only=True)
class Tokens:
    """Tokens as far as the provider said."""

    input: int = 0
    cached: int = 0
    output: int = 0
    thinking: int = 0
    is_known: bool = False

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            input=self.input + other.input,
            cached=self.cached + other.cached,
            output=self.output + other.output,
            thinking=self.thinking + other.thinking,
            is_known=self.is_known or other.is_known,
        )


@frozen(kw_only=True)
class Part:
    """A named text of an item."""

    name: str
    text: str


@frozen(kw_only=True)
class Wait:
    """A time in which something waited or went on: for a person's yes, as a job."""

    name: str
    begin: float
    end: float | None
    """None while it lasts."""


@frozen(kw_only=True)
class Item:
    """Something that happened in a turn."""

    kind: Kind
    state: State
    title: str
    begin: float
    end: float | None
    """None while it lasts; the same as `begin` for what has no duration."""
    is_timed: bool = True
    """Whether the times are known, or follow from what stands around it."""
    parts: tuple[Part, ...] = ()
    error: str | None = None
    tokens: Tokens | None = None
    waits: tuple[Wait, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """Further facts by name, such as the model or the ids."""
    exchange: int | None = None
    """Of an inference: which of the trace's exchanges."""


@frozen(kw_only=True)
class Exchange:
    """A request and its reply, as YAML texts in the pool."""

    source: Source
    name: str
    """The file of the log."""
    base: int | None
    """An earlier exchange with the same first messages."""
    same: int
    """How many messages of `base` come first."""
    messages: tuple[int, ...]
    """The messages after those."""
    request: int
    """The rest of what was sent."""
    tools: int
    response: int


@frozen(kw_only=True)
class Turn:
    """One turn."""

    number: int
    """Within the session, from 1."""
    root_id: str
    title: str
    status: str
    reason: str | None
    failure: str | None
    """Why there was no answer, in a sentence; none when there was one, or may still be."""
    began: float
    ended: float
    attempts: int
    tokens: Tokens
    cost: float | None
    """US dollars; none when the price of a model or the tokens are not known."""
    items: tuple[Item, ...]


@frozen(kw_only=True)
class Trace:
    """A session as a trace shows it."""

    session: SessionInfo
    generated: float
    program: str
    turns: tuple[Turn, ...]
    turns_in_all: int
    """Of the session; `turns` may be a part of them."""
    outside: tuple[Item, ...]
    """What belongs to no turn: messages that wait, notices."""
    exchanges: tuple[Exchange, ...]
    pool: tuple[str, ...] = field(repr=False)

    @property
    def tokens(self) -> Tokens:
        """Of all turns together."""
        return sum((turn.tokens for turn in self.turns), Tokens())


def trace_data(trace: Trace) -> dict[str, Any]:
    """Return a trace as JSON data, without what is at its default in each item."""
    session = trace.session
    return {
        "version": 1,
        "program": trace.program,
        "generated": trace.generated,
        "session": {
            "id": session.id,
            "title": session.title,
            "channel": f"{session.chatbot_id}/{session.channel_id}",
            "state": session.state.value,
            "created": session.created,
            "last_activity": session.last_activity,
            "turns": trace.turns_in_all,
        },
        "tokens": asdict(trace.tokens),
        "turns": [_turn(turn) for turn in trace.turns],
        "outside": [_item(item) for item in trace.outside],
        "exchanges": [{**asdict(exchange), "source": exchange.source.value} for exchange in trace.exchanges],
        "pool": list(trace.pool),
    }


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "number": turn.number,
        "root_id": turn.root_id,
        "title": turn.title,
        "status": turn.status,
        "reason": turn.reason,
        "failure": turn.failure,
        "began": turn.began,
        "ended": turn.ended,
        "attempts": turn.attempts,
        "tokens": asdict(turn.tokens),
        "cost": turn.cost,
        "items": [_item(item) for item in turn.items],
    }


def _item(item: Item) -> dict[str, Any]:
    data: dict[str, Any] = {
        "kind": item.kind.value,
        "state": item.state.value,
        "title": item.title,
        "begin": item.begin,
        "end": item.end,
    }
    optional: dict[str, Any] = {
        "guessed": not item.is_timed,
        "parts": [[part.name, part.text] for part in item.parts],
        "error": item.error,
        "tokens": None if item.tokens is None else asdict(item.tokens),
        "waits": [asdict(wait) for wait in item.waits],
        "facts": [list(fact) for fact in item.facts],
        "exchange": item.exchange,
    }
    return data | {name: value for name, value in optional.items() if value not in (None, [], False)}
