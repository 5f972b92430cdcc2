"""Sessions for the tests of kept talks: their history grows and changes, and each request is made on three wires."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from attrs import define, evolve, field
from hypothesis import strategies as st

from kesoku_actors.llm.claude_body import ClaudeOptions
from kesoku_actors.llm.claude_request import ClaudeRequest
from kesoku_actors.llm.dialects import claude as claude_dialect
from kesoku_actors.llm.dialects import gemini as gemini_dialect
from kesoku_actors.llm.dialects import openai as openai_dialect
from kesoku_actors.llm.gemini_body import GeminiOptions
from kesoku_actors.llm.gemini_request import GeminiRequest
from kesoku_actors.llm.kept_talk import KeptTalks, write
from kesoku_actors.llm.media import Item, Media
from kesoku_actors.llm.openai_request import OpenAIRequest
from kesoku_actors.llm.port import Request, StepContent
from kesoku_actors.llm.repaired import RepairedBody
from kesoku_actors.llm.talk import Made, Stretch
from kesoku_actors.llm.wire import Wire
from kesoku_actors.protocol import Message, ToolSchema, Type

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


def claude_native(rows: Sequence[Message], besides: str) -> Mapping[str, Any] | None:
    """What Claude would have said to be stored as these rows, and what its own tools did besides."""
    search = {"type": "server_tool_use", "id": f"srvtoolu_{rows[0].id}", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": search["id"], "content": []}
    blocks: list[dict[str, Any]] = {"tools": [search, found], "half": [search]}.get(besides, [])
    for row in rows:
        match row.type:
            case Type.THOUGHT:
                signature = "" if besides == "odd" else "c2ln"
                blocks.append({"type": "thinking", "thinking": row.content, "signature": signature})
            case Type.TEXT:
                blocks.append({"type": "text", "text": row.content})
            case _:
                name, input = claude_dialect.NAMES.outward(row.metadata["tool_name"]), row.metadata["tool_arguments"]
                blocks.append({"type": "tool_use", "id": row.metadata["tool_call_id"], "name": name, "input": input})
    return {"content": blocks}


def gemini_native(rows: Sequence[Message], besides: str) -> Mapping[str, Any] | None:
    """What Gemini would have said to be stored as these rows, and what its own tools did besides."""
    ran: list[dict[str, Any]] = [{"executableCode": {"language": "PYTHON", "code": "1"}}]
    parts = ran if besides in ("tools", "half") else []
    for row in rows:
        match row.type:
            case Type.THOUGHT:
                parts.append({"text": row.content, "thought": True})
            case Type.TEXT:
                parts.append({"text": row.content} | ({"thoughtSignature": "odd!"} if besides == "odd" else {}))
            case _:
                call = {"name": row.metadata["tool_name"], "args": row.metadata["tool_arguments"]}
                call |= {"id": row.metadata["tool_call_id"]} if besides != "nothing" else {}
                parts.append({"functionCall": call} | ({} if besides == "half" else {"thoughtSignature": "c2lnbmVk"}))
    return {"role": "model", "parts": parts}


WIRES: dict[str, tuple[Making, Native, tuple[str, str]]] = {
    "openai": (openai_wire, openai_native, ("gpt", "gpt-mini")),
    "claude": (claude_wire, claude_native, ("claude-haiku-4-5", "claude-3-7-sonnet-20250219")),
    "gemini": (gemini_wire, gemini_native, ("gemini-2.5-flash", "gemini-3-pro-preview")),
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
