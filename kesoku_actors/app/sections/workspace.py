"""`[workspace]`: where everything lives. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from kesoku_actors.values import frozen


@frozen(kw_only=True)
class Workspace:
    """Paths are relative to the configuration file; once loaded they are absolute."""

    db_path: Path = Path("kesoku.db")
    skills_dir: Path = Path("skills")
    sessions_dir: Path = Path("sessions")
    durability: Literal["full", "normal"] = "full"
    """`normal` keeps its promises through the death of the process, not through a power loss (C1)."""
