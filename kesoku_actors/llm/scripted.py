"""The scripted model: it plays a scenario instead of thinking. For tests, demos and plugin authors.

A scenario is a list of inferences, an inference a list of *moves*: say a text, think, ask for a call, wait, fail,
stall, cut the stream. Each request plays the next inference; a *rule* whose words occur in what must be answered is
played instead and uses none up. When nothing is left the model says so, or begins again (`repeat`). What is asked for
another purpose than an answer (a summary, a title) uses none up either: `asides` are played for it, or a few words.

    scenario = Scenario(inferences=(
        (Call(name="run_shell_command", arguments={"command": "date"}),),
        (Think(thought="Now I know."), Say(text="It is late.", word_delay_s=0.05)),
    ))
    model = ScriptedModel(scenario)

The same in a file, read by `scenario_file.load_scenario`:

    repeat = true
    inferences = [
        [{ call = "run_shell_command", arguments = { command = "date" } }],
        [{ think = "Now I know." }, { say = "It is late.", word_delay_s = 0.05 }],
    ]

It waits with `trio.sleep` only, so a test with an autojump clock takes no time. `requests` and `cancelled` keep what
it was asked and what was taken from it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import trio
from attrs import Attribute, Factory, field

from kesoku_actors.llm.classify import REMEDY
from kesoku_actors.llm.port import (
    CallRequest,
    Emit,
    Finish,
    Limits,
    Piece,
    ProviderError,
    Purpose,
    Remedy,
    Reply,
    Request,
    Used,
)
from kesoku_actors.llm.prices import SCENARIO
from kesoku_actors.protocol import DeltaKind, Message, Role, Type, Usage
from kesoku_actors.values import define, frozen

_WORDS_IN_A_ROW: Final = 256
AT_THE_END: Final = "This scripted model has played its whole scenario and has nothing more to say."


_LONGEST_WAIT_S: Final = 86_400.0
_MOST_TOKENS: Final = 10**9


def _seconds(_move: object, attribute: Attribute[Any], value: float | None) -> None:
    if value is not None and not 0 <= value <= _LONGEST_WAIT_S:
        key = attribute.metadata.get("key", attribute.name)
        raise ValueError(f"{key} must be from 0 to {_LONGEST_WAIT_S:g} seconds, not {value}")


def _tokens(_move: object, attribute: Attribute[Any], value: int | None) -> None:
    if value is not None and not 0 <= value <= _MOST_TOKENS:
        raise ValueError(f"{attribute.name} must be from 0 to {_MOST_TOKENS} tokens, not {value}")


@frozen(kw_only=True)
class Say:
    """Streams a text word by word."""

    text: str
    word_delay_s: float = field(default=0.0, validator=_seconds)
    """Seconds before each word."""


@frozen(kw_only=True)
class Think:
    """Streams a thought word by word."""

    thought: str
    word_delay_s: float = field(default=0.0, validator=_seconds)


@frozen(kw_only=True)
class Call:
    """Asks for a tool call; several in one inference are parallel."""

    name: str
    arguments: Mapping[str, Any] = field(factory=dict)
    id: str = ""
    """The provider's id, taken as it is: equal, empty and odd ones are worth a test."""
    invalid: str | None = None


@frozen(kw_only=True)
class Wait:
    """Is silent for so many seconds."""

    seconds: float = field(validator=_seconds, metadata={"key": "wait_s"})


@frozen(kw_only=True)
class Spend:
    """Says what the inference cost."""

    input: int | None = field(default=None, validator=_tokens)
    cached: int | None = field(default=None, validator=_tokens)
    output: int | None = field(default=None, validator=_tokens)
    thinking: int | None = field(default=None, validator=_tokens)


@frozen(kw_only=True)
class End:
    """Ends well for this reason; without it: `calls` when there are calls, else `stop`."""

    finish: Finish


@frozen(kw_only=True)
class Fail:
    """Fails with this kind of error (table P2); `remedy` is the table's unless given."""

    kind: str
    message: str = "the scenario fails here"
    remedy: Remedy | None = None
    retry_after_s: float | None = field(default=None, validator=_seconds)


@frozen(kw_only=True)
class Stall:
    """Says nothing for ever."""


@frozen(kw_only=True)
class Cut:
    """The stream ends without its end marker: an error, never an empty success (P3)."""


Move = Say | Think | Call | Wait | Spend | End | Fail | Stall | Cut
Inference = tuple[Move, ...]


@frozen(kw_only=True)
class Rule:
    """Plays `moves` whenever what must be answered contains the words: a person's last text, or the last results."""

    moves: Inference
    when_said: str | None = None
    """Words in the user or system text that ends the history; "" is any."""
    when_result: str | None = None
    """Words in one of the tool results that end the history; "" is any."""


@frozen(kw_only=True)
class Scenario:
    """What a scripted model plays."""

    inferences: tuple[Inference, ...] = ()
    rules: tuple[Rule, ...] = ()
    repeat: bool = False
    """Begin again after the last inference."""
    asides: Mapping[Purpose, tuple[Inference, ...]] = field(factory=dict)
    """What is played for a purpose, one after the other, the last one again and again; none: a few words."""
    context_tokens: int | None = field(default=None, validator=_tokens)
    """How much the model is said to read at once."""


