"""What the command line asks of a chat, as values. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from attrs import field

from kesoku_actors.app.settings import Settings
from kesoku_actors.errors import NotFound
from kesoku_actors.values import frozen

TERMINAL: Final = "terminal"
"""The chatbot of every session begun on the command line; each session has a channel of its own."""
_LONGEST_ID: Final = 64


@frozen(kw_only=True)
class ChatRequest:
    """Answer one prompt. At most one of `session` and `latest` is given; without either a new session begins."""

    prompt: str = field(repr=False)
    """Not blank, valid Unicode."""
    settings: Settings
    """A name given with `--llm` is `settings.agent.llm` already."""
    names_model: bool = False
    """Whether `--llm` was given; if not, a session goes on with the model chosen in it."""
    session: str | None = None
    """The id of a session to go on with; it has the shape of an id, but may not exist."""
    latest: bool = False
    """Go on with the newest session."""
    files: tuple[Path, ...] = ()
    """What is attached to the prompt; each can be."""
    json: bool = False
    """Write one event per line as JSON."""
    is_tty: bool = False
    """Whether standard output is a terminal: markdown and colour, else plain text."""


@frozen(kw_only=True)
class TalkRequest:
    """Talk at a terminal. At most one of `session` and `latest` is given; without either a new session begins."""

    settings: Settings
    """A name given with `--llm` is `settings.agent.llm` already."""
    names_model: bool = False
    """Whether `--llm` was given; if not, a session goes on with the model chosen in it."""
    session: str | None = None
    latest: bool = False


@frozen(kw_only=True)
class SessionsRequest:
    """List the sessions, newest first."""

    settings: Settings
    json: bool = False
    limit: int = 50
    """How many are shown at most."""


def check_session_id(text: str, program: str) -> None:
    """Raise `NotFound` unless `text` can be the id of a session; what comes from outside is never a path (M6)."""
    if not (text.isascii() and text.isalnum() and len(text) <= _LONGEST_ID):
        shown = text if len(text) <= _LONGEST_ID else f"{text[:_LONGEST_ID]}..."
        raise NotFound(f"there is no session {shown!r}: an id is letters and digits; list them: {program} chat -l")
