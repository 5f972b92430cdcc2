"""Arguments of a call that come in pieces, each with the path of where it belongs. Pure.

A piece is `{"jsonPath": "$.people[0].name", "stringValue": "An", "willContinue": true}`; a text that will continue goes
on with the next piece of the same path. A path that leads nowhere makes the call one that never runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import field

from kesoku_actors.values import define

_PATH: Final = re.compile(r"""\$(?:\.[^.\[\]]+|\[\d+\]|\['[^']*'\]|\["[^"]*"\])+\Z""")
_STEP: Final = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]""")
_VALUES: Final = ("stringValue", "numberValue", "boolValue", "nullValue")


@define
class PartialArguments:
    """What came so far of the arguments of one call."""

    value: dict[str, Any] = field(factory=dict)
    is_sound: bool = True
    _growing: str | None = field(default=None, init=False)
    """The path of a text that goes on."""

    def add(self, piece: Mapping[str, Any]) -> None:
        """Take a piece."""
        path = piece.get("jsonPath")
        found = [piece[key] for key in _VALUES if key in piece]
        if not isinstance(path, str) or not _PATH.match(path) or len(found) > 1:
            self.is_sound = False
            return
        if found:
            value = None if "nullValue" in piece else _number(found[0])
            self.is_sound &= _put(self.value, _steps(path), value, goes_on=path == self._growing)
        self._growing = path if piece.get("willContinue") else None


def _steps(path: str) -> list[str | int]:
    return [
        int(match[2]) if match[2] is not None else match[1] or match[3] or match[4] or ""
        for match in _STEP.finditer(path)
    ]


def _number(value: Any) -> Any:
    """Return a whole number as one: the wire has every number as a float."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53 else value


def _put(root: dict[str, Any], steps: list[str | int], value: Any, *, goes_on: bool) -> bool:
    """Put a value where the steps lead, making what is missing on the way; tell whether they lead there."""
    here: Any = root
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        before = _at(here, step)
        if before is _NOWHERE:
            return False
        if following is not None:
            new = ([] if isinstance(following, int) else {}) if before is _MISSING else before
        elif goes_on and isinstance(before, str) and isinstance(value, str):
            new = before + value
        else:
            new = value
        if isinstance(here, list) and step == len(here):
            here.append(new)
        else:
            here[step] = new
        here = new
    return True


_MISSING: Final = object()
_NOWHERE: Final = object()


def _at(here: Any, step: str | int) -> Any:
    match here, step:
        case dict(), str():
            return here.get(step, _MISSING)
        case list(), int() if step < len(here):
            return here[step]
        case list(), int() if step == len(here):
            return _MISSING
        case _:
            return _NOWHERE
