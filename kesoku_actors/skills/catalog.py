"""The skills there are: usable, hidden, broken. Pure.

Invariants: a name, whatever its case, belongs to one usable skill, the first one found on this platform; a second one
is broken and says who has the name. What cannot be used stands in the catalog with its reason: nothing vanishes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from kesoku_actors.errors import NotFound
from kesoku_actors.skills.front_matter import Header
from kesoku_actors.skills.platforms import runs_on
from kesoku_actors.values import frozen


class NoSuchSkill(NotFound):
    """No skill of this name can be used; the text says why, and which can."""


@frozen(kw_only=True)
class Skill:
    """A folder whose header can be read."""

    header: Header
    folder: Path
    """Absolute, without links."""
    file: Path
    """The Markdown file that holds the header and the instructions."""

    @property
    def name(self) -> str:
        return self.header.name


@frozen(kw_only=True)
class Left:
    """A folder that gives no skill here, and why."""

    folder: Path
    reason: str
    name: str | None = None
    """As far as its header could be read."""


@frozen(kw_only=True)
class Catalog:
    """What was found in all folders of skills."""

    skills: tuple[Skill, ...] = ()
    """In order of their names."""
    hidden: tuple[Left, ...] = ()
    """For other platforms."""
    broken: tuple[Left, ...] = ()

    def find(self, name: str) -> Skill:
        """Return the skill called `name`, in any case. Raises `NoSuchSkill`, naming what is close."""
        wanted = _key(name)
        for skill in self.skills:
            if _key(skill.name) == wanted:
                return skill
        for left in (*self.broken, *self.hidden):
            if wanted in {_key(known) for known in (left.name, left.folder.name) if known}:
                raise NoSuchSkill(f"the skill {left.name or left.folder.name!r} cannot be used: {left.reason}")
        names = {_key(skill.name): skill.name for skill in self.skills}
        near = [names[key] for key in difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)]
        meant = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        listed = ", ".join(names.values()) or "none"
        raise NoSuchSkill(f"there is no skill {name[:80]!r}{meant} (there are: {listed})")


def catalog_of(found: Iterable[Skill | Left], host: str) -> Catalog:
    """Return the catalog for the platform `host`; what is found first has its name."""
    usable: dict[str, Skill] = {}
    hidden: list[Left] = []
    broken: list[Left] = []
    for one in found:
        if isinstance(one, Left):
            broken.append(one)
        elif not runs_on(one.header.platforms, host):
            listed = ", ".join(one.header.platforms or ()) or "no platform"
            hidden.append(Left(folder=one.folder, name=one.name, reason=f"is for {listed}; this is {host}"))
        elif (first := usable.setdefault(_key(one.name), one)) is not one:
            broken.append(Left(folder=one.folder, name=one.name, reason=f"its name is taken by {first.folder}"))
    return Catalog(
        skills=tuple(sorted(usable.values(), key=lambda skill: _key(skill.name))),
        hidden=tuple(hidden),
        broken=tuple(broken),
    )


def _key(name: str) -> str:
    """What makes two names one: a model that writes `CSV_Profile` means `csv-profile`."""
    return " ".join(name.casefold().replace("-", " ").replace("_", " ").split())