@define(eq=False)
class ScriptedModel:
    """A provider that plays a scenario (see the module)."""

    scenario: Scenario
    name: str = "scripted"
    model: str = SCENARIO
    context_tokens: int | None = field(default=Factory(lambda self: self.scenario.context_tokens, takes_self=True))
    supports_tools: bool = True
    limits: Limits = field(factory=Limits)
    requests: list[Request] = field(factory=list, init=False)
    """Every request, in order."""
    cancelled: list[str] = field(factory=list, init=False)
    """The inference ids of the requests that were cancelled, in order."""
    _played: int = field(default=0, init=False)
    _asides: Counter[Purpose] = field(factory=Counter, init=False)

    async def infer(self, request: Request, emit: Emit) -> Reply:
        """Play the next inference of the scenario. Raises the `ProviderError` it asks for."""
        self.requests.append(request)
        request.sent(partial(_plain, request, self.model))
        moves = self._choose(request)
        try:
            await trio.lowlevel.checkpoint()
            return await self._play(moves, emit, request.used)
        except trio.Cancelled:
            self.cancelled.append(request.inference_id)
            raise

    def _choose(self, request: Request) -> Inference:
        if request.purpose is not Purpose.ANSWER:
            asides = self.scenario.asides.get(request.purpose) or ((Say(text=f"A scripted {request.purpose}."),),)
            self._asides[request.purpose] += 1
            return asides[min(self._asides[request.purpose], len(asides)) - 1]
        said, results = _to_answer(request)
        for rule in self.scenario.rules:
            if rule.when_said is not None and said is not None and rule.when_said in said:
                return rule.moves
            if rule.when_result is not None and any(rule.when_result in result for result in results):
                return rule.moves
        count = len(self.scenario.inferences)
        if self._played >= count and not (self.scenario.repeat and count):
            return (Say(text=AT_THE_END),)
        self._played += 1
        return self.scenario.inferences[(self._played - 1) % count]

    async def _play(self, moves: Inference, emit: Emit, used: Used) -> Reply:
        texts: list[str] = []
        thoughts: list[str] = []
        calls: list[CallRequest] = []
        usage, finish = Usage(), None
        for move in moves:
            match move:
                case Say():
                    await _stream(DeltaKind.TEXT, move.text, move.word_delay_s, emit)
                    texts.append(move.text)
                case Think():
                    await _stream(DeltaKind.THOUGHT, move.thought, move.word_delay_s, emit)
                    thoughts.append(move.thought)
                case Call():
                    calls.append(
                        CallRequest(id=move.id, name=move.name, arguments=move.arguments, invalid=move.invalid)
                    )
                case Wait():
                    await trio.sleep(move.seconds)
                case Spend():
                    usage = Usage(input=move.input, cached=move.cached, output=move.output, thinking=move.thinking)
                    used(usage)
                case End():
                    finish = move.finish
                case Fail():
                    raise self._error(move)
                case Stall():
                    await trio.sleep_forever()
                case Cut():
                    raise self._error(Fail(kind="cut", message="the stream ended without its end marker"))
        finish = finish or (Finish.CALLS if calls else Finish.STOP)
        return Reply(
            provider=self.name,
            model=self.model,
            text="".join(texts),
            thought="".join(thoughts),
            calls=tuple(calls),
            finish=finish,
            finish_reason=finish.value,
            usage=usage,
        )

    def _error(self, move: Fail) -> ProviderError:
        return ProviderError(
            f"{self.name}: {move.message}",
            remedy=move.remedy or REMEDY.get(move.kind, Remedy.RETRY),
            retry_after_s=move.retry_after_s,
            kind=move.kind,
        )


async def _stream(kind: DeltaKind, text: str, word_delay_s: float, emit: Emit) -> None:
    for number, word in enumerate(re.findall(r"\s*\S+\s*|\s+", text), 1):
        if word_delay_s > 0:
            await trio.sleep(word_delay_s)
        elif number % _WORDS_IN_A_ROW == 0:  # a book said at once still lets others run, and can be stopped
            await trio.lowlevel.checkpoint()
        emit(Piece(kind=kind, text=word))


def _plain(request: Request, model: str) -> dict[str, Any]:
    """Return what the model was asked as JSON data: there is no wire to say it for."""
    asked: dict[str, Any] = {
        "model": model,
        "system": request.system,
        "messages": [_plain_row(row) for row in request.history],
    }
    if request.tools:
        asked["tools"] = [
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
            for tool in request.tools
        ]
    if request.nudge:
        asked["nudge"] = request.nudge
    return asked


def _plain_row(row: Message) -> dict[str, Any]:
    match row.type:
        case Type.TEXT:
            return {"role": row.role.value, "content": row.content}
        case Type.TOOL_CALL:
            call = {"name": row.metadata["tool_name"], "arguments": dict(row.metadata["tool_arguments"])}
            return {"role": row.role.value, "type": row.type.value, "id": row.id, **call}
        case Type.TOOL_RESULT:
            result = {"id": row.parent_id, "outcome": row.metadata["outcome"], "content": row.content}
            return {"role": row.role.value, "type": row.type.value, **result}
        case _:
            return {"role": row.role.value, "type": row.type.value, "content": row.content}


def _to_answer(request: Request) -> tuple[str | None, list[str]]:
    """Return the text that ends the history, if one does, and the results that end it."""
    results: list[str] = []
    for message in reversed(request.history):
        if message.type is Type.TOOL_RESULT:
            results.append(message.content)
        elif message.role in (Role.USER, Role.SYSTEM):
            return (message.content if not results else None), results
        else:
            break
    return None, results
