"""The rules of Claude's Messages API, as a check of a request's body (P1). Pure; `claude_repair` mends it.

1. The messages begin and end with the user's, and roles alternate. (The server joins neighbours of one role, and takes
   an answer at the end as one to go on with; neither is ever meant here.)
2. A content is a list of blocks that is not empty; a text block has something in it but white space, and its citations
   name no file by an id.
3. A `tool_use` has an id of its own, of letters, digits, `_` and `-`, a name of the same (128 at most), an object as
   input; it stands in an assistant message.
4. The user message behind an assistant message begins with the results of its calls, one each, in order; no result
   stands anywhere else. A result's content is text, images, documents and search results.
5. Thoughts stand in assistant messages, with the signature they came with; redacted ones with their data. While
   thinking is asked for by a budget, an assistant message with calls that is still being answered begins with one.
6. Requests with calls or results define tools; their names differ and keep to rule 3.
7. At most four blocks are marked for the cache, no thought and no empty text among them.
8. A budget of thinking is 1,024 at least and less than `max_tokens`.
9. Images are JPEG, PNG, GIF or WebP, 5 MiB of base64 at most and 100 of them; documents are PDF or plain text; the
   whole is 32 MiB at most; 100,000 messages.
10. No text holds half a surrogate pair.
11. What the service's own tools did stands in assistant messages: each use has its result behind it, in order of time,
    unless it waits for calls that it made; no result stands without its use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import field

from kesoku_actors.llm import claude_names as names
from kesoku_actors.llm.repaired import role_problems
from kesoku_actors.llm.wellformed import is_whole, json_size
from kesoku_actors.values import define

Block = Mapping[str, Any]
Message = Mapping[str, Any]

SERVER_USE: Final = "server_tool_use"
SERVER_RESULTS: Final = frozenset(
    {
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
    }
)
"""Blocks in which the service tells what its own tools found."""
IN_USER: Final = frozenset({"text", "image", "document", "search_result", "tool_result", "container_upload"})
IN_ASSISTANT: Final = (
    frozenset({"text", "thinking", "redacted_thinking", "tool_use", "container_upload", SERVER_USE}) | SERVER_RESULTS
)
IN_RESULT: Final = frozenset({"text", "image", "document", "search_result", "tool_reference"})
THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
_DOCUMENTS: Final[Mapping[str, str]] = {"base64": names.DOCUMENT_TYPE, "text": "text/plain"}


def broken(body: Mapping[str, Any], *, size: int | None = None) -> list[str]:
    """Return what is wrong, a sentence for each place; empty for a request that keeps the rules.

    `size` is how many bytes it is, where it is written already; rule 10 holds then.
    """
    check = _Check(body=body, size=size)
    return [f"rule {number}: {problem}" for number, rule in _RULES for problem in rule(check)]


def needs_leading_thought(body: Mapping[str, Any]) -> bool:
    """Tell whether rule 5 asks for a thought that is not there: thinking then cannot be asked for by a budget."""
    if body.get("thinking", {}).get("type") != "enabled":
        return False
    loop = open_loop(body["messages"])
    return any(blocks_of(message)[0]["type"] not in THOUGHTS for message in loop if uses_of(message))


def open_loop(messages: Sequence[Message]) -> list[Message]:
    """Return the assistant messages of the turn still being answered: those behind the last text of a person."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message["role"] == "user" and all(block["type"] != "tool_result" for block in blocks_of(message)):
            return [message for message in messages[index:] if message["role"] == "assistant"]
    return [message for message in messages if message["role"] == "assistant"]


def blocks_of(message: Message) -> Sequence[Block]:
    """Return the blocks of a message."""
    content: Sequence[Block] = message["content"]
    return content


def uses_of(message: Message) -> list[Block]:
    """Return its calls."""
    return [block for block in blocks_of(message) if block["type"] == "tool_use"]


def results_of(message: Message) -> list[Block]:
    """Return its results."""
    return [block for block in blocks_of(message) if block["type"] == "tool_result"]


