"""What it costs to make a request of a long history: from rows to the bytes that are sent.

Goal 16, its second half: the body with its check and its JSON, over one `dumps` of the finished body with the fastest
encoder that is installed (msgspec or orjson, else the standard library's; which one stands in the name).

    scripts/bench/run --only encode
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kesoku_actors.llm.claude_body import ClaudeOptions
from kesoku_actors.llm.claude_body import make_body as claude_body
from kesoku_actors.llm.claude_repair import repair as claude_repair
from kesoku_actors.llm.gemini_body import GeminiOptions
from kesoku_actors.llm.gemini_body import make_body as gemini_body
from kesoku_actors.llm.gemini_repair import repair as gemini_repair
from kesoku_actors.llm.openai_body import make_body as openai_body
from kesoku_actors.llm.openai_rules import repair as openai_repair
from kesoku_actors.llm.port import Request
from scripts.bench.report import Row, row, show
from tests.llm.examples import DATE_TOOL, answered, asking, called, result, said

ROUNDS: Final = 5
MESSAGES: Final = 5_000
LIMIT: Final = 1.3


def rows() -> list[Row]:
    """Measure all three wires."""
    request = history(MESSAGES)
    name, dumps = encoder()
    return [_measured(wire, request, make, name, dumps) for wire, make in WIRES.items()]


def history(messages: int) -> Request:
    """Return a request with so many rows: questions, calls, results and answers of some length."""
    found = []
    for number in range(1, messages, 4):
        call = called(number + 1, call_id=f"call{number}", zone="UTC")
        words = f"Number {number}: " + "which day is it, and why is that so? " * 6
        found += [
            said(number, words),
            call,
            result(number + 2, call, "It is Monday. " * 20),
            answered(number + 3, "Monday, because yesterday was Sunday. " * 8),
        ]
    return asking(*found, said(messages, "And tomorrow?"), tools=(DATE_TOOL,))


def encoder() -> tuple[str, Callable[[Any], bytes]]:
    """Return the fastest JSON encoder there is, with its name."""
    for name, function in (("msgspec.json", "encode"), ("orjson", "dumps")):
        try:
            return name, getattr(importlib.import_module(name), function)
        except ImportError:
            continue
    return "json", lambda value: json.dumps(value, ensure_ascii=False).encode()


def _openai(request: Request) -> Any:
    body = openai_body(request, provider="openai", model="m")
    return {**body, "messages": openai_repair(body["messages"]).messages}


def _claude(request: Request) -> Any:
    return claude_repair(claude_body(request, ClaudeOptions(provider="claude", model="claude-haiku-4-5"))).body


def _gemini(request: Request) -> Any:
    model = "gemini-2.5-flash"
    return gemini_repair(gemini_body(request, GeminiOptions(provider="gemini", model=model)), model=model).body


WIRES: Final[dict[str, Callable[[Request], Any]]] = {"openai": _openai, "claude": _claude, "gemini": _gemini}


def _measured(
    wire: str, request: Request, make: Callable[[Request], Any], name: str, dumps: Callable[[Any], bytes]
) -> Row:
    ours, floor = [], []
    for _ in range(ROUNDS):
        begun = process_time()
        body = make(request)
        json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        ours.append(process_time() - begun)
        begun = process_time()
        dumps(body)
        floor.append(process_time() - begun)
    return row(16, f"request of {MESSAGES} rows, {wire} / {name}", limit=LIMIT, ours=ours, floor=floor)


if __name__ == "__main__":
    sys.exit(0 if show(rows()) else 1)
