"""The scripted model: it plays a scenario instead of thinking. For tests, demos and plugin authors.

A scenario is a list of inferences, an inference a list of *moves*: say a text, think, ask for a call, wait, fail,
stall, cut the stream. Each request plays the next inference; a *rule* whose words occur in what must be answered is
played instead and uses none up. When nothing is left the model says so, or begins again (`repeat`).

    scenario = Scenario(inferences=(
        (Call(name="run_shell_command", arguments={"command": "date"}),),
        (Think(thought="Now I know."), Say(text="It is late.", word_delay_s=0.05)),
    ))
    model = ScriptedModel(scenario)

The same in a file, read by `load_scenario`:

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
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import trio
from attrs import define, field, frozen
from cattrs import BaseValidationError, Converter, transform_error
from cattrs.v import format_exception

from kesoku_actors.errors import ConfigError
from kesoku_actors.llm.classify import REMEDY
from kesoku_actors.llm.port import CallRequest, Emit, Finish, Limits, Piece, ProviderError, Remedy, Reply, Request
from kesoku_actors.llm.wellformed import well_formed
from kesoku_actors.protocol import DeltaKind, Role, Type, Usage, make_converter

DEMO: Final = Path(__file__).with_name("scenarios") / "demo.toml"
"""A scenario to show: two parallel shell commands, then an answer."""

_WORDS_IN_A_ROW: Final = 256
AT_THE_END: Final = "This scripted model has played its whole scenario and has nothing more to say."


@frozen(kw_only=True)
class Say:
    """Streams a text word by word."""

    text: str
    word_delay_s: float = 0.0
    """Seconds before each word."""


@frozen(kw_only=True)
class Think:
    """Streams a thought word by word."""

    thought: str
    word_delay_s: float = 0.0


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

    seconds: float


@frozen(kw_only=True)
class Spend:
    """Says what the inference cost."""

    input: int | None = None
    cached: int | None = None
    output: int | None = None
    thinking: int | None = None


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
    retry_after_s: float | None = None


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


@define(eq=False)
class ScriptedModel:
    """A provider that plays a scenario (see the module)."""

    scenario: Scenario
    name: str = "scripted"
    model: str = "scenario"
    context_tokens: int | None = None
    supports_tools: bool = True
    limits: Limits = field(factory=Limits)
    requests: list[Request] = field(factory=list, init=False)
    """Every request, in order."""
    cancelled: list[str] = field(factory=list, init=False)
    """The inference ids of the requests that were cancelled, in order."""
    _played: int = field(default=0, init=False)

    async def infer(self, request: Request, emit: Emit) -> Reply:
        """Play the next inference of the scenario. Raises the `ProviderError` it asks for."""
        self.requests.append(request)
        moves = self._choose(request)
        try:
            await trio.lowlevel.checkpoint()
            return await self._play(moves, emit)
        except trio.Cancelled:
            self.cancelled.append(request.inference_id)
            raise

    def _choose(self, request: Request) -> Inference:
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

    async def _play(self, moves: Inference, emit: Emit) -> Reply:
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


_VERBS: Final[Mapping[str, tuple[type, str | None]]] = {
    "say": (Say, "text"),
    "think": (Think, "thought"),
    "call": (Call, "name"),
    "wait_s": (Wait, "seconds"),
    "spend": (Spend, None),
    "end": (End, "finish"),
    "fail": (Fail, "kind"),
    "stall": (Stall, None),
    "cut": (Cut, None),
}
"""The key that names a move in a file, and the field its value fills; none: the value is the whole move."""


def _make_converter() -> Converter:
    converter = make_converter()

    def structure_move(data: Any, _wanted: Any) -> Any:
        if not isinstance(data, Mapping):
            raise ValueError(f"a move is a table such as {{ say = 'Hello' }}, not {data!r:.40}")
        verbs = [key for key in data if key in _VERBS]
        if len(verbs) != 1:
            raise ValueError(f"a move has exactly one of the keys {', '.join(_VERBS)}")
        wanted, filled = _VERBS[verbs[0]]
        value, rest = data[verbs[0]], {key: data[key] for key in data if key != verbs[0]}
        if wanted is Call:
            _check_arguments(rest.get("arguments"))
        if filled is not None:
            return converter.structure({filled: value, **rest}, wanted)
        if wanted is not Spend:
            if value is not True:
                raise ValueError(f"{verbs[0]} is true or absent")
            return converter.structure(rest, wanted)
        if not isinstance(value, Mapping) or rest:
            raise ValueError("spend is a table of token counts and stands alone")
        return converter.structure(value, wanted)

    converter.register_structure_hook_func(lambda wanted: wanted == Move, structure_move)
    converter.register_structure_hook(Any, lambda value, _wanted: value)
    return converter


def _check_arguments(arguments: object) -> None:
    """Raise `ValueError` naming the argument that no model can send: TOML has dates, and numbers that are none."""
    for key, value in arguments.items() if isinstance(arguments, Mapping) else ():
        try:
            well_formed(value)
        except ValueError as error:
            raise ValueError(f"the argument {key} cannot be sent: {error}") from None


def _problem(error: BaseException, wanted: type | None) -> str:
    """Word one problem; our own sentences say more than the type that was wanted."""
    return str(error) if isinstance(error, ValueError) else format_exception(error, wanted)


def load_scenario(path: Path) -> Scenario:
    """Return the scenario in a TOML file. Raises `ConfigError` naming the file and every key that is wrong."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return _make_converter().structure(data, Scenario)
    except OSError as error:
        raise ConfigError(f"scenario {path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"scenario {path}: not TOML: {error}") from None
    except BaseValidationError as error:
        problems = transform_error(error, path="scenario", format_exception=_problem)
        raise ConfigError(f"{path}: {'; '.join(problems)}") from None
