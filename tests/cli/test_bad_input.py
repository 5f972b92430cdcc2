"""What people get wrong with `chat`, in real processes: one clear line with the remedy, an exit code, nothing half."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Shell = Callable[..., tuple[int, str, str]]


def errors_in(text: str) -> list[str]:
    """The error lines, without warnings and what model answers."""
    return [line for line in text.splitlines() if line.startswith("kesoku-actors: error: ")]


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("$K chat --llm gpt hello", 78, "present: gemini, claude, openai, local, scripted"),
        (
            "$K chat --llm scripted -r 01NOSUCH hello",
            2,
            "there is no session '01NOSUCH'; list them: kesoku-actors history list",
        ),
        (
            "$K chat --llm scripted -c none.toml hello",
            78,
            "none.toml: does not exist; write one with: kesoku-actors init",
        ),
        ("echo '[workspace]\ndb_path = \".\"' > c.toml; $K chat -c c.toml hello", 78, "c.toml:2: workspace.db_path: "),
        ("echo no database > kesoku.db; echo > c.toml; $K chat -c c.toml --llm scripted hello", 65, "kesoku.db"),
        (
            "echo no model > m.gguf; echo '[local]\nmodel_path = \"m.gguf\"' > c.toml; $K chat -c c.toml hello",
            78,
            "GGUF",
        ),
        ("$K chat --llm scripted hello", 73, "/proc/none"),
    ],
)
def test_bad_input_is_one_clear_line_with_its_exit_code(shell: Shell, line: str, code: int, words: str) -> None:
    home = {"XDG_DATA_HOME": "/proc/none"} if "/proc" in words else {}
    found, output, errors = shell(line, **home)
    assert (found, output) == (code, "")
    [error] = errors_in(errors)
    assert words in error
    assert "Traceback" not in errors


def test_a_database_that_is_none_is_left_untouched(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "kesoku.db").write_text("no database")
    (tmp_path / "c.toml").touch()
    shell("$K chat -c c.toml --llm scripted hello")
    assert (tmp_path / "kesoku.db").read_text() == "no database"


def test_a_prompt_of_five_megabytes_is_answered(shell: Shell) -> None:
    code, output, errors = shell("head -c 5000000 /dev/zero | tr '\\0' x | $K chat --llm scripted")
    assert (code, errors_in(errors)) == (0, [])
    assert "I am a scripted model" in output


def test_an_inference_that_fails_is_one_line_in_a_pipe_and_in_the_log_where_that_is_asked_for(
    shell: Shell, tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text('repeat = true\ninferences = [[{ fail = "auth" }]]\n')
    (tmp_path / "c.toml").write_text('[scripted]\nscenario_path = "s.toml"\n[shell]\nenabled = false\n')
    chat = "$K chat -c c.toml --llm scripted hello"
    code, output, errors = shell(chat)
    answers, error, last = errors.splitlines()
    assert (code, output) == (1, "")
    assert (answers.endswith(" answers"), error.startswith("{"), last.endswith("🛑")) == (True, False, True)
    asked = shell(chat, KESOKU_LOG="info")[2]
    assert [line for line in asked.splitlines() if line.startswith("{") and '"inference failed"' in line]


def test_a_level_of_the_log_that_does_not_exist_is_one_line_naming_those_that_do(shell: Shell) -> None:
    line = "kesoku-actors: error: environment variable KESOKU_LOG: there is no level 'loud'; "
    assert shell("$K chat hello", KESOKU_LOG="loud") == (78, "", f"{line}there are error, warning, info, debug\n")
