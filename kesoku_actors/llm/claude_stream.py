"""The events of a streamed message of Claude's as pieces and one reply. Pure.

Invariants (P3, M4): `reply` returns only what ended with a stop reason, behind which no content comes; anything else is
a `ProviderError`. Every block is kept in order and with all its fields, thoughts with the signature they came with.
A call whose input is not a whole JSON object comes back with `invalid` set and never runs, nor does one that a limit
cut off before its input began. Of an answer that was refused no call is kept. A block sent twice, equal in id, name and
input, is one call.

A message that only pauses (`pause_turn`) is gone on with: `proceed` begins the next message behind what is there. What
each of them used counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import field

from kesoku_actors.llm.classify import Source, from_error_object, provider_error
from kesoku_actors.llm.port import CallRequest, Finish, Piece, Reply
from kesoku_actors.llm.wellformed import TextJoiner, read_object, well_formed, whole_text
from kesoku_actors.protocol import DeltaKind, Usage
from kesoku_actors.values import define

LONGEST: Final = 1 << 24
"""Characters of one message: no answer is longer, and a server cannot fill the memory."""
PAUSED: Final = "pause_turn"
_MOST_TOKENS: Final = 10**9
_LONGEST_REASON: Final = 100

_FULL: Final = "model_context_window_exceeded"
_FINISH: Final[Mapping[str, Finish]] = {
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "tool_use": Finish.CALLS,
    "max_tokens": Finish.LENGTH,
    _FULL: Finish.LENGTH,
    "refusal": Finish.REFUSED,
}
_TEXT_OF_DELTA: Final[Mapping[str, tuple[str, str]]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
    "compaction_delta": ("content", "content"),
}
"""By type of delta: the field it brings, and the field of its block that it goes on with."""
_SHOWN: Final[Mapping[str, DeltaKind]] = {"text": DeltaKind.TEXT, "thinking": DeltaKind.THOUGHT}


@define
class _Block:
    """A block being put together: its fields as it began, and the texts that grow."""

    fields: dict[str, Any]
    growing: dict[str, TextJoiner] = field(factory=dict)
    citations: list[Any] = field(factory=list)

    @property
    def type(self) -> str:
        return str(self.fields.get("type"))

    def grow(self, name: str, piece: str) -> str:
        """Add to a text of it; return what may be shown now."""
        return self.growing.setdefault(name, TextJoiner()).add(piece)

    def text(self, name: str) -> str:
        """Return a text of it as far as it came."""
        begun = self.fields.get(name)
        grown = self.growing[name].text() if name in self.growing else ""
        return (begun if isinstance(begun, str) else "") + grown

    @property
    def input(self) -> dict[str, Any] | None:
        """What a call is given; none when it is no whole object."""
        written = self.growing["input"].text() if "input" in self.growing else ""
        if written.strip():
            return read_object(written)
        begun = self.fields.get("input")
        return begun if isinstance(begun, dict) else {} if begun is None else None

    def finished(self) -> dict[str, Any]:
        """Return it as the server would have it back."""
        block = dict(self.fields)
        block |= {name: self.text(name) for name in self.growing if name != "input"}
        if self.citations:
            block["citations"] = [*(block.get("citations") or ()), *self.citations]
        if self.type == "tool_use" or "input" in self.growing:
            block["input"] = self.input or {}
        return block


class ClaudeStream:
    """Collects one streamed message: `feed` every event, then ask for the `reply`."""

    def __init__(self, source: Source, *, model: str) -> None:
        self._source = source
        self._model = model
        self._done: list[_Block] = []
        self._blocks: dict[int, _Block] = {}
        self._stop_reason = ""
        self._explanation = ""
        self._usages: list[dict[str, int]] = [{}]
        """Of the messages that paused, and of the one that comes."""
        self._size = 0
        self.is_done = False
        """Whether the event that ends a message came; nothing after it counts."""

    @property
    def is_paused(self) -> bool:
        """Whether the message waits to be gone on with; one that said nothing or calls us does not."""
        kept = self._kept()
        return self._stop_reason == PAUSED and bool(kept) and all(block.type != "tool_use" for block in kept)

    def proceed(self) -> list[dict[str, Any]]:
        """Begin the message that goes on with this one; return the blocks to send before it.

        Raises `ProviderError` for blocks that are no JSON.
        """
        native = self._native()
        if native is None:
            raise provider_error(self._source, "garbage", "an answer that no JSON can hold")
        said: list[dict[str, Any]] = native["content"]
        self._done, self._blocks = [*self._done, *self._blocks.values()], {}
        self._usages.append({})
        self._stop_reason, self.is_done = "", False
        return said

    def feed(self, event: Mapping[str, Any]) -> tuple[Piece, ...]:
        """Take an event as data. Raises `ProviderError` for an error sent by the server and for garbage."""
        if self.is_done:
            return ()
        match event.get("type"):
            case "message_start":
                self._take_usage(_fields(_fields(event, "message"), "usage"))
            case "content_block_start":
                return self._begin(event)
            case "content_block_delta":
                return tuple(self._grow(event))
            case "message_delta":
                self._take_usage(_fields(event, "usage"))
                self._take_end(_fields(event, "delta"))
            case "message_stop":
                self.is_done = True
            case "message":  # an answer that was not streamed
                return tuple(self._take_whole(event))
            case "error":
                raise from_error_object(self._source, event.get("error"))
            case _:  # a kind of event that is not known yet
                pass
        return ()

    def reply(self) -> Reply:
        """Return the message. Raises `ProviderError` (retry) when the stream broke before its end (P3)."""
        if not self._stop_reason:
            raise provider_error(self._source, "cut", "the stream ended without its end marker")
        blocks = [*self._done, *self._blocks.values()]
        finish = _FINISH.get(self._stop_reason, Finish.OTHER)
        uses = [block for block in self._kept() if block.type == "tool_use"] if finish is not Finish.REFUSED else []
        calls = tuple(self._call(use, is_cut=finish is Finish.LENGTH and use is blocks[-1]) for use in uses)
        if calls and finish in (Finish.STOP, Finish.OTHER):
            finish = Finish.CALLS
        text = "".join(block.text("text") for block in blocks if block.type == "text")
        if self._stop_reason == _FULL and not calls and not text.strip():
            raise provider_error(self._source, "context", f"no room was left for an answer ({_FULL})")
        if finish is Finish.REFUSED and not text.strip():
            text = self._explanation
        return Reply(
            provider=self._source.provider,
            model=self._model,
            text=text,
            thought="\n\n".join(thought for block in blocks if (thought := block.text("thinking"))),
            calls=calls,
            native=self._native(),
            finish=finish,
            finish_reason=self._stop_reason,
            usage=self.usage,
        )

    def _take_whole(self, message: Mapping[str, Any]) -> Iterator[Piece]:
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            yield from self._begin({"index": index, "content_block": block})
        self._take_usage(_fields(message, "usage"))
        self._take_end(message)
        self.is_done = True

    def _begin(self, event: Mapping[str, Any]) -> tuple[Piece, ...]:
        block = _Block(dict(_fields(event, "content_block")))
        if not isinstance(index := event.get("index"), int) or isinstance(index, bool):
            raise provider_error(self._source, "garbage", "a block without an index")
        if not isinstance(block.fields.get("type"), str):
            raise provider_error(self._source, "garbage", "a block without a type")
        self._grown(sum(len(value) for value in block.fields.values() if isinstance(value, str)))
        self._blocks[index] = block
        shown = _SHOWN.get(block.type)
        said = whole_text(block.text(block.type)) if shown is not None else ""
        return (Piece(kind=shown, text=said),) if shown is not None and said else ()

    def _grow(self, event: Mapping[str, Any]) -> Iterator[Piece]:
        index, delta = event.get("index"), _fields(event, "delta")
        block = self._blocks.get(index) if isinstance(index, int) else None
        if block is None:
            raise provider_error(self._source, "garbage", "a piece of a block that did not begin")
        if delta.get("type") == "citations_delta" and isinstance(citation := delta.get("citation"), Mapping):
            block.citations.append(dict(citation))
            return
        brings, name = _TEXT_OF_DELTA.get(str(delta.get("type")), ("", ""))
        piece = delta.get(brings)
        if not isinstance(piece, str):
            return  # a kind of delta that is not known yet
        self._grown(len(piece))
        shown = block.grow(name, piece)
        if name in _SHOWN and shown:
            yield Piece(kind=_SHOWN[name], text=shown)

    def _grown(self, size: int) -> None:
        self._size += 1 + size
        if self._size > LONGEST:
            raise provider_error(self._source, "garbage", f"an answer longer than {LONGEST} characters")

    def _take_end(self, delta: Mapping[str, Any]) -> None:
        if isinstance(reason := delta.get("stop_reason"), str) and reason:
            self._stop_reason = whole_text(reason[:_LONGEST_REASON])
        if isinstance(explanation := _fields(delta, "stop_details").get("explanation"), str):
            self._explanation = whole_text(explanation)

    def _take_usage(self, usage: Mapping[str, Any]) -> None:
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"):
            self._count(name, usage.get(name))
        self._count("thinking_tokens", _fields(usage, "output_tokens_details").get("thinking_tokens"))

    def _count(self, name: str, value: Any) -> None:
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS:
            self._usages[-1][name] = value

    def _counted(self, name: str) -> int | None:
        counts = [usage[name] for usage in self._usages if name in usage]
        return sum(counts) if counts else None

    @property
    def usage(self) -> Usage:
        """What the server has counted so far.

        Of its input the wire counts apart what was read from the cache and what was written to it.
        """
        cached = self._counted("cache_read_input_tokens")
        written = self._counted("cache_creation_input_tokens")
        parts = [self._counted("input_tokens"), cached, written]
        known = [part for part in parts if part is not None]
        return Usage(
            input=sum(known) if known else None,
            cached=cached,
            written=written,
            output=self._counted("output_tokens"),
            thinking=self._counted("thinking_tokens"),
        )

    def _kept(self) -> list[_Block]:
        """Return the blocks but for texts without anything in them and calls sent twice."""
        kept: list[_Block] = []
        seen: list[tuple[Any, ...]] = []
        for block in [*self._done, *self._blocks.values()]:
            if block.type == "text" and not block.text("text").strip():
                continue
            if block.type == "tool_use":
                call = (block.fields.get("id"), block.fields.get("name"), block.input)
                if call[0] and call in seen:  # without an id nothing says that two are one
                    continue
                seen.append(call)
            kept.append(block)
        return kept

    def _content(self) -> list[dict[str, Any]]:
        return [block.finished() for block in self._kept()]

    def _native(self) -> dict[str, Any] | None:
        try:
            native: dict[str, Any] = well_formed({"content": self._content()})
        except ValueError:
            return None
        return native

    def _call(self, block: _Block, *, is_cut: bool) -> CallRequest:
        name, call_id = _word(block.fields.get("name")), _word(block.fields.get("id"))
        invalid = None
        if not name:
            invalid = "the call names no tool"
        elif is_cut and not block.input:
            invalid = "the output limit cut this call off before its arguments were complete; it was not run"
        elif block.input is None:
            written = whole_text(block.growing["input"].text()[:200]) if "input" in block.growing else ""
            invalid = f"the arguments are not a JSON object: {written}"
        return CallRequest(name=name or "unknown", arguments=block.input or {}, id=call_id, invalid=invalid)


def _fields(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


def _word(value: Any) -> str:
    return whole_text(value) if isinstance(value, str) else ""
