"""`kesoku-actors skills`: what the agent has learned, and why something in its folders is no skill."""

from __future__ import annotations

import json as json_format
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from kesoku_actors.cli.configuration import config_option, settings_of
from kesoku_actors.cli.exit_codes import exit_codes_help

if TYPE_CHECKING:  # attrs and cattrs would cost every help text 0.1 s
    from kesoku_actors.skills import Catalog, Left


@click.group("skills", epilog=exit_codes_help(), no_args_is_help=False)
def command() -> None:
    """Look at the skills of the agent: folders with instructions and scripts."""


@command.command("list", epilog=exit_codes_help())
@config_option
@click.option("--json", is_flag=True, help="Write one skill per line as JSON.")
def list_skills(config: str | None, json: bool) -> None:
    """List the skills, then those for other platforms and the broken ones, each with the reason."""
    from kesoku_actors.app.skills import skill_shelf

    shelf = skill_shelf(settings_of(config, {}))
    rows = list(_rows(shelf.read()))
    if json:
        for row in rows:
            click.echo(json_format.dumps(row, ensure_ascii=False))
    elif rows:
        click.echo("\n\n".join(map(_told, rows)))
    else:
        click.echo(f"There are no skills; put a folder with a SKILL.md into {shelf.roots[0]}")


def _rows(catalog: Catalog) -> Iterator[dict[str, Any]]:
    for skill in catalog.skills:
        yield {
            "state": "usable",
            "name": skill.name,
            "description": skill.header.description,
            "tags": list(skill.header.tags),
            "folder": str(skill.folder),
        }
    yield from (_left("hidden", left) for left in catalog.hidden)
    yield from (_left("broken", left) for left in catalog.broken)


def _left(state: str, left: Left) -> dict[str, Any]:
    return {"state": state, "name": left.name, "folder": str(left.folder), "reason": left.reason}


def _told(row: dict[str, Any]) -> str:
    if row["state"] == "usable":
        tags = f"  [{', '.join(row['tags'])}]" if row["tags"] else ""
        lines = [f"{row['name']}{tags}", row["description"], row["folder"]]
    else:
        lines = [f"{row['state']}: {row['name'] or row['folder']}", row["reason"], row["folder"]]
    return "\n    ".join(map(_shown, lines))


def _shown(text: str) -> str:
    """The text without what a terminal would obey: a folder may be called anything."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
