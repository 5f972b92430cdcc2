"""The chunks of a streamed chat completion as pieces and one reply. Pure.

Servers differ; what this reader takes: `content: null`, contents in parts, thoughts as `reasoning_content` or
`reasoning`, calls in deltas by index, calls without index or id, calls sent whole or twice, arguments as an object,
usage in a chunk without choices, a whole `message` instead of deltas, an `error` object in the stream.

Invariants (P3): `reply` returns only what ended with a finish reason or `[DONE]`; anything else is a `ProviderError`.
A call whose arguments are not a whole JSON object comes back with `invalid` set and never runs. Calls equal in id,
name and arguments are one call (M4).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from attrs import field

from kesoku_actors.llm.classify import Source, error_of, from_error_object, provider_error, without_key
from kesoku_actors.llm.port import CallRequest, Finish, Piece, Reply
from kesoku_actors.llm.wellformed import TextJoiner, read_object, well_formed, whole_text
from kesoku_actors.protocol import DeltaKind, Usage
from kesoku_actors.values import define

DONE: Final = "[DONE]"
LONGEST: Final = 1 << 24
"""Characters of one completion, framing included: no answer is longer, and a server cannot fill the memory."""

_MOST_TOKENS: Final = 10**9
"""No inference takes more: a larger count is a mistake, and not counted."""
_LONGEST_REASON: Final = 100
"""Characters of a finish reason."""

_FINISH: Final[Mapping[str, Finish]] = {
    "stop": Finish.STOP,
    "eos": Finish.STOP,
    "tool_calls": Finish.CALLS,
    "function_call": Finish.CALLS,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "content_filter": Finish.REFUSED,
}

_THOUGHT_KEYS: Final = ("reasoning_content", "reasoning")
_CALL_KEYS: Final = frozenset({"index", "id", "type", "function"})


@define
class _Call:
    """A call being put together."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(factory=list)
    """Of its arguments."""
    beside: dict[str, Any] = field(factory=dict)
    """What the server sent beside the known fields; goes back unchanged (M4)."""

    @property
    def arguments(self) -> str:
        """Its arguments, as far as they came."""
        return "".join(self.pieces)


