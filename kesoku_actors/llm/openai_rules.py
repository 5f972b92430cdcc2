"""The rules of a chat completions history, as a check and a repair of a copy of it (P1). Pure.

1. A system message stands first or nowhere, and only once.
2. Every content is a text with something in it; an assistant message with calls may have none.
3. Every call has an id of its own, a name of letters, digits, `_` and `-` (64 at most), and arguments that are a JSON
   object; a list of calls is not empty.
4. After an assistant message with calls come their results, one each, in the order of the calls; no result stands
   anywhere else.
5. The talk begins with a user message; two user messages or two assistant messages never stand side by side; it ends
   with a user message or a result.
6. No text holds half a surrogate pair, which no UTF-8 can carry.

The strict servers among the compatible ones ask for all of this, the others do not mind. `repair` returns a history
that `broken` finds nothing in, returns what is right unchanged, and names everything it did.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kesoku_actors.llm.repaired import BEGINNING, GO_ON, fresh_ids
from kesoku_actors.llm.talk import EMPTY, NO_RESULT
from kesoku_actors.llm.wellformed import is_whole, well_formed
from kesoku_actors.values import frozen

ChatMessage = Mapping[str, Any]

CALL: Final = "call"
"""How our ids begin: with the digits behind it they have nine letters and digits, which the strictest server wants."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


@frozen(kw_only=True)
class Repaired:
    """A history that keeps the rules, and what had to be done for it; nothing for one that kept them."""

    messages: tuple[ChatMessage, ...]
    repairs: tuple[str, ...]


def is_name(name: str) -> bool:
    """Tell whether rule 3 allows this tool name."""
    return _NAME.match(name) is not None


def broken(messages: Sequence[ChatMessage], *, is_written: bool = False) -> list[str]:
    """Return what is wrong, a sentence for each place; empty for a history that keeps the rules.

    `is_written` says that UTF-8 was made of it, so that rule 6 holds.
    """
    wrong: list[str] = []
    seen: set[str] = set()
    awaited: deque[str] = deque()
    before, all_whole = "system", is_written or is_whole(list(messages))
    for index, message in enumerate(messages):
        role, content, calls = message["role"], message.get("content"), message.get("tool_calls") or []
        if role == "system" and index > 0:
            wrong.append(f"{index}: rule 1: a system message that is not the first")
        if not _has_text(content) and not (content is None and role == "assistant" and calls):
            wrong.append(f"{index}: rule 2: no content")
        if message.get("tool_calls") == []:
            wrong.append(f"{index}: rule 3: an empty list of calls")
        for call in calls:
            wrong += [f"{index}: rule 3: {problem}" for problem in _call_problems(call, seen)]
            seen.add(call["id"])
        if role == "tool":
            if not awaited or awaited.popleft() != message["tool_call_id"]:
                wrong.append(f"{index}: rule 4: a result without a call before it")
        elif awaited:
            wrong.append(f"{index}: rule 4: calls without results: {', '.join(awaited)}")
            awaited.clear()
        awaited.extend(call["id"] for call in calls)
        if before == "system" and role not in ("system", "user"):
            wrong.append(f"{index}: rule 5: begins with {role}")
        if role == before and role in ("user", "assistant"):
            wrong.append(f"{index}: rule 5: two {role} messages side by side")
        if not all_whole and not is_whole(message):
            wrong.append(f"{index}: rule 6: half a surrogate pair")
        before = role
    if awaited:
        wrong.append(f"rule 4: calls without results: {', '.join(awaited)}")
    if before not in ("user", "tool"):
        wrong.append(f"rule 5: ends with {before}")
    return wrong


def repair(messages: Sequence[ChatMessage]) -> Repaired:
    """Return a copy that keeps the rules (P1). The given messages are not changed."""
    if not broken(messages):
        return Repaired(messages=tuple(messages), repairs=())
    repairs: list[str] = []
    mended = [_mend_texts(message, repairs) for message in messages]
    mended = _pair(_one_system(mended, repairs), repairs)
    mended = _alternate([message for message in mended if _says_something(message, repairs)], repairs)
    return Repaired(messages=tuple(mended), repairs=tuple(repairs))


def _has_text(content: Any) -> bool:
    return isinstance(content, str) and bool(content.strip())


def _is_object(arguments: Any) -> bool:
    try:
        return isinstance(arguments, str) and isinstance(json.loads(arguments), dict)
    except ValueError:
        return False


def _call_problems(call: Mapping[str, Any], seen: set[str]) -> Iterator[str]:
    if not call["id"]:
        yield "a call without an id"
    if call["id"] in seen:
        yield f"the id {call['id']} twice"
    if not is_name(call["function"]["name"]):
        yield f"the tool name {call['function']['name']!r}"
    if not _is_object(call["function"]["arguments"]):
        yield f"arguments of {call['id']} that are not an object"


