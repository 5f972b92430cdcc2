"""The header of a skill: YAML between two lines `---` at the top of a Markdown file. Pure.

The text is a stranger's. It is taken as events, and never becomes anything but text, lists and tables: no object is
made, no alias is followed (a bomb of them ends at its first one), size, nesting and number of values are bounded. What
the keys mean, odd types included:

=====================  ==========================================================================================
`name` `description`   text, needed; what cannot be seen becomes single spaces; anything else is refused with advice
`metadata`             a table; missing or null: none
`metadata.tags`        a list of words or numbers, or one text with commas; missing or null: none
`metadata.platforms`   a list of words, or one text with commas, in any case; missing or null: everywhere; an empty list
                       or text: nowhere; a number, true, a table, or one of these in the list is refused
other keys             ignored
=====================  ==========================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from kesoku_actors.errors import UsageError
from kesoku_actors.skills.platforms import platform
from kesoku_actors.values import frozen

if TYPE_CHECKING:
    from ruamel.yaml.events import Event

LARGEST_HEADER: Final = 65_536
"""Bytes."""
LONGEST_NAME: Final = 64
"""Characters."""
_MOST_VALUES: Final = 1_000
_DEEPEST: Final = 32
_NULL: Final = re.compile(r"~|null|Null|NULL|")
_BOOLEAN: Final = re.compile(r"true|True|TRUE|false|False|FALSE")
_NUMBER: Final = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)


class InvalidHeader(UsageError):
    """The header cannot be used; the text says why and what to change."""


@frozen(kw_only=True)
class Header:
    """What the header of a skill says."""

    name: str
    description: str
    tags: tuple[str, ...] = ()
    platforms: tuple[str, ...] | None = None
    """Names as `platform` gives them; `None`: everywhere."""


@frozen
class _Bare:
    """A value without quotes that YAML does not take for text."""

    kind: str
    text: str


def split(content: bytes) -> tuple[bytes, bytes]:
    """Return header and body of the beginning of a file. Raises `InvalidHeader`.

    A byte order mark and CRLF line ends are accepted; `...` may end the header as well.
    """
    lines = content.removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True)
    if not lines or lines[0].rstrip() != b"---":
        raise InvalidHeader("has no front matter: its first line must be ---")
    size = 0
    for index, line in enumerate(lines[1:], start=1):
        if line.rstrip() in (b"---", b"..."):
            return b"".join(lines[1:index]), b"".join(lines[index + 1 :])
        size += len(line)
        if size > LARGEST_HEADER:
            raise InvalidHeader(
                f"its front matter is larger than {LARGEST_HEADER:,} bytes, or has no line --- at its end"
            )
    raise InvalidHeader("its front matter has no line --- at its end")


def parse(header: bytes) -> Header:
    """Return what the header says. Raises `InvalidHeader`."""
    values = _table(_values(header), "the front matter")
    metadata = _table(values.get("metadata"), "metadata")
    name = _text(values, "name")
    if len(name) > LONGEST_NAME:
        raise InvalidHeader(f"its name must have at most {LONGEST_NAME} characters")
    return Header(
        name=name,
        description=_text(values, "description"),
        tags=_words(metadata, "tags", numbers=True) or (),
        platforms=_platforms(metadata),
    )


def _text(values: Mapping[str, Any], key: str) -> str:
    match values.get(key):
        case None:
            raise InvalidHeader(f"has no {key}; add a line {key}: ...")
        case str(text) if words := _plain(text):
            return words
        case str():
            raise InvalidHeader(f"its {key} is empty")
        case other:
            raise InvalidHeader(f"its {key} must be text, not {_kind(other)}; put it in quotes")


def _table(value: Any, what: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidHeader(f"{what} must be a table of keys and values, not {_kind(value)}")
    return value


def _words(values: Mapping[str, Any], key: str, *, numbers: bool) -> tuple[str, ...] | None:
    """The words of a list or of one text with commas; `None` when the key is missing or null."""

    def fits(one: object) -> TypeGuard[str | _Bare]:
        return isinstance(one, str) or (numbers and isinstance(one, _Bare) and one.kind == "a number")

    found = values.get(key)
    if found is None:
        return None
    members: list[Any] = list(found.split(",")) if isinstance(found, str) else found
    if not isinstance(members, list):
        raise InvalidHeader(f"metadata.{key} must be a list of words, not {_kind(members)}")
    for one in members:
        if not fits(one):
            raise InvalidHeader(f"metadata.{key} must hold words, not {_kind(one)}")
    words = (_plain(one if isinstance(one, str) else one.text) for one in members)
    return tuple(word for word in words if word)


def _platforms(metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
    words = _words(metadata, "platforms", numbers=False)
    return None if words is None else tuple(platform(word) for word in words)


def _plain(text: str) -> str:
    """Words with single spaces between them, and nothing that a terminal would obey."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case str():
            return "text"
        case _Bare(kind=kind):
            return kind
        case dict():
            return "a table"
        case _:
            return "a list"


