"""The tools `list_skills` and `use_skill`. They wait for a disk: plain functions, which run in a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kesoku_actors.skills.answers import instructions, listing
from kesoku_actors.skills.catalog import NoSuchSkill
from kesoku_actors.skills.folders import list_files, read_text
from kesoku_actors.skills.front_matter import InvalidHeader
from kesoku_actors.skills.shelf import Shelf


def skill_tools(shelf: Shelf) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the two tools over `shelf`, to be registered."""

    def list_skills() -> dict[str, Any]:
        """List the skills: folders with instructions and scripts for certain tasks.

        Each has a name, a description and tags. A broken one is listed with the reason.
        """
        return listing(shelf.read())

    def use_skill(skill_name: str) -> str:
        """Read the instructions of a skill, its directory and the files in it.

        Args:
            skill_name: Its name, as list_skills gives it.
        """
        skill = shelf.read().find(skill_name)
        try:
            text = read_text(skill)
        except (OSError, InvalidHeader) as problem:  # it changed or went since it was looked at
            raise NoSuchSkill(f"the skill {skill.name!r} cannot be read any more: {problem}") from problem
        files, more = list_files(skill)
        return instructions(skill, text, files, more_files=more)

    return list_skills, use_skill
