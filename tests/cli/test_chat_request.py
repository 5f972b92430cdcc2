"""From the options of `chat` and standard input to a request, or a refusal before anything is opened."""

from __future__ import annotations

import io
from pathlib import Path

import click
import pytest

from kesoku_actors.app.chat_request import ChatRequest, SessionsRequest, TalkRequest
from kesoku_actors.app.settings import load_settings
from kesoku_actors.cli.chat import request_of
from kesoku_actors.cli.prompt_input import LARGEST_PROMPT, read_prompt
from kesoku_actors.errors import ConfigError, NotFound, UsageError
from kesoku_actors.invocation import PROGRAM


class Keyboard(io.StringIO):
    """A standard input that a person sits at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the configuration and keys of whoever runs the tests out of them."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "DISCORD_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def pipe(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))


def test_the_options_become_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"not read")
    request = request_of("hello", None, "01ABC", llm="openai", json=True)
    assert isinstance(request, ChatRequest)
    assert (request.prompt, request.session, request.latest, request.json) == ("hello", "01ABC", False, True)
    assert request.settings.agent.llm == "openai"
    assert request.settings.workspace.db_path == tmp_path / "data" / "kesoku-actors" / "kesoku.db"
    assert request.is_tty is False
    assert "hello" not in repr(request)


def test_a_list_needs_no_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert isinstance(request_of(None, None, None, listing=True), SessionsRequest)


def test_a_bad_configuration_is_refused_before_standard_input_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe(monkeypatch, b"a long one")
    with pytest.raises(ConfigError):
        request_of(None, str(tmp_path / "none.toml"), None)
    assert read_prompt(None, PROGRAM) == "a long one"


def test_options_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(click.UsageError):
        request_of("x", None, "01ABC", latest=True)


@pytest.mark.parametrize("session", ["", "../x", "a/b", "a'b", 'a"b', "a.b", "🙂", "x" * 10_000, "a b", "a\n", "-1"])
def test_what_cannot_be_a_session_is_not_found(session: str) -> None:
    with pytest.raises(NotFound, match="there is no session") as caught:
        request_of("hello", None, session)
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("argument", [None, "-"])
def test_a_prompt_may_come_from_standard_input(monkeypatch: pytest.MonkeyPatch, argument: str | None) -> None:
    pipe(monkeypatch, "zwei\r\nZeilen 日本\r\n".encode())
    assert read_prompt(argument, PROGRAM) == "zwei\r\nZeilen 日本"


def test_an_argument_wins_over_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"not this")
    assert read_prompt("this\n", PROGRAM) == "this\n"


def test_a_prompt_of_five_megabytes_is_taken_whole_and_one_beyond_the_bound_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipe(monkeypatch, b"x" * 5_000_000)
    assert len(read_prompt(None, PROGRAM)) == 5_000_000
    for content in (b"x" * (LARGEST_PROMPT + 1), b"x" * LARGEST_PROMPT + "é".encode()):
        pipe(monkeypatch, content)
        with pytest.raises(UsageError, match="the prompt is longer than 8 MiB"):
            read_prompt(None, PROGRAM)


@pytest.mark.parametrize("content", [b"", b"\n", b" \t\r\n"])
def test_an_empty_prompt_is_refused(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    pipe(monkeypatch, content)
    with pytest.raises(UsageError, match="the prompt is empty"):
        read_prompt(None, PROGRAM)
    with pytest.raises(UsageError, match="the prompt is empty"):
        read_prompt(content.decode(), PROGRAM)


def test_bytes_that_are_not_utf8_are_named_with_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"caf\xe9")
    with pytest.raises(UsageError, match=r"^standard input is not UTF-8: byte 0xe9 at 3; convert it first$"):
        read_prompt(None, PROGRAM)
    with pytest.raises(UsageError, match=r"^the prompt is not UTF-8: byte 0xe9 at 3; convert it first$"):
        read_prompt(b"caf\xe9".decode("utf-8", "surrogateescape"), PROGRAM)


def test_without_a_prompt_a_person_is_told_how_to_give_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Keyboard())
    with pytest.raises(UsageError, match=r"^no prompt; give it as an argument"):
        read_prompt(None, PROGRAM)
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UsageError, match=r"^no prompt, and standard input is closed"):
        read_prompt(None, PROGRAM)


def test_a_talk_begins_where_a_person_types_and_reads_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Keyboard())
    monkeypatch.setattr("sys.stdout", Keyboard())
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(request_of(None, None, None), TalkRequest)
    assert request_of(None, None, "A1", llm="scripted") == TalkRequest(
        settings=load_settings(None, environ={}, overrides={"agent.llm": "scripted"}), names_model=True, session="A1"
    )
    assert isinstance(request_of("hello", None, None), ChatRequest)
    with pytest.raises(UsageError, match="no prompt"):
        request_of(None, None, None, json=True)
    monkeypatch.setenv("TERM", "dumb")
    with pytest.raises(UsageError, match="no prompt"):
        request_of(None, None, None)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout", io.StringIO())
    with pytest.raises(UsageError, match="no prompt"):
        request_of(None, None, None)
