"""The rules of Gemini's `generateContent`, as a check of a request's body (P1). Pure; `gemini_repair` mends it.

1. The contents begin and end with the user's, and roles alternate.
2. A content has parts, and a part is exactly one thing: a text that is not empty (but one that carries a signature may
   be), a call, a response, data or a file; in a model's content also what the service's own tools did. It has no field
   that the service does not know.
3. Calls stand in a model's content. The user content behind it begins with their responses: as many, in order, of the
   same names and ids; no response stands anywhere else.
4. The name of a function begins with a letter or `_` and holds letters, digits, `_`, `.`, `:` and `-`, 64 at most; its
   arguments and a response are objects.
5. A signature is base64. In the turn still being answered, the first call of a model's content has one, if the model
   wants signatures.
6. Requests with calls or responses declare functions; what is declared has different names, as rule 4 has them.
7. Data is of a type the model reads; the whole is 20 MiB at most.
8. No text holds half a surrogate pair.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import field

from kesoku_actors.llm import gemini_names as names
from kesoku_actors.llm.repaired import role_problems
from kesoku_actors.llm.wellformed import is_whole, json_size
from kesoku_actors.values import define

Part = Mapping[str, Any]
Content = Mapping[str, Any]

IN_USER: Final = frozenset({"text", "functionResponse", "inlineData", "fileData"})
IN_MODEL: Final = frozenset(
    {
        "text",
        "functionCall",
        "inlineData",
        "fileData",
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
    }
)
BESIDE: Final = frozenset(
    {
        "thought",
        "thoughtSignature",
        "partMetadata",
        "videoMetadata",
        "mediaResolution",
        "mediaProcessing",
        "audioTranscription",
        "audioMetadata",
        "speechMetadata",
        "documentMetadata",
        "spreadsheetMetadata",
    }
)
"""Fields of a part that say more of the one thing it is."""
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/_-]{4})*(?:[A-Za-z0-9+/_-]{2}(?:==)?|[A-Za-z0-9+/_-]{3}=?)?\Z")


def broken(body: Mapping[str, Any], *, model: str, size: int | None = None) -> list[str]:
    """Return what is wrong, a sentence for each place; empty for a request that keeps the rules.

    `size` is how many bytes it is, where it is written already; rule 8 holds then.
    """
    check = _Check(body=body, model=model, size=size)
    return [f"rule {number}: {problem}" for number, rule in _RULES for problem in rule(check)]


def allowed_in(role: str) -> frozenset[str]:
    """Return what parts there are in a content of this role."""
    return IN_MODEL if role == "model" else IN_USER


def calls_of(content: Content) -> list[Part]:
    """Return the parts of a content that are calls."""
    return [part for part in content["parts"] if "functionCall" in part]


def responses_of(content: Content) -> list[Part]:
    """Return the parts of a content that are responses."""
    return [part for part in content["parts"] if "functionResponse" in part]


def declarations_of(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the functions that a request declares."""
    return [one for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ()]


def what(part: Part) -> list[str]:
    """Return what things a part is; one, if it is right."""
    return [key for key in part if key in IN_USER or key in IN_MODEL]


def unknown_fields(part: Part) -> list[str]:
    """Return the fields of a part that the service does not know."""
    return [key for key in part if key not in BESIDE and key not in IN_USER and key not in IN_MODEL]


def is_signature(value: Any) -> bool:
    """Tell whether this can be sent as a signature."""
    return isinstance(value, str) and bool(value) and _BASE64.match(value) is not None


def says_something(part: Part) -> bool:
    """Tell whether a text is worth a part: it has something in it, or carries a signature."""
    return bool(part["text"]) or "thoughtSignature" in part


def unsigned(contents: Sequence[Content]) -> Iterator[tuple[int, Part]]:
    """Yield where the turn still being answered has a first call without a signature: the content's place, the call."""
    backwards = range(len(contents) - 1, -1, -1)
    said = (index for index in backwards if contents[index]["role"] == "user" and not responses_of(contents[index]))
    for index in range(next(said, 0), len(contents)):
        calls = calls_of(contents[index]) if contents[index]["role"] == "model" else []
        if calls and not calls[0].get("thoughtSignature"):
            yield index, calls[0]


