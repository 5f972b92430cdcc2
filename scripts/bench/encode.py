"""What it costs to make a request of a long history: from rows to the bytes that are sent.

Goal 16, its second half: the body made, checked and encoded, over one `dumps` of the finished body. Counted is all of
our own work before a send, from the prepared rows on, of a session that goes on as sessions do:

* `in a turn`: one call with its result more than in the request before, its native content with it;
* `next turn`: the first request of a turn, when the one before has just lost its native content;
* `the first`: after a start, a compaction or a change of tools, when nothing is kept yet. It is made once, not before
  each inference, and therefore shown and not judged.

What an SDK does is not counted: it is asked with a stand-in for the talk (`llm/stand_in`), so its part does not grow
with the history. The floor is the fastest encoder that is installed (msgspec or orjson, else the standard library's;
its name stands in the row); ours is the standard library's always.

    scripts/bench/run --only encode
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from time import process_time
from typing import Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from attrs import evolve

from kesoku_actors.llm.claude_body import ClaudeOptions
from kesoku_actors.llm.claude_request import ClaudeRequest
from kesoku_actors.llm.dialects import Declared, claude, gemini, openai
from kesoku_actors.llm.gemini_body import GeminiOptions
from kesoku_actors.llm.gemini_request import GeminiRequest
from kesoku_actors.llm.kept_talk import KeptTalks, write
from kesoku_actors.llm.openai_request import OpenAIRequest
from kesoku_actors.llm.port import Request, StepContent
from kesoku_actors.llm.wire import Wire
from kesoku_actors.protocol import Message
from scripts.bench.report import Row, row, show
from tests.llm.examples import DATE_TOOL, answered, asking, called, result, said

ROUNDS: Final = 5
MESSAGES: Final = 5_000
LIMIT: Final = 1.3
MODELS: Final = {"openai": "gpt-5", "claude": "claude-haiku-4-5", "gemini": "gemini-2.5-flash"}
MOMENTS: Final = ("the first", "in a turn", "next turn")
JUDGED: Final = frozenset(MOMENTS[1:])


def rows() -> list[Row]:
    """Measure all three wires."""
    name, dumps = encoder()
    return [one for wire in WIRES for one in _measured(wire, name, dumps)]


def encoder() -> tuple[str, Callable[[Any], bytes]]:
    """Return the fastest JSON encoder there is, with its name."""
    for name, function in (("msgspec.json", "encode"), ("orjson", "dumps")):
        try:
            return name, getattr(importlib.import_module(name), function)
        except ImportError:
            continue
    return "json", lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def history(messages: int, provider: str) -> tuple[list[Message], list[StepContent]]:
    """Return so many rows: questions, calls, results and answers of some length; and who said what is the model's."""
    found: list[Message] = []
    steps = []
    for number in range(1, messages, 4):
        call, step = _called(number + 1, provider)
        words = f"Number {number}: " + "which day is it, and why is that so? " * 6
        found += [
            said(number, words),
            call,
            result(number + 2, call, "It is Monday. " * 20),
            answered(number + 3, "Monday, because yesterday was Sunday. " * 8),
        ]
        steps.append(evolve(step, native=None))
    return found, steps


def session(provider: str, kept: KeptTalks) -> dict[str, Request]:
    """Return the requests of the moments that are measured, in order; rows and steps are those of the ones before."""
    found, steps = history(MESSAGES, provider)
    call, step = _called(MESSAGES + 1, provider)
    then, next_step = _called(MESSAGES + 3, provider)
    found += [said(MESSAGES, "And tomorrow?"), call, result(MESSAGES + 2, call, "Tuesday.")]
    first = asking(*found, steps=(*steps, step), tools=(DATE_TOOL,), kept=kept)
    found += [then, result(MESSAGES + 4, then, "Tuesday.")]
    more = evolve(first, history=tuple(found), steps=(*steps, step, next_step))
    found += [answered(MESSAGES + 5, "Tuesday."), said(MESSAGES + 6, "And then?")]
    bare = [evolve(each, native=None) for each in (step, next_step)]
    return dict(zip(MOMENTS, (first, more, evolve(more, history=tuple(found), steps=(*steps, *bare))), strict=True))


def _called(number: int, provider: str) -> tuple[Message, StepContent]:
    call = called(number, call_id=f"toolu_{number}", zone="UTC")
    native = NATIVES[provider](call)
    return call, StepContent(provider=provider, model=MODELS[provider], native=native, message_ids=(call.id,))


def _claude_native(call: Message) -> Mapping[str, Any]:
    arguments, id = call.metadata["tool_arguments"], call.metadata["tool_call_id"]
    thought = {"type": "thinking", "thinking": "I look at the calendar. " * 9, "signature": "c2ln" * 60}
    return {"content": [thought, {"type": "tool_use", "id": id, "name": "date", "input": arguments}]}


def _gemini_native(call: Message) -> Mapping[str, Any]:
    function = {"name": "date", "args": call.metadata["tool_arguments"]}
    return {"role": "model", "parts": [{"functionCall": function, "thoughtSignature": "c2ln" * 60}]}


def _openai_native(_call: Message) -> Mapping[str, Any]:
    return {"reasoning_content": "I look at the calendar. " * 9}


def _openai(request: Request, declared: Declared) -> Wire:
    return OpenAIRequest(request=request, provider="openai", model=MODELS["openai"], declared=declared)


def _claude(request: Request, declared: Declared) -> Wire:
    options = ClaudeOptions(provider="claude", model=MODELS["claude"], thinking_level="high")
    return ClaudeRequest(request=request, options=options, declared=declared)


def _gemini(request: Request, declared: Declared) -> Wire:
    options = GeminiOptions(provider="gemini", model=MODELS["gemini"])
    return GeminiRequest(request=request, options=options, declared=declared)


NATIVES: Final = {"openai": _openai_native, "claude": _claude_native, "gemini": _gemini_native}
WIRES: Final = {"openai": (_openai, openai), "claude": (_claude, claude), "gemini": (_gemini, gemini)}


def _measured(provider: str, name: str, dumps: Callable[[Any], bytes]) -> list[Row]:
    make, dialect = WIRES[provider]
    declared = dialect.declare((DATE_TOOL,))
    ours: dict[str, list[float]] = {moment: [] for moment in MOMENTS}
    floor: dict[str, list[float]] = {moment: [] for moment in MOMENTS}
    for _ in range(ROUNDS):
        for moment, request in session(provider, KeptTalks()).items():
            wire = make(request, declared)
            begun = process_time()
            written = write(wire)
            content = written.content
            ours[moment].append(process_time() - begun)
            begun = process_time()
            dumps(written.body)
            floor[moment].append(process_time() - begun)
            assert json.loads(content) == written.body, "what is sent is the body"
            assert not written.repairs, "a history as it should be"
    return [
        row(
            16,
            f"{MESSAGES} rows, {moment}, {provider} / {name}",
            limit=LIMIT,
            ours=ours[moment],
            floor=floor[moment],
            judged=moment in JUDGED,
        )
        for moment in MOMENTS
    ]


if __name__ == "__main__":
    sys.exit(0 if show(rows()) else 1)
