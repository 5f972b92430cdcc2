"""Mends a request for Claude so that it keeps every rule of `claude_rules`, on a copy (P1). Pure.

`repair` returns a body that `broken` finds nothing in, returns what is right unchanged, and names everything it did.
What it cannot keep it tells of: a result without its call becomes a text, an image too large a note. A talk that is too
long without its files stays so: a history is made shorter before (`session.ladder`).
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import field

from kesoku_actors.llm import claude_names as names
from kesoku_actors.llm import claude_rules as rules
from kesoku_actors.llm.repaired import BEGINNING, GO_ON, RepairedBody, fresh_ids
from kesoku_actors.llm.talk import EMPTY, NO_RESULT
from kesoku_actors.llm.wellformed import json_size, well_formed
from kesoku_actors.values import define

Block = dict[str, Any]


def repair(body: Mapping[str, Any]) -> RepairedBody:
    """Return a copy that keeps the rules. The given body is not changed."""
    if not rules.broken(body):
        return RepairedBody(body=body, repairs=())
    mending = _Mending(body=well_formed(dict(body)))
    if mending.body != body:
        mending.repairs.append("replaced half a surrogate pair")
    mending.mend()
    return RepairedBody(body=mending.body, repairs=tuple(mending.repairs))


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _without_file(citation: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in citation.items() if key != "file_id"}


@define(kw_only=True)
class _Mending:
    """The body as it is mended, and what was done."""

    body: dict[str, Any]
    repairs: list[str] = field(factory=list)

    def mend(self) -> None:
        """Do everything, in an order in which nothing is broken again."""
        self._tools()
        messages = [
            {"role": message["role"], "content": list(self._blocks(message))} for message in self.body["messages"]
        ]
        if not self.body.get("tools"):
            messages = [self._told(message) for message in messages]
        messages = self._alternating(self._paired(self._without_halves(messages)))
        self.body["messages"] = messages
        self._fit_media(messages)
        self._breakpoints(messages)
        self._limits()

    def _done(self, what: str) -> None:
        self.repairs.append(what)

    def _tools(self) -> None:
        tools = list(self.body.get("tools", ()))
        kept: dict[str, Any] = {}
        for tool in tools:
            if names.TOOL_NAME.match(tool["name"]) and tool["input_schema"].get("type") == "object":
                kept.setdefault(tool["name"], tool)
        if len(kept) != len(tools):
            self._done("left out tools that cannot be named so")
        self.body = {key: value for key, value in self.body.items() if key != "tools"}
        if kept:
            self.body["tools"] = list(kept.values())

    def _blocks(self, message: Mapping[str, Any]) -> Iterator[Block]:
        allowed = rules.allowed_in(message["role"])
        for block in message["content"]:
            match block["type"]:
                case "text" if not block["text"].strip():
                    self._done("left out an empty text")
                case "text" if any(map(rules.names_a_file, block.get("citations") or ())):
                    self._done("left out the ids of cited files")
                    yield block | {"citations": [_without_file(citation) for citation in block["citations"]]}
                case "thinking" | "redacted_thinking" if message["role"] == "assistant":
                    if rules.is_signed(block):
                        yield {key: value for key, value in block.items() if key != "cache_control"}
                    else:
                        self._done("left out a thought without its signature")
                case "image" | "document" if (problem := rules.media_problem(block)) is not None:
                    self._done(f"left out {problem}")
                    yield _text(f"[left out here: {problem}]")
                case "tool_result" if isinstance(block.get("content"), list) and message["role"] == "user":
                    yield block | {"content": self._result_content(block["content"])}
                case kind if kind in allowed:
                    yield dict(block)
                case kind:
                    self._done(f"left out a {kind} in a message of the {message['role']}")

    def _without_halves(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Leave out what the service's own tools did by halves: an answer was cut off there."""
        halves = [block for _, block in rules.left_alone(messages)]
        self.repairs += [f"left out half of a {block['type']}" for block in halves]
        return [
            message | {"content": [one for one in message["content"] if not any(one is half for half in halves)]}
            for message in messages
        ]

    def _result_content(self, content: list[Block]) -> list[Block]:
        kept = []
        for part in content:
            if part["type"] == "text" and not part["text"].strip():
                continue
            problem = None if part["type"] in rules.IN_RESULT else f"a {part['type']} in a result"
            if part["type"] in ("image", "document"):
                problem = rules.media_problem(part)
            if problem is not None:
                self._done(f"left out {problem}")
                part = _text(f"[left out here: {problem}]")
            kept.append(part)
        if len(kept) != len(content):
            self._done("left out an empty text of a result")
        return kept or [_text("(no output)")]

    def _told(self, message: dict[str, Any]) -> dict[str, Any]:
        """Without tools nothing may be a call or a result."""
        blocks = [block for block in message["content"] if block["type"] != "tool_use"]
        if len(blocks) != len(message["content"]):
            self._done("left out calls, as no tools are offered")
        return message | {"content": [self._as_text(block) for block in blocks]}

    def _as_text(self, block: Block) -> Block:
        if block["type"] != "tool_result":
            return block
        self._done("told of a result in words")
        content = block.get("content") or ""
        texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        return _text("[A tool returned:]\n" + "\n".join(text for text in texts if text.strip()))

    def _paired(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Put one result behind each call, in order; give every call an id of its own."""
        results: defaultdict[str, deque[Block]] = defaultdict(deque)
        for message in messages:
            for block in rules.results_of(message):
                results[block["tool_use_id"]].append(dict(block))
        taken = {use["id"] for message in messages for use in rules.uses_of(message)}
        fresh = fresh_ids("toolu_mended_", taken)
        used: set[str] = set()
        paired: list[dict[str, Any]] = []
        for message in messages:
            if message["role"] == "user":
                paired.append(
                    message | {"content": [one for one in message["content"] if one["type"] != "tool_result"]}
                )
                continue
            due: list[Block] = []
            blocks = []
            for block in message["content"]:
                if block["type"] == "tool_use":
                    given = block["id"]
                    block = self._mended_use(block, used, fresh)
                    used.add(block["id"])
                    found = results[given].popleft() if results[given] else None
                    if found is None:
                        self._done(f"added the missing result of {block['id']}")
                        found = {"type": "tool_result", "content": [_text(NO_RESULT)], "is_error": True}
                    due.append(found | {"tool_use_id": block["id"]})
                blocks.append(block)
            paired.append(message | {"content": blocks})
            if due:
                paired.append({"role": "user", "content": due})
        orphans = sorted(id for id, left in results.items() if left)
        if orphans:
            self._done(f"left out results without a call: {', '.join(orphans)}")
        return paired

    def _mended_use(self, block: Block, used: set[str], fresh: Iterator[str]) -> Block:
        if not names.TOOL_USE_ID.match(block["id"]) or block["id"] in used:
            self._done(f"gave the call {block['id']!r} another id")
            block = block | {"id": next(fresh)}
        if not names.TOOL_NAME.match(block["name"]):
            self._done(f"renamed the tool {block['name']!r}")
            block = block | {"name": re.sub(r"[^A-Za-z0-9_-]", "_", block["name"])[:128] or "unknown"}
        if not isinstance(block["input"], Mapping):
            self._done(f"left out the input of {block['id']}")
            block = block | {"input": {}}
        return block

    def _alternating(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        joined: list[dict[str, Any]] = []
        for message in messages:
            if not message["content"]:
                continue
            if joined and joined[-1]["role"] == message["role"]:
                joined[-1] = message | {"content": [*joined[-1]["content"], *message["content"]]}
            else:
                joined.append(message)
        if not joined or joined[0]["role"] != "user":
            self._done("began with a user message")
            joined.insert(0, {"role": "user", "content": [_text(BEGINNING if joined else EMPTY)]})
        if joined[-1]["role"] != "user":
            self._done("ended with a user message")
            joined.append({"role": "user", "content": [_text(GO_ON)]})
        return joined

    def _fit_media(self, messages: list[dict[str, Any]]) -> None:
        """Leave out images from the oldest on until as many and as large ones are left as the server takes."""
        places = list(_media_places(messages))
        images = sum(blocks[index]["type"] == "image" for blocks, index in places)
        size = json_size(self.body)
        for blocks, index in places:
            if size <= names.LARGEST_BODY and images <= names.MOST_IMAGES:
                return
            block = blocks[index]
            if block["type"] == "image" or size > names.LARGEST_BODY:
                size -= json_size(block)
                images -= block["type"] == "image"
                blocks[index] = _text(f"[an older {block['type']} is left out here]")
                self._done(f"left out an older {block['type']}")
        if size > names.LARGEST_BODY:
            self._done(f"is still {size} bytes")

    def _breakpoints(self, messages: list[dict[str, Any]]) -> None:
        marked = [
            block for message in messages for block in message["content"] if block.get("cache_control") is not None
        ]
        system = sum("cache_control" in block for block in self.body.get("system", ()))
        surplus = len(marked) - (names.MOST_BREAKPOINTS - system)
        for block in marked[: max(0, surplus)]:
            del block["cache_control"]
            self._done("took a breakpoint of the cache away")

    def _limits(self) -> None:
        if self.body["max_tokens"] < 1:
            self._done("asked for one token at least")
            self.body["max_tokens"] = 1
        budget = self.body.get("thinking", {}).get("budget_tokens")
        is_off = budget is not None and not names.LEAST_BUDGET <= budget < self.body["max_tokens"]
        if is_off or rules.needs_leading_thought(self.body):
            self._done("asked for no thinking, as an answer with calls came without any")
            del self.body["thinking"]


def _media_places(messages: list[dict[str, Any]]) -> Iterator[tuple[list[Block], int]]:
    """Yield where images and documents stand, oldest first: a list of blocks and the place in it."""
    for message in messages:
        for index, block in enumerate(message["content"]):
            if block["type"] in ("image", "document"):
                yield message["content"], index
            elif block["type"] == "tool_result" and isinstance(block.get("content"), list):
                yield from (
                    (block["content"], place)
                    for place, part in enumerate(block["content"])
                    if part["type"] in ("image", "document")
                )
