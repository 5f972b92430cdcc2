"""A function's docstring as a model reads it: what it does, and a sentence per parameter. Pure.

Google (`Args:`), NumPy (`Parameters` over dashes) and Sphinx (`:param name:`) styles are read, and what a class says of
its attributes. The description is what stands in no section; a style that is not recognised leaves the whole text as
the description.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Final

from kesoku_actors.values import frozen

_GOOGLE: Final = re.compile(r"^((Keyword )?(Args|Arguments)|(Other )?Parameters|Params|Attributes):\s*$")
_GOOGLE_END: Final = re.compile(r"^(Returns?|Yields?|Raises|Examples?|Notes?|See Also|Warnings?|Warns|Todo):\s*$")
_GOOGLE_ITEM: Final = re.compile(r"^(?P<names>\*{0,2}\w+)\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*:(?:\s+(?P<text>.*))?$")
_NUMPY: Final = ("Parameters", "Other Parameters", "Attributes")
_NUMPY_OTHER: Final = re.compile(
    r"Returns?|Yields?|Receives|Raises|Warns|Warnings?|See Also|Notes?|References|Examples?|Methods"
)
_NUMPY_ITEM: Final = re.compile(r"^(?P<names>\*{0,2}\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")
_SPHINX: Final = re.compile(r"^:(?P<field>\w+)(?:\s+[^:]*?)??(?:\s+(?P<name>\*{0,2}\w+))?\s*:\s*(?P<text>.*)$")
_SPHINX_PARAMETER: Final = frozenset({"param", "parameter", "arg", "argument", "key", "keyword", "ivar", "var", "attr"})


@frozen(kw_only=True)
class Documentation:
    """What a docstring says."""

    description: str
    parameters: Mapping[str, str]
    """Parameter name to its text, in one line."""


def parse(docstring: str | None) -> Documentation:
    """Return what `docstring` says of its function; empty when there is none."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    description: list[str] = []
    parameters: dict[str, str] = {}
    index = 0
    while index < len(lines):
        if (end := _google_section(lines, index, parameters)) or (end := _numpy_section(lines, index, parameters)):
            index = end
        elif lines[index].startswith(":") and _SPHINX.match(lines[index]):
            index = _sphinx_field(lines, index, parameters)
        elif _GOOGLE_END.match(lines[index]) or _is_numpy_heading(lines, index):
            index = _past_other_section(lines, index)
        else:
            description.append(lines[index])
            index += 1
    return Documentation(description="\n".join(description).strip(), parameters=parameters)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_numpy_heading(lines: list[str], index: int) -> bool:
    """Tell whether a section of that style begins here; another underlined line is a title of the author's own."""
    title = lines[index].strip()
    is_known = title in _NUMPY or _NUMPY_OTHER.fullmatch(title) is not None
    return is_known and index + 1 < len(lines) and re.fullmatch(r"-{3,}\s*", lines[index + 1]) is not None


def _google_section(lines: list[str], index: int, parameters: dict[str, str]) -> int:
    """Read a Google section that begins at `index`; the index behind it, or 0 when none begins there."""
    if not _GOOGLE.match(lines[index]):
        return 0
    end = index + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end])):
        end += 1
    parameters.update(_items(lines[index + 1 : end], _GOOGLE_ITEM))
    return end


def _numpy_section(lines: list[str], index: int, parameters: dict[str, str]) -> int:
    if lines[index].strip() not in _NUMPY or not _is_numpy_heading(lines, index):
        return 0
    end = index + 2
    while end < len(lines) and not _is_numpy_heading(lines, end):
        end += 1
    parameters.update(_items(lines[index + 2 : end], _NUMPY_ITEM))
    return end


def _sphinx_field(lines: list[str], index: int, parameters: dict[str, str]) -> int:
    match = _SPHINX.match(lines[index])
    end = index + 1
    while end < len(lines) and lines[end].strip() and _indent(lines[end]):
        end += 1
    if match and match["field"] in _SPHINX_PARAMETER and match["name"]:
        parameters[match["name"].lstrip("*")] = _joined([match["text"], *lines[index + 1 : end]])
    return end


def _past_other_section(lines: list[str], index: int) -> int:
    if _is_numpy_heading(lines, index):
        end = index + 2
        while end < len(lines) and not _is_numpy_heading(lines, end):
            end += 1
        return end
    end = index + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end])):
        end += 1
    return end


def _items(lines: list[str], item: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield the named items of a section: an item begins at the section's own indentation."""
    filled = [line for line in lines if line.strip()]
    level = min((_indent(line) for line in filled), default=0)
    names: list[str] = []
    text: list[str] = []
    for line in filled:
        match = item.match(line.strip()) if _indent(line) == level else None
        if match:
            yield from ((name, _joined(text)) for name in names)
            names = [name.strip().lstrip("*") for name in match["names"].split(",")]
            text = [match.groupdict().get("text") or ""]
        else:
            text.append(line)
    yield from ((name, _joined(text)) for name in names)


def _joined(lines: list[str]) -> str:
    return " ".join(part for line in lines if (part := line.strip()))
