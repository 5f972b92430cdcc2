"""A talk that is kept between requests is sent as if it were made anew each time, whatever happens to its history."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest
from attrs import define, evolve, field
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kesoku_actors.llm.claude_body import ClaudeOptions
from kesoku_actors.llm.claude_request import ClaudeRequest
from kesoku_actors.llm.dialects import claude as claude_dialect
from kesoku_actors.llm.dialects import gemini as gemini_dialect
from kesoku_actors.llm.dialects import openai as openai_dialect
from kesoku_actors.llm.gemini_body import GeminiOptions
from kesoku_actors.llm.gemini_request import GeminiRequest
from kesoku_actors.llm.kept_talk import GRAIN, KeptTalks, write
from kesoku_actors.llm.media import Item, Media
from kesoku_actors.llm.openai_request import OpenAIRequest
from kesoku_actors.llm.port import Purpose, Request, StepContent
from kesoku_actors.llm.repaired import RepairedBody
from kesoku_actors.llm.talk import Made, Stretch
from kesoku_actors.llm.wire import Wire
from kesoku_actors.protocol import Message, ToolSchema, Type

from ..draws import examples
from . import test_claude_repair, test_gemini_repair
from .examples import DATE_TOOL, answered, asking, called, notice, result, said, thought

Making = Callable[[Request, str, Mapping[str, Sequence[Item]]], Wire]
Native = Callable[[Sequence[Message], str], Mapping[str, Any] | None]
CAT = Media(filename="cat.png", mime_type="image/png", data=b"\x89PNG")
OTHER_TOOL = ToolSchema(name="shell", description="Runs.", parameters={"type": "object", "properties": {}})


def openai_wire(request: Request, model: str, media: Mapping[str, Sequence[Item]]) -> Wire:
    declared = openai_dialect.declare(request.tools)
    return OpenAIRequest(request=request, provider="openai", model=model, declared=declared)


def claude_wire(request: Request, model: str, media: Mapping[str, Sequence[Item]]) -> Wire:
    options = ClaudeOptions(provider="claude", model=model, thinking_level="high")
    declared = claude_dialect.declare(request.tools)
    return ClaudeRequest(request=request, options=options, declared=declared, media=media)


def gemini_wire(request: Request, model: str, media: Mapping[str, Sequence[Item]]) -> Wire:
    declared = gemini_dialect.declare(request.tools)
    options = GeminiOptions(provider="gemini", model=model)
    return GeminiRequest(request=request, options=options, declared=declared, media=media)


def openai_native(rows: Sequence[Message], besides: str) -> Mapping[str, Any] | None:
    """What a server says beside its calls."""
    calls = [{"extra": row.id} for row in rows if row.type is Type.TOOL_CALL]
    return {"reasoning_content": besides, "tool_calls": calls} if calls else None


WIRES: dict[str, tuple[Making, Native, tuple[str, str]]] = {
    "openai": (openai_wire, openai_native, ("gpt", "gpt-mini")),
    "claude": (claude_wire, test_claude_repair.native, ("claude-haiku-4-5", "claude-3-7-sonnet-20250219")),
    "gemini": (gemini_wire, test_gemini_repair.native, ("gemini-2.5-flash", "gemini-3-pro-preview")),
}

TEXTS = st.sampled_from(["Hello.", "x" * 300, "Grüße 🙂", "Go on.", *["Well."] * 8, "", " ", "\ud800"])
CALL_IDS = st.sampled_from([*["own"] * 6, "", "same", "call00001", "toolu_00002", "not an id!"])
STEPS: Sequence[str] = (
    *["say", "say", "calls"] * 10,
    *["late", "notice", "thought", "partial", "blank", "end the turn"],
    *["edit", "withdraw", "summarise", "copy", "shorten", "restep", "undo", "orphan", "late result"] * 2,
    *["tools", "nudge", "system", "model", "limit", "file"] * 2,
)


@define
class Session:
    """A history that grows and changes, and how it is asked with."""

    draw: st.DrawFn
    provider: str
    native: Native
    models: tuple[str, str]
    model: str
    rows: list[Message] = field(factory=list)
    steps: list[StepContent] = field(factory=list)
    owed: list[Message] = field(factory=list)
    foretold: list[Message] = field(factory=list)
    """Calls whose result stands before them."""
    request: dict[str, Any] = field(factory=lambda: {"tools": (DATE_TOOL,), "system": "Be brief.", "nudge": None})
    files: dict[str, list[Item]] = field(factory=dict)
    number: int = 0
    pasts: list[tuple[list[Message], list[StepContent]]] = field(factory=list)

    def next(self) -> int:
        self.number += 1
        return self.number

    def change(self, what: str) -> None:
        """Do one thing that happens to a session."""
        draw, rows = self.draw, self.rows
        self.pasts.append((list(rows), list(self.steps)))
        match what:
            case "say":
                if rows and draw(st.booleans()):
                    self._step([answered(self.next(), "So it is.")])
                rows.append(said(self.next(), draw(TEXTS), draw(st.sampled_from(["User", "Ann"]))))
            case "notice":
                rows.append(notice(self.next(), draw(TEXTS)))
            case "thought":
                rows.append(thought(self.next(), draw(TEXTS)))
            case "answer" | "partial" | "blank":
                text = draw(TEXTS) if what != "blank" else ""
                self._step([answered(self.next(), text, **({"partial": True} if what == "partial" else {}))])
            case "calls" | "late":
                said_first = [answered(self.next(), "I look.")] if draw(st.booleans()) else []
                calls = [self._call() for _ in range(draw(st.integers(1, 3)))]
                self._step([thought(self.next(), "Hm."), *said_first, *calls])
                for call in draw(st.permutations(calls)):
                    if what == "calls":
                        rows.append(result(self.next(), call, draw(TEXTS)))
                    else:
                        self.owed.append(call)
            case "late result" if self.owed:
                rows.append(result(self.next(), self.owed.pop(), "Late."))
            case "orphan":
                self.foretold.append(called(self.next(), call_id="own"))
                rows.append(result(self.next(), self.foretold[-1], "Early."))
            case "end the turn":
                self.steps = [evolve(step, native=None) for step in self.steps]
            case "restep" if self.steps:
                place = draw(st.integers(0, len(self.steps) - 1))
                step = evolve(self.steps[place], provider=draw(st.sampled_from([self.provider, "other"])))
                self.steps[place : place + 1] = draw(st.sampled_from([[], [step]]))
            case "summarise" if rows:
                del rows[: draw(st.integers(0, len(rows)))]
                rows.insert(0, notice(self.next(), "Summary of an earlier part."))
            case "undo":
                past, self.steps = draw(st.sampled_from(self.pasts))
                self.rows = list(past)
            case "edit" | "withdraw" | "copy" | "shorten" | "file" if rows:
                place = draw(st.integers(0, len(rows) - 1))
                self._touch(what, place)
            case "tools":
                self.request["tools"] = draw(st.sampled_from([(DATE_TOOL,), (DATE_TOOL, OTHER_TOOL), ()]))
            case "nudge":
                self.request["nudge"] = draw(st.sampled_from([None, "Please answer."]))
            case "system":
                self.request["system"] = draw(st.sampled_from(["Be brief.", "", "Be kind. ü"]))
            case "limit":
                self.request["max_output_tokens"] = draw(st.sampled_from([None, 500, 20_000]))
            case "model":
                self.model = draw(st.sampled_from(self.models))

    def asked(self, kept: KeptTalks) -> Request:
        """The request as it would be sent now."""
        return asking(*self.rows, steps=tuple(self.steps), kept=kept, **self.request)

    def _touch(self, what: str, place: int) -> None:
        row = self.rows[place]
        match what:
            case "withdraw":
                del self.rows[place]
            case "edit" if row.type is Type.TOOL_CALL:
                arguments = {"zone": self.draw(st.sampled_from([True, 1, 1.0, "UTC"]))}
                self.rows[place] = evolve(row, metadata={**row.metadata, "tool_arguments": arguments})
            case "edit":
                self.rows[place] = evolve(row, content=self.draw(TEXTS))
            case "copy":
                self.rows[place] = evolve(row)
            case "shorten":
                self.rows[place] = evolve(row, content=row.content[:3])
            case _:
                self.files = {row.id: [CAT]} if row.is_person or row.type is Type.TOOL_RESULT else {}

    def _call(self) -> Message:
        if self.foretold and self.draw(st.booleans()):
            return self.foretold.pop()
        id = self.draw(CALL_IDS)
        number = self.next()
        return called(number, call_id=f"toolu_own{number}" if id == "own" else id, zone=number)

    def _step(self, made: list[Message]) -> None:
        self.rows += made
        who = self.draw(st.sampled_from([(self.provider, self.model)] * 4 + [("other", "m"), None]))
        if who is not None:
            besides = self.draw(st.sampled_from(["nothing"] * 5 + ["tools", "half", "odd"]))
            native = self.native(made, besides) if who[0] == self.provider else {"content": "foreign"}
            ids = tuple(row.id for row in made)
            self.steps.append(StepContent(provider=who[0], model=who[1], native=native, message_ids=ids))


@st.composite
def seen(draw: st.DrawFn, name: str) -> Counter[str]:
    """Play a session, compare each of its requests with one made anew; return how often what was kept was of use."""
    _, native, models = WIRES[name]
    making = WIRES[name][0]
    kept = KeptTalks(shortest=0, compares=True)
    session = Session(draw=draw, provider=name, native=native, models=models, model=models[0])
    counts: Counter[str] = Counter()
    for what in ["say", *draw(st.lists(st.sampled_from(STEPS), min_size=4, max_size=30))]:
        before = kept.rows
        session.change(what)
        wire = making(session.asked(kept), session.model, session.files)
        written = write(wire)
        sound = wire.whole()
        assert written.body == sound.body
        assert written.repairs == sound.repairs
        assert json.loads(written.content) == json.loads(json.dumps(sound.body))
        counts["requests"] += 1
        counts["repaired"] += bool(sound.repairs)
        counts["gone on with"] += bool(before) and kept.rows >= before
        counts["given up"] += kept.rows < before
    return counts


@pytest.mark.parametrize("name", WIRES)
def test_a_request_that_goes_on_equals_the_one_made_anew(name: str) -> None:
    total: Counter[str] = Counter()

    @given(seen(name))
    @settings(max_examples=examples(150), suppress_health_check=list(HealthCheck), deadline=None)
    def play(counts: Counter[str]) -> None:
        total.update(counts)

    play()
    assert total["gone on with"] > total["requests"] / 10, total
    assert total["given up"] > 10, total
    assert total["repaired"] > 20, total


@define
class Watched:
    """A wire that counts the rows it makes messages of, also of a request that is made whole to be sent."""

    wire: Wire
    made: list[int] = field(factory=list)

    def make(self, stretch: Stretch, ids: Mapping[str, str]) -> Made:
        self.made.append(len(stretch.rows))
        return self.wire.make(stretch, ids)

    def whole(self) -> RepairedBody:
        request = self.wire.request
        if request.kept is None or not request.kept.compares:
            self.made.append(len(request.history))
        return self.wire.whole()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wire, name)


def rows_made(name: str, request: Request, model: str | None = None) -> int:
    """Write a request; return how many rows were made into messages."""
    making, _, models = WIRES[name]
    watched = Watched(making(request, model or models[0], {}))
    write(cast("Wire", watched))
    return sum(watched.made)


def long_talk(name: str, kept: KeptTalks, turns: int = 100) -> Request:
    """A talk of many turns with a call in each; of the last one the native content is known."""
    rows, steps = [], []
    for number in range(1, 4 * turns, 4):
        call = called(number + 1, call_id=f"toolu_{number}", zone="UTC")
        native = WIRES[name][1]([call], "nothing") if number > 4 * (turns - 1) else None
        provider, model = name, WIRES[name][2][0]
        steps.append(StepContent(provider=provider, model=model, native=native, message_ids=(call.id,)))
        answer = answered(number + 3, "It is Monday.")
        rows += [said(number, "Which day?"), call, result(number + 2, call, "Monday"), answer]
    question = said(4 * turns + 1, "And tomorrow?")
    return asking(*rows, question, steps=tuple(steps), tools=(DATE_TOOL,), kept=kept)


def followed_by(request: Request, *rows: Message) -> Request:
    return evolve(request, history=(*request.history, *rows))


@pytest.mark.parametrize("name", WIRES)
def test_of_a_long_talk_only_what_follows_the_last_answer_is_made(name: str) -> None:
    kept = KeptTalks()
    request = long_talk(name, kept)
    assert rows_made(name, request) == 401
    assert rows_made(name, request) == 2, "the last answer may go on, and what was said behind it"
    for number in range(500, 540, 2):
        call = called(number, call_id=f"toolu_{number}")
        request = followed_by(request, call, result(number + 1, call, "Tuesday"))
        assert rows_made(name, request) == 4


@pytest.mark.parametrize("name", WIRES)
def test_a_turn_that_ends_is_all_that_is_made_anew(name: str) -> None:
    kept = KeptTalks()
    request = long_talk(name, kept)
    rows_made(name, request)
    bare = tuple(evolve(step, native=None) for step in request.steps)
    ended = followed_by(evolve(request, steps=bare), answered(900, "Tuesday."), said(901, "Thanks."))
    assert rows_made(name, ended) <= 10 + GRAIN, "the turn that ended, its question and what followed"


@pytest.mark.parametrize("name", WIRES)
def test_a_notice_made_again_in_the_same_words_is_no_change(name: str) -> None:
    kept = KeptTalks()
    request = long_talk(name, kept)
    summarised = [evolve(request, history=(notice(0, "Summary."), *request.history[200:])) for _ in range(2)]
    assert rows_made(name, summarised[0]) == 202
    assert rows_made(name, summarised[1]) == 2


@pytest.mark.parametrize("name", WIRES)
def test_an_argument_that_equals_another_and_reads_differently_is_a_change(name: str) -> None:
    kept = KeptTalks(compares=True)
    request = long_talk(name, kept)
    rows_made(name, request)
    place = next(place for place, row in enumerate(request.history) if row.type is Type.TOOL_CALL)
    for value in (1, True, 1.0):
        rows = list(request.history)
        rows[place] = evolve(rows[place], metadata={**rows[place].metadata, "tool_arguments": {"zone": value}})
        assert rows_made(name, evolve(request, history=tuple(rows))) > 300


@pytest.mark.parametrize("name", WIRES)
def test_a_result_that_comes_late_or_goes_again_is_read_where_its_call_is(name: str) -> None:
    kept = KeptTalks(compares=True)
    call = called(500, call_id="toolu_500")
    waiting = followed_by(long_talk(name, kept), call, said(501, "Well?"), answered(502, "Wait."), said(503, "Go on."))
    came = followed_by(waiting, answered(504, "I go on."), said(505, "Well?"), result(506, call, "Tuesday"))
    for request in (waiting, came, followed_by(came, answered(507, "Tuesday."), said(508, "Thanks.")), came, waiting):
        rows_made(name, request)


@pytest.mark.parametrize("name", WIRES)
def test_an_answer_that_is_withdrawn_takes_with_it_no_more_than_what_stood_by_it(name: str) -> None:
    kept = KeptTalks(compares=True)
    request = long_talk(name, kept)
    rows_made(name, request)
    withdrawn = evolve(request, history=(*request.history[:-2], said(500, "Forget it.")))
    assert rows_made(name, withdrawn) <= 2 * GRAIN, "what is kept is followed by an answer or given up"


@pytest.mark.parametrize("name", WIRES)
def test_without_the_tools_it_was_made_with_a_talk_is_made_anew(name: str) -> None:
    kept = KeptTalks(compares=True)
    request = long_talk(name, kept)
    for tools in ((DATE_TOOL,), (), (DATE_TOOL, OTHER_TOOL)):
        assert rows_made(name, evolve(request, tools=tools)) == 401
        assert rows_made(name, evolve(request, tools=tools)) == 2


@pytest.mark.parametrize(
    ("name", "model"), [("claude", "claude-haiku-4-5"), ("gemini", "gemini-3-pro-preview"), ("openai", "gpt")]
)
def test_a_turn_that_another_model_began_is_gone_on_with(name: str, model: str) -> None:
    kept = KeptTalks()
    request = long_talk(name, kept)
    rows_made(name, request, model)
    for number in range(500, 520, 2):
        call = called(number, call_id=f"toolu_{number}")
        step = StepContent(provider="other", model="m", native={"content": "foreign"}, message_ids=(call.id,))
        request = evolve(followed_by(request, call, result(number + 1, call, "Monday")), steps=(*request.steps, step))
        assert rows_made(name, request, model) == 4
        assert write(WIRES[name][0](request, model, {})).repairs == ()


def test_talks_of_two_models_are_kept_and_no_more() -> None:
    kept = KeptTalks()
    request = long_talk("openai", kept)
    for model in ("a", "b"):
        assert rows_made("openai", request, model) == 401
    for model in ("a", "b"):
        assert rows_made("openai", request, model) == 2
    assert rows_made("openai", request, "c") == 401
    assert kept.rows == 2 * 399
    assert rows_made("openai", request, "a") == 401


def test_nothing_is_kept_of_a_short_talk_nor_of_what_no_turn_asked_for() -> None:
    kept = KeptTalks()
    rows_made("openai", long_talk("openai", kept, turns=15))
    rows_made("openai", evolve(long_talk("openai", kept), purpose=Purpose.SUMMARY))
    assert kept.rows == 0