def _values(header: bytes) -> Any:
    """The YAML of the header as text, lists and tables. Raises `InvalidHeader`."""
    # The YAML library takes as long to import as all of this package to run: only who reads a header waits for it.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        text = header.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidHeader(f"its front matter is not UTF-8: byte 0x{header[error.start]:02x}") from None
    text = text.replace("\r\n", "\n")
    if max(accumulate((sign in "[{") - (sign in "]}") for sign in text), default=0) > _DEEPEST:
        # The scanner needs a second for each thousand brackets that it finds open.
        raise InvalidHeader(f"its front matter is nested more than {_DEEPEST} deep")
    try:
        return _document(YAML(typ="safe", pure=True).parse(text))
    except MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 2}: " if error.problem_mark is not None else ""
        raise InvalidHeader(f"its front matter is not YAML: {where}{error.problem or error.context}") from None
    except (YAMLError, ValueError, OverflowError) as error:  # the last two: an escape that is no character
        raise InvalidHeader(f"its front matter is not YAML: {' '.join(str(error).split())[:200]}") from None


def _document(events: Iterator[Event]) -> Any:
    """The value of the one document in `events`; nothing is read beyond what is refused."""
    from ruamel.yaml.events import (
        AliasEvent,
        DocumentStartEvent,
        MappingEndEvent,
        MappingStartEvent,
        ScalarEvent,
        SequenceEndEvent,
        SequenceStartEvent,
    )

    top: list[Any] = []
    open_lists = [top]
    for count, event in enumerate(events):
        if count > _MOST_VALUES or len(open_lists) > _DEEPEST:
            raise InvalidHeader(f"its front matter holds more than {_MOST_VALUES:,} values, or is too deep")
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None):
            raise InvalidHeader("its front matter uses an anchor (&) or alias (*); write the value out")
        if getattr(event, "tag", None):
            raise InvalidHeader("its front matter uses a tag (!); values are plain")
        match event:
            case DocumentStartEvent() if top:
                raise InvalidHeader("its front matter is more than one document")
            case ScalarEvent():
                open_lists[-1].append(_scalar(event))
            case MappingStartEvent() | SequenceStartEvent():
                open_lists.append([])
            case SequenceEndEvent():
                members = open_lists.pop()
                open_lists[-1].append(members)
            case MappingEndEvent():
                members = open_lists.pop()
                open_lists[-1].append(_pairs(members))
            case _:
                pass  # the begin and the end of the stream and its document
    return top[0] if top else None


def _scalar(event: Any) -> str | _Bare | None:
    if event.style not in (None, ""):
        return str(event.value)
    if _NULL.fullmatch(event.value):
        return None
    if _BOOLEAN.fullmatch(event.value):
        return _Bare("true or false", event.value)
    return _Bare("a number", event.value) if _NUMBER.fullmatch(event.value) else str(event.value)


def _pairs(members: list[Any]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in zip(members[::2], members[1::2], strict=True):
        name = key.text if isinstance(key, _Bare) else key
        if not isinstance(name, str):
            raise InvalidHeader(f"its front matter has {_kind(key)} as a key")
        if name in table:
            raise InvalidHeader(f"its front matter has the key {name[:40]!r} twice")
        table[name] = value
    return table
