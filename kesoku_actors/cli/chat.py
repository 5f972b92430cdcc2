"""`kesoku-actors chat`: one prompt, one streamed answer; a talk at a terminal; or the list of sessions."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

import click

from kesoku_actors.cli.configuration import config_option, settings_of
from kesoku_actors.cli.exit_codes import exit_codes_help
from kesoku_actors.invocation import program_name

if TYPE_CHECKING:  # attrs and cattrs would cost every help text 0.1 s
    from kesoku_actors.app.chat_request import ChatRequest, SessionsRequest, TalkRequest


@click.command("chat", epilog=exit_codes_help())
@click.argument("prompt", required=False)
@config_option
@click.option("-r", "--resume", "session", metavar="SESSION", help="Go on with this session.")
@click.option("-z", "--latest", is_flag=True, help="Go on with the newest session.")
@click.option("-l", "--list", "listing", is_flag=True, help="List the sessions, newest first.")
@click.option("--llm", metavar="NAME", help="The provider that answers, instead of [agent] llm.")
@click.option(
    "--attach",
    "files",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Send a file along, up to 25 MiB; may be repeated.",
)
@click.option("--json", is_flag=True, help="Write one event per line as JSON.")
def command(
    prompt: str | None,
    config: str | None,
    session: str | None,
    latest: bool,
    listing: bool,
    llm: str | None,
    files: tuple[Path, ...],
    json: bool,
) -> int:
    """Ask the agent something; the answer is streamed.

    Without PROMPT a talk begins on a terminal, where /help shows what can be done. In a pipe, or with "-", the prompt
    is read from standard input, up to 8 MiB of UTF-8. Ctrl-C stops the turn and waits for its end; once more, while
    tools run, ends them. With KESOKU_LOG=info in the environment, or debug, the log goes to standard error.
    """
    request = request_of(prompt, config, session, latest=latest, listing=listing, llm=llm, files=files, json=json)
    # The whole agent is imported only now: a request that cannot be taken is refused at once.
    from kesoku_actors.app.chat_request import ChatRequest, SessionsRequest, TalkRequest

    match request:
        case ChatRequest():
            from kesoku_actors.app.chat import run_chat

            return run_chat(request)
        case TalkRequest():
            from kesoku_actors.app.talk import run_interactive

            return run_interactive(request)
        case SessionsRequest():
            from kesoku_actors.app.history.listing import list_sessions

            return list_sessions(request)
        case never:
            assert_never(never)


def request_of(
    prompt: str | None,
    config: str | None,
    session: str | None,
    *,
    latest: bool = False,
    listing: bool = False,
    llm: str | None = None,
    files: tuple[Path, ...] = (),
    json: bool = False,
) -> ChatRequest | SessionsRequest | TalkRequest:
    """Return what the options ask for. Raises `click.UsageError`, `ConfigError`, `NotFound`, `UsageError`."""
    if (session is not None) + latest + listing > 1:
        raise click.UsageError("-r, -z and -l exclude each other")
    if listing and (prompt is not None or files):
        raise click.UsageError("-l takes no prompt and no files")

    from kesoku_actors.app.chat_request import ChatRequest, SessionsRequest, TalkRequest, check_session_id
    from kesoku_actors.cli.prompt_input import read_prompt

    program = program_name(os.environ)
    if session is not None:
        check_session_id(session, program)
    settings = settings_of(config, {} if llm is None else {"agent.llm": llm})
    is_tty = sys.stdout.isatty()
    if listing:
        return SessionsRequest(settings=settings, json=json)
    if files:
        from kesoku_actors.app.attachments import check_files

        check_files(files)
    if prompt is None and not json and not files and _is_at_a_terminal():
        return TalkRequest(settings=settings, names_model=llm is not None, session=session, latest=latest)
    text = read_prompt(prompt, program)
    return ChatRequest(
        prompt=text,
        settings=settings,
        names_model=llm is not None,
        session=session,
        latest=latest,
        files=files,
        json=json,
        is_tty=is_tty,
    )


def _is_at_a_terminal() -> bool:
    """Tell whether a person types here and reads on a terminal that can move its cursor."""
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    from kesoku_actors.adapters.terminal import ViewKind, fitting_kind

    return fitting_kind(sys.stdout, os.environ) is ViewKind.RICH
