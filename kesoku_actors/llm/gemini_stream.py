"""The chunks of a streamed Gemini content as pieces and one reply. Pure.

Chunks are data in the API's own words. Invariants (P3, M4): `reply` returns only what ended with a finish reason;
anything else is a `ProviderError`. Every part of the first candidate is kept in order, also those of kinds that we do
not know; texts that come in pieces are joined, but a part with a signature stays by itself, as the signature belongs to
that part. A call that comes in pieces is one part, and never runs unless its last piece came.

What comes of each finish reason is in `FINISH`; of those in `MALFORMED` nothing is kept, so that the model is asked
once more and then the turn ends as failed, never as an empty success. Of an answer that was refused no call is kept.
A blocked prompt is told to the person.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from attrs import field

from kesoku_actors.llm.classify import Source, from_error_object, provider_error
from kesoku_actors.llm.gemini_arguments import PartialArguments
from kesoku_actors.llm.port import CallRequest, Finish, Piece, Reply
from kesoku_actors.llm.wellformed import TextJoiner, well_formed, whole_text
from kesoku_actors.protocol import DeltaKind, Usage
from kesoku_actors.values import define

LONGEST: Final = 1 << 24
"""Characters of one answer: none is longer, and a server cannot fill the memory."""
FINISH: Final[Mapping[str, Finish]] = {
    "STOP": Finish.STOP,
    "MAX_TOKENS": Finish.LENGTH,
    "CONTINUATION": Finish.LENGTH,
    "SAFETY": Finish.REFUSED,
    "RECITATION": Finish.REFUSED,
    "LANGUAGE": Finish.REFUSED,
    "BLOCKLIST": Finish.REFUSED,
    "PROHIBITED_CONTENT": Finish.REFUSED,
    "SPII": Finish.REFUSED,
    "IMAGE_SAFETY": Finish.REFUSED,
    "IMAGE_PROHIBITED_CONTENT": Finish.REFUSED,
    "IMAGE_RECITATION": Finish.REFUSED,
    "MODEL_ARMOR": Finish.REFUSED,
    "ESCALATION": Finish.REFUSED,
    "PUP_LIMITED_DISABLED": Finish.REFUSED,
}
"""Any other is `OTHER`."""
MALFORMED: Final = frozenset(
    {"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"}
)
UNSIGNED: Final = "MISSING_THOUGHT_SIGNATURE"
_MOST_TOKENS: Final = 10**9
_LONGEST_REASON: Final = 100


@define(eq=False)
class _PartialCall:
    """A call that comes in pieces: its part among the others, and what it is given."""

    part: dict[str, Any]
    arguments: PartialArguments = field(factory=PartialArguments)
    is_whole: bool = False

    @property
    def is_sound(self) -> bool:
        """Whether it may run."""
        return self.is_whole and self.arguments.is_sound


class GeminiStream:
    """Collects one streamed content: `feed` every chunk, then ask for the `reply`."""

    def __init__(self, source: Source, *, model: str) -> None:
        self._source = source
        self._model = model
        self._parts: list[dict[str, Any]] = []
        self._joiners: dict[bool, TextJoiner] = {False: TextJoiner(), True: TextJoiner()}
        """Of what is shown: text, and thoughts."""
        self._partial: list[_PartialCall] = []
        self._open: _PartialCall | None = None
        """The call whose next piece is awaited."""
        self._finish_reason = ""
        self._finish_message = ""
        self._usage: dict[str, int] = {}
        self._size = 0

    @property
    def has_finished(self) -> bool:
        """Whether a finish reason came."""
        return bool(self._finish_reason)

    def feed(self, chunk: Mapping[str, Any]) -> tuple[Piece, ...]:
        """Take a chunk. Raises `ProviderError` for a blocked prompt, an error inside the stream, and too much."""
        if chunk.get("error"):
            raise from_error_object(self._source, chunk["error"])
        self._take_usage(_fields(chunk, "usageMetadata"))
        feedback = _fields(chunk, "promptFeedback")
        if reason := feedback.get("blockReason"):
            said = feedback.get("blockReasonMessage") or ""
            raise provider_error(self._source, "filtered", f"the prompt was blocked ({reason}) {said}".rstrip())
        candidates = chunk.get("candidates")
        return tuple(
            piece
            for candidate in (candidates if isinstance(candidates, list) else ())
            if isinstance(candidate, Mapping) and not candidate.get("index")
            for piece in self._take(candidate)
        )

    def reply(self) -> Reply:
        """Return the content. Raises `ProviderError` (retry) when the stream broke before its end (P3)."""
        if not self._finish_reason:
            raise provider_error(self._source, "cut", "the stream ended without a finish reason")
        if self._finish_reason == UNSIGNED:
            raise provider_error(self._source, "request", f"it misses a signature {self._finish_message}".rstrip())
        finish = FINISH.get(self._finish_reason, Finish.OTHER)
        self._parts = [] if self._finish_reason in MALFORMED else list(_without_repeats(self._parts))
        cut = [partial.part for partial in self._partial if not partial.is_sound]
        calls = tuple(
            _call(part, is_cut=any(part is one for one in cut))
            for part in self._parts
            if "functionCall" in part and finish is not Finish.REFUSED
        )
        if calls and finish in (Finish.STOP, Finish.OTHER):
            finish = Finish.CALLS
        text = "".join(part["text"] for part in self._parts if "text" in part and not part.get("thought"))
        if finish is Finish.REFUSED and not text.strip():
            text = self._finish_message
        return Reply(
            provider=self._source.provider,
            model=self._model,
            text=text,
            thought="".join(part["text"] for part in self._parts if "text" in part and part.get("thought")),
            calls=calls,
            native=self._native(),
            finish=finish,
            finish_reason=self._finish_reason,
            usage=self.usage,
        )

    def _take(self, candidate: Mapping[str, Any]) -> Iterator[Piece]:
        if isinstance(reason := candidate.get("finishReason"), str) and reason != "FINISH_REASON_UNSPECIFIED":
            self._finish_reason = whole_text(reason[:_LONGEST_REASON])
        if isinstance(message := candidate.get("finishMessage"), str):
            self._finish_message = whole_text(message)
        parts = _fields(candidate, "content").get("parts")
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, Mapping):
                yield from self._take_part(dict(part))

    def _take_part(self, part: dict[str, Any]) -> Iterator[Piece]:
        if not isinstance(part.get("text", ""), str):
            del part["text"]
        if "functionCall" in part:
            self._grown(len(str(part)))
            self._take_call(part)
            return
        text = part.get("text")
        if text is None:
            if part:
                self._grown(len(str(part)))
                self._parts.append(part)
            return
        self._grown(len(text))
        is_thought = bool(part.get("thought"))
        last = self._parts[-1] if self._parts else {}
        if "text" in last and "thoughtSignature" not in last and _beside(last) == _beside(part):
            last["text"] += text
        elif text or "thoughtSignature" in part:
            self._parts.append(part)
        if shown := self._joiners[is_thought].add(text):
            yield Piece(kind=DeltaKind.THOUGHT if is_thought else DeltaKind.TEXT, text=shown)

    def _take_call(self, part: dict[str, Any]) -> None:
        call = _fields(part, "functionCall")
        pieces, goes_on = call.get("partialArgs"), bool(call.get("willContinue"))
        if self._open is None or call.get("name"):
            if not call:  # the end of a call that had ended
                return
            whole = {key: value for key, value in call.items() if key not in ("partialArgs", "willContinue")}
            self._parts.append({**part, "functionCall": whole})
            self._open = None
            if not pieces and not goes_on:
                return
            self._open = _PartialCall(self._parts[-1])
            self._partial.append(self._open)
        partial = self._open
        partial.arguments.value |= dict(_fields(call, "args"))
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, Mapping):
                partial.arguments.add(piece)
        partial.part["functionCall"]["args"] = partial.arguments.value
        partial.part |= {key: value for key, value in part.items() if key != "functionCall"}
        partial.is_whole = not goes_on
        self._open = partial if goes_on else None

    def _grown(self, size: int) -> None:
        self._size += 1 + size
        if self._size > LONGEST:
            raise provider_error(self._source, "garbage", f"an answer longer than {LONGEST} characters")

    def _take_usage(self, usage: Mapping[str, Any]) -> None:
        for name, value in usage.items():
            if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS:
                self._usage[name] = value

    @property
    def usage(self) -> Usage:
        """What the server has counted so far.

        The wire counts what was thought apart from what was said; both are output.
        """
        thinking = self._usage.get("thoughtsTokenCount")
        output = [part for part in (self._usage.get("candidatesTokenCount"), thinking) if part is not None]
        return Usage(
            input=self._usage.get("promptTokenCount"),
            cached=self._usage.get("cachedContentTokenCount"),
            output=sum(output) if output else None,
            thinking=thinking,
        )

    def _native(self) -> dict[str, Any] | None:
        try:
            native: dict[str, Any] = well_formed({"role": "model", "parts": self._parts})
        except ValueError:
            return None
        return native


def _without_repeats(parts: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the parts but for a call sent twice, equal in id, name and arguments (M4)."""
    seen: list[Mapping[str, Any]] = []
    for part in parts:
        call = _fields(part, "functionCall")
        if call.get("id"):  # without one nothing says that two are one
            if call in seen:
                continue
            seen.append(call)
        yield part


def _beside(part: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != "text"}


def _fields(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


def _call(part: Mapping[str, Any], *, is_cut: bool) -> CallRequest:
    call, signature = part["functionCall"], part.get("thoughtSignature")
    name, call_id, arguments = call.get("name"), call.get("id"), call.get("args") or {}
    invalid = "the call was cut off before its arguments were complete; it was not run" if is_cut else None
    if not isinstance(arguments, Mapping):
        invalid, arguments = "the arguments are not a JSON object", {}
    if not isinstance(name, str) or not name:
        invalid, name = "the call names no tool", "unknown"
    return CallRequest(
        name=whole_text(name),
        arguments=dict(arguments),
        id=whole_text(call_id) if isinstance(call_id, str) else "",
        signature=signature if isinstance(signature, str) else None,
        invalid=invalid,
    )