@define(kw_only=True)
class _Check:
    """A body, and what several rules want to know of it."""

    body: Mapping[str, Any]
    model: str
    size: int | None
    contents: Sequence[Content] = field(init=False)
    placed: Sequence[tuple[int, Content, Part]] = field(init=False)
    """All parts, each with its content and where that stands."""

    def __attrs_post_init__(self) -> None:
        self.contents = self.body["contents"]
        self.placed = [
            (index, content, part) for index, content in enumerate(self.contents) for part in content["parts"]
        ]


def _roles(check: _Check) -> Iterator[str]:
    return role_problems([one["role"] for one in check.contents])


def _parts(check: _Check) -> Iterator[str]:
    yield from (f"{index}: no parts" for index, content in enumerate(check.contents) if not content["parts"])
    for index, content, part in check.placed:
        things = what(part)
        if len(things) != 1 or things[0] not in allowed_in(content["role"]):
            yield f"{index}: a part that is {things} in a content of the {content['role']}"
        elif "text" in part and not says_something(part):
            yield f"{index}: an empty text"
        if unknown := unknown_fields(part):
            yield f"{index}: the fields {unknown}"


def _pairs(check: _Check) -> Iterator[str]:
    due: list[tuple[str, str | None]] = []
    for index, content in enumerate(check.contents):
        if content["role"] == "model":
            if due:
                yield f"{index}: calls without responses"
            due = [_named(part["functionCall"]) for part in calls_of(content)]
            continue
        found = [_named(part["functionResponse"]) for part in responses_of(content)]
        leading = all("functionResponse" in part for part in content["parts"][: len(due)])
        if found != due or not leading:
            yield f"{index}: the responses {found} where {due} are due"
        due = []
    if due:
        yield "calls without responses at the end"


def _named(fields: Mapping[str, Any]) -> tuple[str, str | None]:
    return fields["name"], fields.get("id")


def _functions(check: _Check) -> Iterator[str]:
    for index, _content, part in check.placed:
        for key, inner in (("functionCall", "args"), ("functionResponse", "response")):
            if key in part:
                if not names.FUNCTION_NAME.match(part[key]["name"]):
                    yield f"{index}: the name {part[key]['name']!r}"
                if not isinstance(part[key].get(inner, {}), Mapping):
                    yield f"{index}: {inner} that are no object"


def _signatures(check: _Check) -> Iterator[str]:
    for index, _content, part in check.placed:
        if "thoughtSignature" in part and not is_signature(part["thoughtSignature"]):
            yield f"{index}: a signature that is none"
    if names.wants_signatures(check.model):
        yield from (f"{index}: a call without a signature" for index, _ in unsigned(check.contents))


def _declared(check: _Check) -> Iterator[str]:
    if not declarations_of(check.body) and any(calls_of(one) or responses_of(one) for one in check.contents):
        yield "calls or responses, and no functions"
    seen: set[str] = set()
    for declared in declarations_of(check.body):
        if not names.FUNCTION_NAME.match(declared["name"]):
            yield f"the function name {declared['name']!r}"
        if declared["name"] in seen:
            yield f"the function {declared['name']} twice"
        seen.add(declared["name"])


def _data(check: _Check) -> Iterator[str]:
    for index, _content, part in check.placed:
        if "inlineData" in part and not names.takes_media(part["inlineData"]["mimeType"]):
            yield f"{index}: data of type {part['inlineData']['mimeType']}"
    if (size := json_size(check.body) if check.size is None else check.size) > names.LARGEST_BODY:
        yield f"{size} bytes"


def _wholeness(check: _Check) -> Iterator[str]:
    if check.size is None and not is_whole(check.body):
        yield "half a surrogate pair"


_RULES: Final[tuple[tuple[int, Callable[[_Check], Iterator[str]]], ...]] = (
    (1, _roles),
    (2, _parts),
    (3, _pairs),
    (4, _functions),
    (5, _signatures),
    (6, _declared),
    (7, _data),
    (8, _wholeness),
)
