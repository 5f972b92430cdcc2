"""A history for a model that cannot use tools: what tools did, told in plain words. Pure.

Many chat templates fail on tool messages, and a session may have had a model with tools before. What a call did is told
on the user's side, quoted, so that the model does not learn to write calls as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kesoku_actors.llm.openai_rules import ChatMessage, join


def without_tools(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages with system, user and assistant texts only; they must keep the rules of `openai_rules`."""
    told: list[ChatMessage] = []
    calls: dict[str, Mapping[str, Any]] = {}
    for message in messages:
        calls |= {call["id"]: call["function"] for call in message.get("tool_calls") or ()}
        if message["role"] == "tool":
            message = {"role": "user", "content": _told(calls[message["tool_call_id"]], message["content"])}
        elif message["role"] == "assistant":
            if message["content"] is None:
                continue
            message = {"role": "assistant", "content": message["content"]}
        if told and told[-1]["role"] == message["role"]:
            told[-1] = join(told[-1], message)
        else:
            told.append(message)
    return told


def _told(function: Mapping[str, Any], result: str) -> str:
    quoted = "\n".join(f"> {line}" for line in result.splitlines())
    return f"[The assistant used the tool {function['name']} with {function['arguments']}; it returned:]\n{quoted}"