def _mend_texts(message: ChatMessage, repairs: list[str]) -> ChatMessage:
    if is_whole(message):
        return message
    repairs.append("replaced half a surrogate pair")
    clean: ChatMessage = well_formed(dict(message))
    return clean


def _one_system(messages: list[ChatMessage], repairs: list[str]) -> list[ChatMessage]:
    """Keep a system message that is first; show a later one as a user's, where it stands."""
    kept: list[ChatMessage] = []
    for index, message in enumerate(messages):
        if message["role"] == "system" and index > 0:
            repairs.append("turned a later system message into a user message")
            message = {**message, "role": "user"}
        kept.append(message)
    return kept


def _pair(messages: list[ChatMessage], repairs: list[str]) -> list[ChatMessage]:
    """Put one result behind each call, in order; give every call an id of its own."""
    results: defaultdict[str, deque[ChatMessage]] = defaultdict(deque)
    for message in messages:
        if message["role"] == "tool":
            results[message["tool_call_id"]].append(message)
    ids = fresh_ids(CALL, {call["id"] for message in messages for call in message.get("tool_calls") or []})
    used: set[str] = set()
    paired: list[ChatMessage] = []
    for message in messages:
        calls = message.get("tool_calls") or []
        if message["role"] == "tool":
            continue
        mended = [_mend_call(call, used, ids, repairs) for call in calls]
        if calls:
            message = {**message, "tool_calls": mended}
        elif "tool_calls" in message:
            repairs.append("left out an empty list of calls")
            message = {key: value for key, value in message.items() if key != "tool_calls"}
        paired.append(message)
        for call, new in zip(calls, mended, strict=True):
            queue = results[call["id"]]
            if not queue:
                repairs.append(f"added the missing result of {new['id']}")
            found = queue.popleft() if queue else {"role": "tool", "content": NO_RESULT}
            paired.append({**found, "tool_call_id": new["id"]})
    if any(results.values()):
        repairs.append(f"dropped results without a call: {', '.join(sorted(key for key in results if results[key]))}")
    if _order(messages) != _order(paired):
        repairs.append("put results behind their calls")
    return paired


def _order(messages: list[ChatMessage]) -> list[tuple[str, str | None]]:
    return [(message["role"], message.get("tool_call_id")) for message in messages]


def _mend_call(call: Mapping[str, Any], used: set[str], ids: Iterator[str], repairs: list[str]) -> Mapping[str, Any]:
    call_id, name, arguments = call["id"], call["function"]["name"], call["function"]["arguments"]
    for problem in _call_problems(call, used):
        repairs.append(f"mended {problem}")
    if not call_id or call_id in used:
        call_id = next(ids)
    used.add(call_id)
    if not is_name(name):
        name = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unknown"
    if not _is_object(arguments):
        arguments = "{}"
    return {**call, "id": call_id, "function": {**call["function"], "name": name, "arguments": arguments}}


def _says_something(message: ChatMessage, repairs: list[str]) -> bool:
    """Tell whether a message has content or calls; an empty one from the model is left out."""
    if message["role"] != "assistant" or message.get("tool_calls") or _has_text(message.get("content")):
        return True
    repairs.append("left out an empty assistant message")
    return False


def _alternate(messages: list[ChatMessage], repairs: list[str]) -> list[ChatMessage]:
    """Fill empty contents, join neighbours of one role, and see to the first and the last message."""
    joined: list[ChatMessage] = []
    for message in messages:
        content, role = message.get("content"), message["role"]
        if not _has_text(content):
            if role == "system":
                repairs.append("left out an empty system message")
                continue
            if content is not None or not message.get("tool_calls"):
                repairs.append(f"filled an empty {role} message")
                message = {**message, "content": None if message.get("tool_calls") else EMPTY}
        before = joined[-1] if joined else {"role": "system"}
        if before["role"] == "system" and role not in ("system", "user"):
            repairs.append("began with a user message")
            joined.append({"role": "user", "content": BEGINNING})
        if before["role"] == role and role in ("user", "assistant"):
            repairs.append(f"joined two {role} messages")
            joined[-1] = join(before, message)
        else:
            joined.append(message)
    if not joined or joined[-1]["role"] in ("system", "assistant"):
        repairs.append("ended with a user message")
        joined.append({"role": "user", "content": GO_ON})
    return joined


def join(first: ChatMessage, second: ChatMessage) -> ChatMessage:
    """Return one message that says what two neighbours of one role said."""
    content = "\n\n".join(text for text in (first.get("content"), second.get("content")) if text) or None
    calls = [*(first.get("tool_calls") or []), *(second.get("tool_calls") or [])]
    return {**first, **second, "content": content} | ({"tool_calls": calls} if calls else {})
