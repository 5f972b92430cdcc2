"""`history` as a person types it: real processes over a real store."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kesoku_actors.cli.run import run

REPOSITORY = Path(__file__).parents[2]
PYTHON = sys.executable

Shell = Callable[..., tuple[int, str, str]]
History = Callable[..., tuple[int, str, str]]


def errors_in(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("kesoku-actors: error: ")]


@pytest.fixture(scope="module")
def two_chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of somebody who had two chats."""
    data = tmp_path_factory.mktemp("data")
    for prompt in ("Where does the **heron** nest?", "And the osprey, café?"):
        subprocess.run(
            [PYTHON, "-m", "kesoku_actors", "chat", "--llm", "scripted", prompt],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "XDG_DATA_HOME": str(data), "HOME": str(data)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=120,
        )
    return data


@pytest.fixture
def talked(shell: Shell, two_chats: Path, tmp_path: Path) -> Shell:
    """A shell in whose home two chats were had."""
    shutil.copytree(two_chats, tmp_path / "data")
    return shell


@pytest.fixture
def history(
    two_chats: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> History:
    """Run `history` with these arguments in this process, where two chats were had."""
    shutil.copytree(two_chats, tmp_path / "data", dirs_exist_ok=True)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)

    def history(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = run(["history", *arguments])
        output, errors = capfd.readouterr()
        return code, output, errors

    return history


def without_numbers(export: str) -> list[dict[str, object]]:
    """The lines of an export without what each store gives anew."""
    lines = [json.loads(line) for line in export.splitlines()]
    return [{key: value for key, value in line.items() if key not in ("seq", "place")} for line in lines]


def ids(shell: Shell) -> list[str]:
    return [json.loads(line)["session"] for line in shell("$K history list --json")[1].splitlines()]


def test_the_list_tells_title_turns_tokens_and_time_as_chat_does(talked: Shell) -> None:
    code, output, _ = talked("$K history list")
    assert code == 0
    newest, older = output.splitlines()
    assert newest.endswith("And the osprey, café?")
    assert older.endswith("Where does the heron nest?")
    assert "1 turn" in newest
    assert " in, " in newest
    assert talked("$K chat -l") == (0, output, "")
    listed = [json.loads(line) for line in talked("$K history list --json --limit 1")[1].splitlines()]
    counted = {"input_tokens", "cached_tokens", "output_tokens", "thinking_tokens", "cost"}
    told = {"session", "channel", "state", "turns", "created", "last_activity", "title"}
    assert [set(each) for each in listed] == [counted | told]
    assert listed[0]["input_tokens"] > 0


@pytest.mark.parametrize("command", ["history list", "history search heron", "history export --all"])
def test_before_the_first_chat_there_is_nothing_and_nothing_is_made(shell: Shell, tmp_path: Path, command: str) -> None:
    code, _, errors = shell(f"$K {command}")
    assert (code, errors) == (0, "")
    assert not list(tmp_path.rglob("*.db"))


def test_a_session_is_shown_whole_by_any_part_of_its_id(talked: Shell) -> None:
    newest, older = ids(talked)
    whole = talked(f"$K history show {older}")
    assert whole[0] == 0
    for part in ("User:", "heron", "● run_shell_command", "✓", "I am a scripted model", "turn 1", "processed"):
        assert part in whole[1]
    assert "\x1b" not in whole[1]
    assert talked(f"$K history show {older.lower()[-9:]}") == whole
    assert talked("$K history show last") == talked(f"$K history show {newest}")


def test_one_turn_is_shown(talked: Shell) -> None:
    talked("$K chat --llm scripted -z 'a second turn'")
    code, output, _ = talked("$K history show last --turn 2")
    assert code == 0
    assert "a second turn" in output
    assert "turn 1" not in output
    lines = [json.loads(line) for line in talked("$K history show last --turn 2 --json")[1].splitlines()]
    assert lines[0]["kind"] == "session"
    assert {line["root_id"] for line in lines if line["kind"] == "message"} == {lines[1]["id"]}


@pytest.mark.parametrize("named", ["it's", "a.b", "../../etc/passwd", "x" * 10_000, "🦊", "", "01NOSUCH", "\udce9"])
@pytest.mark.parametrize("command", ["show", "export"])
def test_a_session_that_cannot_be_is_one_line(history: History, command: str, named: str) -> None:
    code, output, errors = history(command, named)
    assert (code, output) == (2, "")
    assert len(errors.splitlines()) == 1
    assert len(errors) < 300
    assert "history list" in errors or "chat -l" in errors


def test_a_search_finds_what_was_said_and_marks_it(talked: Shell) -> None:
    code, output, _ = talked("$K history search HERON")
    assert code == 0
    assert "Where does the **heron** nest?" in output
    found = [json.loads(line) for line in talked("$K history search --json heron")[1].splitlines()]
    assert found[0]["excerpt"][slice(*found[0]["matches"][0])] == "heron"
    assert found[0]["session"] == ids(talked)[1]
    assert talked("$K history search cafe")[1].count("café") == 2, "in the title and in the text"
    assert talked("$K history search nothingofthekind") == (0, "Nothing was found.\n", "")
    assert talked("$K history search --json nothingofthekind") == (0, "", "")


@pytest.mark.parametrize("query", ['"', "NOT OR", "a:b", "*", "(((", " ", "\udcff", "x\0y"])
def test_no_query_is_a_mistake(history: History, query: str) -> None:
    assert history("search", query)[::2] == (0, "")


def test_a_broken_index_is_told_of_and_made_anew(talked: Shell, tmp_path: Path) -> None:
    talked("$K history search heron")
    (index,) = tmp_path.rglob("*-search.db")
    index.write_bytes(os.urandom(20_000))
    code, output, errors = talked("$K history search heron")
    assert (code, "heron" in output) == (0, True)
    assert "made anew" in errors
    assert talked("$K history search heron")[2] == ""


def test_where_no_index_can_be_written_one_is_made_in_memory(talked: Shell, tmp_path: Path) -> None:
    (index,) = [*tmp_path.rglob("*-search.db")] or [next(tmp_path.rglob("kesoku.db")).with_name("kesoku-search.db")]
    index.unlink(missing_ok=True)
    index.mkdir()
    code, output, errors = talked("$K history search heron")
    assert (code, "heron" in output) == (0, True)
    assert "for this search alone" in errors


def test_an_export_is_imported_into_an_empty_home_and_exported_the_same(talked: Shell, tmp_path: Path) -> None:
    assert talked("$K history export --all -o all.jsonl") == (0, "", "")
    assert stat.S_IMODE((tmp_path / "all.jsonl").stat().st_mode) == 0o600
    other = {"XDG_DATA_HOME": str(tmp_path / "other")}
    code, output, errors = talked("$K history import all.jsonl", **other)
    assert (code, errors) == (0, "")
    assert "imported 2 sessions" in output
    exported = talked("$K history export --all", **other)[1]
    assert without_numbers(exported) == without_numbers((tmp_path / "all.jsonl").read_text())
    assert talked("$K history search heron", **other)[1] == talked("$K history search heron")[1]
    code, _, errors = talked("$K history import all.jsonl", **other)
    assert (code, len(errors.splitlines())) == (2, 1)
    assert "already" in errors
    code, _, errors = talked("$K chat --llm scripted -z 'go on'", **other)
    assert (code, errors_in(errors)) == (0, [])


def test_an_export_goes_through_a_pipe(talked: Shell, tmp_path: Path) -> None:
    code, output, errors = talked(f"$K history export last | XDG_DATA_HOME={tmp_path / 'other'} $K history import -")
    assert (code, errors) == (0, "")
    assert "imported 1 session with" in output


def test_known_secrets_are_masked_wherever_history_is_written(talked: Shell) -> None:
    secret = "sk-verysecretindeed"
    talked(f"$K chat --llm scripted 'my key is {secret}'")
    for command in ("show last", "export last", "search key", "list", "show last --json", "search --json key"):
        code, output, _ = talked(f"$K history {command}", OPENAI_API_KEY=secret)
        assert (code, secret in output) == (0, False), command
        assert "***" in output


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("export", "name a session, or export --all"),
        ("export last --all", "name a session, or export --all"),
        ("import nosuchfile", "cannot be read"),
        ("import .", "cannot be read"),
        ("import /dev/null", "the file is empty"),
        ("show", "Missing argument"),
        ("show last --turn 0", "0 is not in the range"),
        ("show last --turn 9", "has 1 turn, and no turn 9"),
        ("export last -o .", "is a folder"),
        ("nosuch", "No such command"),
    ],
)
def test_what_is_typed_wrongly_is_one_line(history: History, line: str, words: str) -> None:
    code, output, errors = history(*line.split())
    assert (code, output) == (2, "")
    assert words in errors
    assert len(errors.splitlines()) == 1


def test_an_export_that_cannot_be_written_leaves_what_was_there(talked: Shell, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    code, _, errors = talked("$K history export --all -o /dev/full")
    assert code in (2, 73)
    assert len(errors.splitlines()) == 1
    code, _, errors = talked("$K history export 01NOSUCH -o old")
    assert (code, (tmp_path / "old").read_text()) == (2, "old")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".old")] == []
