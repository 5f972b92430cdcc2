"""Which path lies beneath which root (T3). Pure.

A path is relative to the session's folder, or absolute. It is resolved as a text: `..` takes away the name before it,
and a path that leaves every root is refused, wherever it would come back in. What links there are is looked at on the
way down (`descent`), where none is followed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePath

from attrs import field

from kesoku_actors.errors import PeerError
from kesoku_actors.values import frozen


class Refused(PeerError):
    """A path, a file or a change is refused; the text tells the model what to do instead."""


@frozen(kw_only=True)
class Root:
    """A folder beneath which tools work."""

    path: Path = field(converter=Path)
    """Absolute."""
    is_writable: bool = True


@frozen(kw_only=True)
class Place:
    """A path beneath a root."""

    root: Root
    parts: tuple[str, ...]
    """From the root down; none: the root itself."""
    shown: str
    """As the model wrote it."""

    @property
    def relative(self) -> str:
        """The path from its root, with slashes."""
        return "/".join(self.parts)


def place_of(path: str, workspace: Root, roots: Sequence[Root] = ()) -> Place:
    """Return the place that `path` names. Raises `Refused`."""
    shown = path if len(path) <= 200 else f"{path[:200]}..."
    try:
        is_bad = "\0" in path or not path.strip() or not os.fsencode(path)
    except UnicodeEncodeError:
        is_bad = True
    if is_bad:
        raise Refused(f"{shown!r} is no path")
    if path.startswith("~"):
        raise Refused(f"{shown}: '~' is not known here; a path is absolute, or relative to the session's folder")
    absolute = PurePath(os.path.normpath(os.path.join(workspace.path, path)))
    beneath = [root for root in (workspace, *roots) if absolute.is_relative_to(root.path)]
    if not beneath:
        known = ", ".join(["the session's folder", *(str(root.path) for root in roots)])
        raise Refused(f"{shown} lies outside of what file tools may touch: {known}")
    innermost = max(beneath, key=lambda root: len(root.path.parts))
    return Place(root=innermost, parts=absolute.relative_to(innermost.path).parts, shown=shown)
