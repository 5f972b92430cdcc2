"""What no single key can tell: how the settings of a section fit together and to the disk.

Each check takes a decoded section and returns the problems, at the key that has to change. They look at the disk and
change nothing; what does not exist yet is made later, by who needs it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from attrs import evolve, fields

from kesoku_actors.app.sections import Discord, SkillSettings, ToolSettings, Workspace
from kesoku_actors.app.settings_decode import Problem
from kesoku_actors.app.settings_lines import KeyPath

Check = Callable[[Any], Iterator[Problem]]


def check_workspace(workspace: Workspace) -> Iterator[Problem]:
    """The database is a plain file, the folders are folders, and none lies where the model may write or read."""
    for name in ("db_path", "skills_dir", "sessions_dir"):
        path: Path = getattr(workspace, name)
        if problem := (_not_a_database(path) if name == "db_path" else _not_a_folder(path)):
            yield Problem(("workspace", name), problem)
    database, skills, sessions = (
        Path(os.path.realpath(path)) for path in (workspace.db_path, workspace.skills_dir, workspace.sessions_dir)
    )
    if skills.is_relative_to(sessions):
        yield _problem("skills_dir", f"must not lie inside sessions_dir ({workspace.sessions_dir}), the model's own")
    elif sessions.is_relative_to(skills):
        yield _problem("sessions_dir", f"must not lie inside skills_dir ({workspace.skills_dir})")
    for name, folder in (("skills_dir", skills), ("sessions_dir", sessions)):
        if database.is_relative_to(folder):
            yield _problem("db_path", f"must not lie inside {name} ({folder}), which tools may read")


def check_skill_roots(workspace: Workspace, skills: SkillSettings, home: Path) -> Iterator[Problem]:
    """Further folders of skills obey what `skills_dir` obeys, and none holds `home`, where the configuration lies."""
    configuration = Path(os.path.realpath(home))
    if configuration.is_relative_to(os.path.realpath(workspace.skills_dir)):
        yield _problem("skills_dir", f"must not hold the folder of the configuration ({home}), which no tool may read")
    for index, root in enumerate(skills.roots):
        if (problem := _wrong_root(root, workspace, home)) is not None:
            yield Problem(("skills", "roots", index), problem)


def check_tool_roots(workspace: Workspace, tools: ToolSettings, skills: SkillSettings, home: Path) -> Iterator[Problem]:
    """Nor do the folders of the file tools hold what no tool may read; and what may be written holds no skill (P04)."""
    for key in ("roots", "read_only_roots"):
        for index, root in enumerate(getattr(tools, key)):
            problem = _wrong_root(root, workspace, home)
            for folder in (workspace.skills_dir, *skills.roots) if key == "roots" else ():
                if problem is None and _is_beneath(folder, root):
                    problem = f"must not hold skills ({folder}), which a model may not write"
                elif problem is None and _is_beneath(root, folder):
                    problem = f"must not lie among skills ({folder}), which a model may not write"
            if problem is not None:
                yield Problem(("tools", key, index), problem)


def _wrong_root(root: Path, workspace: Workspace, home: Path) -> str | None:
    """Say what is wrong with a folder that tools may reach; `home` is where the configuration lies."""
    if (problem := _not_a_folder(root)) is not None:
        return problem
    if _is_beneath(root, workspace.sessions_dir):
        return f"must not lie inside sessions_dir ({workspace.sessions_dir}), the model's own"
    if _is_beneath(workspace.sessions_dir, root):
        return f"must not hold sessions_dir ({workspace.sessions_dir}), the model's own"
    if _is_beneath(workspace.db_path, root):
        return f"must not hold the database ({workspace.db_path}), which no tool may read"
    if _is_beneath(home, root):
        return f"must not hold the folder of the configuration ({home}), which no tool may read"
    return None


def _is_beneath(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def check_discord(discord: Discord) -> Iterator[Problem]:
    """Only a bot that is enabled must be complete (T4)."""
    if not discord.enabled:
        return
    if discord.bot_token is None:
        yield Problem(("discord", "enabled"), "needs bot_token, or the environment variable DISCORD_TOKEN")
    for key in ("user_allowlist", "admin_ids"):
        for index, user in enumerate(getattr(discord, key)):
            if not (user.isascii() and user.isdigit()):
                yield Problem(
                    ("discord", key, index),
                    f"{user[:40]!r} is a name, which anyone can take; use the user's numeric id (Copy User ID)",
                )


CHECKS: Final[Mapping[str, Check]] = {
    "workspace": check_workspace,
    "discord": check_discord,
}
"""By section."""


def resolve_paths(section: Any, folder: Path) -> Any:
    """Return `section` with every relative path taken from `folder`; `~` is the user's home."""
    values = {key.name: getattr(section, key.name) for key in fields(type(section))}
    return evolve(section, **{key: _resolved(value, folder) for key, value in values.items()})


def show_key(path: KeyPath) -> str:
    """Return `path` as a person writes it: `discord.channels[2].llm`, quoted where a key is not bare."""
    shown = ""
    for part in path:
        if isinstance(part, int):
            shown += f"[{part + 1}]"
            continue
        bare = part.replace("-", "").replace("_", "").isalnum() and part.isascii()
        shown += ("." if shown else "") + (part if bare else f'"{part[:60]}"')
    return shown


def _problem(key: str, text: str) -> Problem:
    return Problem(("workspace", key), text)


def _resolved(value: Any, folder: Path) -> Any:
    match value:
        case Path():
            return _resolve(value, folder)
        case (Path(), *_):
            return tuple(_resolve(path, folder) for path in value)
        case _:
            return value


def _resolve(path: Path, folder: Path) -> Path:
    with suppress(RuntimeError):  # no home folder: `~` is then a name like any other, and shown where it fails
        path = path.expanduser()
    return Path(os.path.abspath(folder / path))


def _kind(path: Path) -> int | None:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return None


def _not_a_database(path: Path) -> str | None:
    mode = _kind(path)
    if mode is None or stat.S_ISREG(mode):
        return _no_parent(path)
    if stat.S_ISDIR(mode):
        return f"{path} is a folder; name a file in it"
    if stat.S_ISLNK(mode):
        return f"{path} is a link; name the file itself, its journal lies beside it"
    return f"{path} is not a regular file"


def _not_a_folder(path: Path) -> str | None:
    try:
        return None if stat.S_ISDIR(os.stat(path).st_mode) else f"{path} is not a folder"
    except OSError:
        return _no_parent(path)


def _no_parent(path: Path) -> str | None:
    """What stands in the way where a folder has to be made."""
    for parent in path.parents:
        mode = _kind(parent)
        if mode is not None:
            return None if parent.is_dir() else f"{parent} is not a folder"
    return None
