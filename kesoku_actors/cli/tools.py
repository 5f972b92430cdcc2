"""`kesoku-actors tools`: what the model may call, and why something of a person's own is no tool."""

from __future__ import annotations

import json as json_format
from typing import TYPE_CHECKING

import click

from kesoku_actors.cli.configuration import config_option, settings_of
from kesoku_actors.cli.exit_codes import exit_codes_help

if TYPE_CHECKING:  # attrs and cattrs would cost every help text 0.1 s
    from kesoku_actors.tools import Tool


@click.group("tools", epilog=exit_codes_help(), no_args_is_help=False)
def command() -> None:
    """Look at the tools that a model is offered."""


@command.command("list", epilog=exit_codes_help())
@config_option
@click.option("--json", is_flag=True, help="Write one tool per line as JSON, with the schema of its parameters.")
def list_tools(config: str | None, json: bool) -> None:
    """List the tools and who registered them; load the modules of the configuration and name what was left out."""
    from kesoku_actors.app.tool_listing import listed_tools

    tools, problems = listed_tools(settings_of(config, {}))
    for problem in problems:
        click.echo(f"kesoku-actors: warning: tools: {problem}", err=True)
    for tool in tools:
        click.echo(json_format.dumps(_row(tool), ensure_ascii=False) if json else _told(tool))


def _row(tool: Tool) -> dict[str, object]:
    schema = tool.signature.schema
    return {
        "name": tool.name,
        "owner": tool.owner,
        "description": schema.description,
        "parameters": dict(schema.parameters),
    }


def _told(tool: Tool) -> str:
    schema = tool.signature.schema
    required = schema.parameters.get("required", ())
    parameters = ", ".join(name if name in required else f"{name}=..." for name in schema.parameters["properties"])
    first = schema.description.partition("\n")[0]
    return f"{tool.name}({parameters})  [{tool.owner}]\n    {first}"
