"""What a model reads of skills: the list, one skill, and the lines in its prompt. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kesoku_actors.skills.catalog import Catalog, Skill

LONGEST_DESCRIPTION: Final = 1_024
"""Characters of a description in the list."""
_LONGEST_LINE: Final = 200
_MOST_LINES: Final = 24
_MOST_NAMES: Final = 8
_RULE: Final = "=" * 72


def listing(catalog: Catalog) -> dict[str, Any]:
    """Return all skills as data: what can be used, and what is broken and why."""
    return {
        "skills": [
            {
                "name": skill.name,
                "description": _cut(skill.header.description, LONGEST_DESCRIPTION),
                "tags": list(skill.header.tags),
            }
            for skill in catalog.skills
        ],
        **({"broken": [_broken(left.folder, left.reason) for left in catalog.broken]} if catalog.broken else {}),
    }


def instructions(skill: Skill, text: str, files: Sequence[str], *, more_files: bool = False) -> str:
    """Return what `use_skill` answers: where the skill lies, what it says, and what else is there."""
    folder, example = str(skill.folder), files[0] if files else skill.file.name
    listed = [f"- {skill.folder / name}" for name in files] or ["- none"]
    return "\n".join(
        [
            _RULE,
            f"SKILL {skill.name}",
            f"SKILL DIRECTORY: {folder}",
            "USE ABSOLUTE PATHS IN EVERY COMMAND. Commands start in another folder: a path of this skill is found only",
            f"if it begins with its directory. Write {shlex.quote(f'{folder}/{example}')}, not {example}.",
            "Change nothing in the directory: write results to the folder in which commands start.",
            "SKILL_DIRECTORY in the text below means this directory.",
            _RULE,
            "",
            text,
            "",
            "Further files of this skill:",
            *listed,
            *(["- and more"] if more_files else []),
        ]
    )


def summary(catalog: Catalog, *, small: bool) -> str:
    """Return what the prompt says of skills; nothing when there are none. A small model gets the names alone."""
    if not catalog.skills:
        return ""
    if small:
        names = ", ".join(skill.name for skill in catalog.skills[:_MOST_NAMES])
        return f"Skills (read one with use_skill before you do what it is about): {names}."
    shown, more = catalog.skills[:_MOST_LINES], len(catalog.skills) - _MOST_LINES
    return "\n".join(
        [
            "Skills are folders with instructions and scripts for certain tasks. When a task fits one, call use_skill "
            "with its name first and follow what it says:",
            *(f"- {skill.name}: {_cut(skill.header.description, _LONGEST_LINE)}" for skill in shown),
            *([f"- and {more} more: call list_skills"] if more > 0 else []),
        ]
    )


def _broken(folder: Path, reason: str) -> dict[str, str]:
    return {"folder": str(folder), "reason": reason}


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"
