"""`kesoku-actors history`: what was said: list, show, search, export, import."""

from __future__ import annotations

from pathlib import Path

import click

from kesoku_actors.cli.configuration import config_option, settings_of
from kesoku_actors.cli.exit_codes import exit_codes_help
from kesoku_actors.cli.run import tell

_MOST = 1_000_000
_limit = click.IntRange(1, _MOST)


@click.group("history", epilog=exit_codes_help(), no_args_is_help=False)
def command() -> None:
    """Look back at what was said: list, show, search, export, import.

    SESSION is a session's id, any part of it that no other has, or "last". Known secrets are shown as ***.
    """


@command.command("list", epilog=exit_codes_help())
@config_option
@click.option("--limit", type=_limit, default=50, show_default=True, help="How many to list.")
@click.option("--json", is_flag=True, help="Write one session per line as JSON.")
def list_history(config: str | None, limit: int, json: bool) -> int:
    """List the sessions, the one last active first: id, last activity, turns, tokens, where, title."""
    settings = settings_of(config, {})
    from kesoku_actors.app.chat_request import SessionsRequest
    from kesoku_actors.app.history.listing import list_sessions

    return list_sessions(SessionsRequest(settings=settings, json=json, limit=limit))


@command.command("show", epilog=exit_codes_help())
@click.argument("session")
@config_option
@click.option("--turn", type=_limit, metavar="N", help="Only the Nth turn, counted from 1.")
@click.option("--summaries", is_flag=True, help="Show the summaries of older turns too.")
@click.option("--json", is_flag=True, help="Write the lines of an export, without its header and end.")
def show_history(session: str, config: str | None, turn: int | None, summaries: bool, json: bool) -> int:
    """Show SESSION: what was said and thought, tool calls and their results, and what was interrupted.

    Coloured on a terminal, plain in a pipe; `history show last | less` reads it page by page.
    """
    settings = settings_of(config, {})
    from kesoku_actors.app.history.showing import ShowRequest
    from kesoku_actors.app.history.showing import show_history as show

    return show(ShowRequest(settings=settings, session=session, turn=turn, summaries=summaries, json=json))


@command.command("search", epilog=exit_codes_help())
@click.argument("query", nargs=-1, required=True)
@config_option
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="How many to show.")
@click.option("--json", is_flag=True, help="Write one message per line as JSON.")
def search_history(query: tuple[str, ...], config: str | None, limit: int, json: bool) -> int:
    """Search all sessions for QUERY, the best match first.

    Every word has to occur; "a phrase" in double quotes as it stands; word* with any ending. Case and accents do not
    matter. Thoughts are not searched. It works beside a chat that runs.
    """
    settings = settings_of(config, {})
    from kesoku_actors.app.history.searching import SearchRequest
    from kesoku_actors.app.history.searching import search_history as search
    from kesoku_actors.clock import real_world

    return search(SearchRequest(settings=settings, query=" ".join(query), limit=limit, json=json), real_world())


@command.command("export", epilog=exit_codes_help())
@click.argument("session", required=False)
@config_option
@click.option("--all", "all_sessions", is_flag=True, help="All sessions.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Where to write; else to stdout.")
def export_history(session: str | None, config: str | None, all_sessions: bool, output: Path | None) -> int:
    """Write SESSION, or all, as one file with a JSON object per line.

    Known secrets are masked. Files stay in the sessions' folders.
    """
    if (session is None) != all_sessions:
        raise click.UsageError("name a session, or export --all of them")
    settings = settings_of(config, {})
    from kesoku_actors.app.history.exporting import ExportRequest
    from kesoku_actors.app.history.exporting import export_history as export

    return export(ExportRequest(settings=settings, session=session, output=output))


@command.command("import", epilog=exit_codes_help())
@click.argument("file")
@config_option
def import_history(file: str, config: str | None) -> None:
    """Take the sessions of an export, all or none; "-" reads standard input.

    Ids and order are kept, so a session that is here already is refused. What was not finished is marked as
    interrupted, what was not delivered as undeliverable. No chat may run meanwhile.
    """
    settings = settings_of(config, {})
    from kesoku_actors.app.history.importing import ImportRequest
    from kesoku_actors.app.history.importing import import_history as take
    from kesoku_actors.clock import real_world

    done = take(ImportRequest(settings=settings, file=file), real_world(), lambda line: tell("warning", line))
    click.echo(
        f"imported {done.sessions} session{'' if done.sessions == 1 else 's'} with {done.messages} messages;"
        f" {done.interrupted} marked as interrupted, {done.undeliverable} as undeliverable; files are not included"
    )
