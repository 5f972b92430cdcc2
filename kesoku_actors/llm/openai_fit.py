"""Cuts a history to what the model can read, so that a long session goes on (P1: sizes within limits). Pure.

What is left out, in this order, until the rest fits: whole turns from the oldest on, then the middle of long results of
the newest turn. The system message and what the newest person said are never touched; if they alone are too long, the
server says so.

Invariants: calls and results leave together. The cut moves in steps of a quarter of the room, so that from one request
to the next the beginning mostly stays the same bytes for the server's cache. Sizes are bytes of UTF-8, as no tokenizer
is at hand: `Reach` begins with a cautious ratio and learns from refusals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import define

from kesoku_actors.llm.openai_rules import BEGINNING, ChatMessage, Repaired, join

_FRAME: Final = 16
"""Bytes a message costs beside its texts."""
_HEAD: Final = 600
_TAIL: Final = 300
_LEFT_OUT: Final = "\n[... left out here, because the conversation is long ...]\n"
_LARGEST_RESERVE: Final = 1024
_AFTER_REFUSAL: Final = 0.7


def size(messages: Sequence[ChatMessage]) -> int:
    """Return the size of messages in bytes."""
    return sum(_size(message) for message in messages)


def fit(messages: Sequence[ChatMessage], most_bytes: int) -> Repaired:
    """Return the messages cut to `most_bytes`, or as near as can be; and what was left out, in words."""
    total = size(messages)
    if total <= most_bytes:
        return Repaired(messages=tuple(messages), repairs=())
    repairs: list[str] = []
    system = [message for message in messages[:1] if message["role"] == "system"]
    talk = list(messages[len(system) :])
    cut = _first_kept(talk, total - most_bytes, max(1, most_bytes // 4))
    if cut:
        repairs.append(f"left out the oldest {cut} messages to fit {most_bytes} bytes")
        talk = [join({"role": "user", "content": BEGINNING}, talk[cut]), *talk[cut + 1 :]]
    room = most_bytes - size(system)
    for index, message in enumerate(talk):
        if size(talk) <= room:
            break
        if message["role"] == "tool" and _size(message) > _HEAD + _TAIL + len(_LEFT_OUT) + _FRAME:
            repairs.append(f"shortened the result of {message['tool_call_id']}")
            content = message["content"]
            talk[index] = {**message, "content": content[:_HEAD] + _LEFT_OUT + content[-_TAIL:]}
    return Repaired(messages=(*system, *talk), repairs=tuple(repairs))


def _size(message: ChatMessage) -> int:
    texts = [message.get("content") or ""]
    texts += [call["function"]["name"] + call["function"]["arguments"] for call in message.get("tool_calls") or ()]
    return _FRAME + sum(len(text) if text.isascii() else len(text.encode("utf-8", "replace")) for text in texts)


def _first_kept(talk: Sequence[ChatMessage], excess: int, step: int) -> int:
    """Return the index of the first message kept: a person's, at most the last one."""
    wanted = -(-excess // step) * step
    starts = [index for index, message in enumerate(talk) if message["role"] == "user"]
    dropped, kept = 0, 0
    for start in starts:
        dropped += size(talk[kept:start])
        kept = start
        if dropped >= wanted:
            break
    return kept


@define
class Reach:
    """How much a model reads at once, as far as known; learns when the server refuses a request as too long."""

    context_tokens: int | None = None
    bytes_per_token: float = 3.0
    """Cautious for English (about 4) and most other languages; a refusal with numbers corrects it."""
    ceiling: float | None = None
    """Bytes that a server without numbers has not refused yet."""

    def most_bytes(self) -> int | None:
        """Return how long a prompt may be, room for the answer left; none when nothing is known."""
        limits = [] if self.ceiling is None else [self.ceiling]
        if self.context_tokens is not None:
            reserve = min(_LARGEST_RESERVE, self.context_tokens // 4)
            limits.append((self.context_tokens - reserve) * self.bytes_per_token)
        return int(min(limits)) if limits else None

    def refused(self, sent_bytes: int, error: Mapping[str, Any]) -> None:
        """Learn from a refusal; llama.cpp says `n_prompt_tokens` and `n_ctx`, others only that it was too long."""
        prompt, context = error.get("n_prompt_tokens"), error.get("n_ctx")
        if isinstance(prompt, int) and isinstance(context, int) and prompt > 0 and context > 0:
            self.context_tokens = context
            self.bytes_per_token = min(self.bytes_per_token, sent_bytes / prompt)
        else:
            self.ceiling = min(sent_bytes, self.ceiling or sent_bytes) * _AFTER_REFUSAL