class ChatStream:
    """Collects one streamed completion: `feed` every event, then ask for the `reply`."""

    def __init__(self, source: Source, *, model: str, context_tokens: int | None = None) -> None:
        self._source = source
        self._model = model
        self._context_tokens = context_tokens
        self._text = TextJoiner()
        self._thoughts: dict[str, TextJoiner] = {}
        self._details: list[Any] = []
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._finish_reason = ""
        self.usage = Usage()
        """What the server has counted so far."""
        self._total_tokens = 0
        self._size = 0
        self._is_refusal = False
        self.is_done = False
        """Whether the end marker came; nothing after it counts."""

    @property
    def has_finished(self) -> bool:
        """Whether a finish reason came: there is an answer, only its usage and the end marker may follow."""
        return bool(self._finish_reason)

    def feed(self, data: str) -> tuple[Piece, ...]:
        """Take the data of one event. Raises `ProviderError` for an error sent by the server and for garbage."""
        if self.is_done:
            return ()
        if data.strip() == DONE:
            self.is_done = True
            return ()
        self._size += len(data)
        if self._size > LONGEST:
            raise provider_error(self._source, "garbage", f"an answer longer than {LONGEST} characters")
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            raise provider_error(self._source, "garbage", f"not JSON in the stream: {self._quoted(data)}") from None
        if not isinstance(chunk, dict):
            raise provider_error(self._source, "garbage", f"not an object in the stream: {self._quoted(data)}")
        if chunk.get("error"):
            raise from_error_object(self._source, error_of(self._told(data)) or chunk["error"])
        if isinstance(usage := chunk.get("usage"), dict):
            self._take_usage(usage)
        return self._take_choices(chunk.get("choices"))

    def _told(self, data: str) -> bytes:
        """Return the data of an event as an error may repeat it (T6)."""
        return without_key(data.encode("utf-8", "replace"), self._source.secret)

    def _quoted(self, data: str) -> str:
        return repr(self._told(data).decode()[:80])

    def reply(self) -> Reply:
        """Return the completion. Raises `ProviderError` (retry) when the stream broke before its end (P3)."""
        if not self.is_done and not self._finish_reason:
            raise provider_error(self._source, "cut", "the stream ended without its end marker")
        if self._finish_reason == "error":
            raise provider_error(self._source, "server", "the server gave up in the middle of the answer")
        finish = _FINISH.get(self._finish_reason, Finish.OTHER if self._finish_reason else Finish.STOP)
        if self._context_tokens is not None and self._total_tokens >= self._context_tokens:
            finish = Finish.LENGTH  # some servers just stop at the end of the context and call it an end
        if self._is_refusal:
            finish = Finish.REFUSED
        kept = _distinct(self._calls)
        calls = tuple(self._finished(call, finish) for call in kept)
        if calls and finish in (Finish.STOP, Finish.OTHER):
            finish = Finish.CALLS
        return Reply(
            provider=self._source.provider,
            model=self._model,
            text=self._text.text(),
            thought=next(iter(self._thoughts.values()), TextJoiner()).text(),
            calls=calls,
            native=self._native(kept),
            finish=finish,
            finish_reason=self._finish_reason,
            usage=self.usage,
        )

    def _take_choices(self, choices: Any) -> tuple[Piece, ...]:
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return ()
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            self._finish_reason = whole_text(reason[:_LONGEST_REASON])
        delta = choice.get("delta") or choice.get("message")
        return tuple(self._take_delta(delta)) if isinstance(delta, dict) else ()

    def _take_delta(self, delta: Mapping[str, Any]) -> Iterator[Piece]:
        for key in _THOUGHT_KEYS:
            if isinstance(thought := delta.get(key), str) and thought:
                shown = self._thoughts.setdefault(key, TextJoiner()).add(thought)
                if next(iter(self._thoughts)) == key:  # a server that uses both says the same in both
                    yield Piece(kind=DeltaKind.THOUGHT, text=shown)
        if isinstance(details := delta.get("reasoning_details"), list):
            self._details += details
        for text in _texts(delta.get("content")):
            yield Piece(kind=DeltaKind.TEXT, text=self._text.add(text))
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._is_refusal = True
            yield Piece(kind=DeltaKind.TEXT, text=self._text.add(refusal))
        calls = delta.get("tool_calls")
        for part in calls if isinstance(calls, list) else ():
            if isinstance(part, dict):
                self._take_call(part)

    def _take_call(self, part: Mapping[str, Any]) -> None:
        function = part.get("function")
        function = function if isinstance(function, dict) else {}
        call_id, name = _word(part.get("id")), _word(function.get("name"))
        arguments = function.get("arguments")
        if arguments is not None and not isinstance(arguments, str):
            arguments = json.dumps(arguments)
        index = part.get("index")
        call = self._place_of(index if isinstance(index, int) else None, call_id, name)
        call.id = call.id or call_id
        call.name = call.name or name
        call.pieces.append(arguments or "")
        call.beside |= {key: value for key, value in part.items() if key not in _CALL_KEYS}

    def _place_of(self, index: int | None, call_id: str, name: str) -> _Call:
        """Return the call this delta goes on with, or a new one.

        By index where there is one, by id where there is none, else the last. A delta that names a tool is a new call
        when the one in its place has another id or is complete already: some servers give every call the index 0, and
        some send a block twice.
        """
        if index is not None:
            call = self._by_index.get(index)
        elif call_id:
            call = next((known for known in reversed(self._calls) if known.id == call_id), None)
        else:
            call = self._calls[-1] if self._calls and not name else None
        has_other_id = call is not None and bool(call_id) and bool(call.id) and call.id != call_id
        is_whole = call is not None and bool(name) and read_object(call.arguments) is not None
        if call is None or has_other_id or is_whole:
            call = _Call()
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _finished(self, call: _Call, finish: Finish) -> CallRequest:
        arguments = read_object(call.arguments or "{}")
        invalid = None
        if not call.name:
            invalid = "the call names no tool"
        elif finish is Finish.LENGTH and call is self._calls[-1] and read_object(call.arguments) is None:
            invalid = "the output limit cut this call off before its arguments were complete; it was not run"
        elif arguments is None:
            invalid = f"the arguments are not a JSON object: {whole_text(call.arguments[:200])}"
        return CallRequest(name=call.name or "unknown", arguments=arguments or {}, id=call.id, invalid=invalid)

    def _take_usage(self, usage: Mapping[str, Any]) -> None:
        self._total_tokens = _count(usage, "total_tokens") or 0
        self.usage = Usage(
            input=_count(usage, "prompt_tokens"),
            cached=_count(usage.get("prompt_tokens_details"), "cached_tokens"),
            output=_count(usage, "completion_tokens"),
            thinking=_count(usage.get("completion_tokens_details"), "reasoning_tokens"),
        )

    def _native(self, calls: list[_Call]) -> dict[str, Any] | None:
        """Return the assistant message as the server would have it back; none when it cannot be kept as JSON."""
        message: dict[str, Any] = {"role": "assistant", "content": self._text.text() or None}
        message |= {key: thought.text() for key, thought in self._thoughts.items()}
        if self._details:
            message["reasoning_details"] = self._details
        if calls:
            message["tool_calls"] = [
                {
                    **call.beside,
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in calls
            ]
        try:
            return cast("dict[str, Any]", well_formed(message))
        except ValueError:
            return None


def _word(value: Any) -> str:
    return whole_text(value) if isinstance(value, str) else ""


def _count(fields: Any, key: str) -> int | None:
    value = fields.get(key) if isinstance(fields, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else None


def _texts(content: Any) -> Iterator[str]:
    """Yield the texts of a content, which is a string or a list of parts."""
    parts = content if isinstance(content, list) else [content]
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str) and text:
            yield text


def _distinct(calls: list[_Call]) -> list[_Call]:
    """Drop a block sent twice: equal in id, name and arguments. Without an id nothing says that two are one."""
    kept: list[_Call] = []
    for call in calls:
        is_known = any((call.id, call.name, call.arguments) == (one.id, one.name, one.arguments) for one in kept)
        if not call.id or not is_known:
            kept.append(call)
    return kept
