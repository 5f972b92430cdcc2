"""`[skills]`: further folders of skills, beside `workspace.skills_dir`. Pure."""

from __future__ import annotations

from pathlib import Path

from kesoku_actors.values import frozen


@frozen(kw_only=True)
class SkillSettings:
    """Of two skills with one name the first counts: `workspace.skills_dir`, then `roots` in order, then the shipped."""

    roots: tuple[Path, ...] = ()
    """Folders that hold a folder for each skill."""
    shipped: bool = True
    """Whether the skills that come along are offered."""