def is_signed(block: Block) -> bool:
    """Tell whether a thought can be sent back."""
    key = "signature" if block["type"] == "thinking" else "data"
    return isinstance(block.get(key), str) and bool(block[key])


def names_a_file(citation: Any) -> bool:
    """Tell whether a citation says more than it may when it is sent back."""
    return isinstance(citation, Mapping) and "file_id" in citation


def left_alone(messages: Sequence[Message]) -> Iterator[tuple[int, Block]]:
    """Yield what the service's own tools did by halves: a use without its result, or the other way round."""
    placed = [(index, block) for index, message in enumerate(messages) for block in blocks_of(message)]
    awaited: dict[str, tuple[int, Block]] = {}
    used: set[str] = set()
    waiting = {_fields(block.get("caller")).get("tool_id") for _, block in placed if block["type"] == "tool_use"}
    for index, block in placed:
        if block["type"] == SERVER_USE and block["id"] not in used:
            awaited[block["id"]] = index, block
            used.add(block["id"])
        elif block["type"] == SERVER_USE or (
            block["type"] in SERVER_RESULTS and awaited.pop(block["tool_use_id"], None) is None
        ):
            yield index, block
    yield from (place for id, place in awaited.items() if id not in waiting)


def _fields(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def allowed_in(role: str) -> frozenset[str]:
    """Return the types of blocks in a message of this role."""
    return IN_ASSISTANT if role == "assistant" else IN_USER


@define
class _Check:
    """A body, and what several rules want to know of it."""

    body: Mapping[str, Any]
    size: int | None
    messages: Sequence[Message] = field(init=False)
    placed: Sequence[tuple[int, Message, Block]] = field(init=False)
    """All blocks, each with its message and where that stands."""

    def __attrs_post_init__(self) -> None:
        self.messages = self.body["messages"]
        self.placed = [
            (index, message, block) for index, message in enumerate(self.messages) for block in blocks_of(message)
        ]


def _roles(check: _Check) -> Iterator[str]:
    return role_problems([one["role"] for one in check.messages])


def _contents(check: _Check) -> Iterator[str]:
    for index, message in enumerate(check.messages):
        if not blocks_of(message):
            yield f"{index}: no content"
    for index, message, block in check.placed:
        if block["type"] not in allowed_in(message["role"]):
            yield f"{index}: a {block['type']} in a message of the {message['role']}"
        if block["type"] == "text" and not block["text"].strip():
            yield f"{index}: a text without anything in it"
        if any(map(names_a_file, block.get("citations") or ())):
            yield f"{index}: a citation that names a file"


def _server_tools(check: _Check) -> Iterator[str]:
    yield from (f"{index}: half of a {block['type']}" for index, block in left_alone(check.messages))


def _uses(check: _Check) -> Iterator[str]:
    seen: set[str] = set()
    for index, _message, block in check.placed:
        if block["type"] != "tool_use":
            continue
        if not names.TOOL_USE_ID.match(block["id"]):
            yield f"{index}: the id {block['id']!r}"
        if block["id"] in seen:
            yield f"{index}: the id {block['id']} twice"
        if not names.TOOL_NAME.match(block["name"]):
            yield f"{index}: the name {block['name']!r}"
        if not isinstance(block["input"], Mapping):
            yield f"{index}: an input that is no object"
        seen.add(block["id"])


def _results(check: _Check) -> Iterator[str]:
    wanted: list[str] = []
    for index, message in enumerate(check.messages):
        if message["role"] == "user":
            found = [block["tool_use_id"] for block in results_of(message)]
            first = [block.get("tool_use_id") for block in blocks_of(message)[: len(wanted)]]
            if first != wanted or found != wanted:
                yield f"{index}: the results {found} where {wanted} are due"
            wanted = []
        elif wanted:
            yield f"{index}: calls without results: {wanted}"
        if message["role"] == "assistant":
            wanted = [block["id"] for block in uses_of(message)]
    for index, _message, block in check.placed:
        content = block.get("content") if block["type"] == "tool_result" else None
        if isinstance(content, list) and any(part["type"] not in IN_RESULT for part in content):
            yield f"{index}: a result that holds what no result may"
        if isinstance(content, list) and any(part["type"] == "text" and not part["text"].strip() for part in content):
            yield f"{index}: a text without anything in it in a result"


def _thoughts(check: _Check) -> Iterator[str]:
    for index, _message, block in check.placed:
        if block["type"] in THOUGHTS and not is_signed(block):
            yield f"{index}: a thought without its signature"
    if needs_leading_thought(check.body):
        yield "thinking is asked for, and an answer with calls begins without a thought"


def _tools(check: _Check) -> Iterator[str]:
    tools = check.body.get("tools", ())
    if not tools and any(block["type"] in ("tool_use", "tool_result") for _, _, block in check.placed):
        yield "calls or results, and no tools"
    seen: set[str] = set()
    for tool in tools:
        if not names.TOOL_NAME.match(tool["name"]):
            yield f"the tool name {tool['name']!r}"
        if tool["name"] in seen:
            yield f"the tool {tool['name']} twice"
        if tool["input_schema"].get("type") != "object":
            yield f"the schema of {tool['name']} is no object"
        seen.add(tool["name"])


def _breakpoints(check: _Check) -> Iterator[str]:
    marked = [*check.body.get("system", ()), *check.body.get("tools", ()), *(one for _, _, one in check.placed)]
    marked = [block for block in marked if block.get("cache_control")]
    if len(marked) > names.MOST_BREAKPOINTS:
        yield f"{len(marked)} blocks are marked for the cache"
    if any(block.get("type") in THOUGHTS for block in marked):
        yield "a thought is marked for the cache"


def _budget(check: _Check) -> Iterator[str]:
    limit, budget = check.body["max_tokens"], check.body.get("thinking", {}).get("budget_tokens")
    if limit < 1:
        yield f"max_tokens {limit}"
    if budget is not None and not names.LEAST_BUDGET <= budget < limit:
        yield f"a budget of {budget} with max_tokens {limit}"


def media_problem(block: Block) -> str | None:
    """Return what is wrong with an image or a document, or none."""
    source = block["source"]
    match block["type"], source["type"]:
        case "image", "base64":
            if source["media_type"] not in names.IMAGE_TYPES:
                return f"an image of type {source['media_type']}"
            if len(source["data"]) > names.LARGEST_IMAGE:
                return f"an image of {len(source['data'])} bytes"
        case "document", ("base64" | "text") as kind if source["media_type"] != _DOCUMENTS[kind]:
            return f"a document of type {source['media_type']}"
        case _:  # by its address, or by its id
            pass
    return None


def media_in(block: Block) -> Iterator[Block]:
    """Yield the images and documents that a block is or holds."""
    if block["type"] in ("image", "document"):
        yield block
    elif block["type"] == "tool_result" and isinstance(block.get("content"), list):
        yield from (part for part in block["content"] if part["type"] in ("image", "document"))


def _media(check: _Check) -> Iterator[str]:
    images = 0
    for index, _message, block in check.placed:
        for one in media_in(block):
            images += one["type"] == "image"
            if (problem := media_problem(one)) is not None:
                yield f"{index}: {problem}"
    if images > names.MOST_IMAGES:
        yield f"{images} images"
    if len(check.messages) > names.MOST_MESSAGES:
        yield f"{len(check.messages)} messages"
    if (size := json_size(check.body) if check.size is None else check.size) > names.LARGEST_BODY:
        yield f"{size} bytes"


def _wholeness(check: _Check) -> Iterator[str]:
    if check.size is None and not is_whole(check.body):
        yield "half a surrogate pair"


_RULES: Final[tuple[tuple[int, Callable[[_Check], Iterator[str]]], ...]] = (
    (1, _roles),
    (2, _contents),
    (3, _uses),
    (4, _results),
    (5, _thoughts),
    (6, _tools),
    (7, _breakpoints),
    (8, _budget),
    (9, _media),
    (10, _wholeness),
    (11, _server_tools),
)
