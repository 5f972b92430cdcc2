"""`kesoku-actors trace` as a person uses it."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

Shell = Callable[..., tuple[int, str, str]]


TALK = '$K chat --llm scripted "Show me what you can do."'


def test_it_writes_one_file_for_its_owner_however_the_session_is_named(shell: Shell, tmp_path: Path) -> None:
    assert shell(TALK)[0] == 0
    code, out, errors = shell("umask 000; $K trace last")
    assert (code, errors) == (0, "")
    told = re.fullmatch(r"wrote (/\S+/trace-(\w+)\.html) \(1 turn, 2 steps\); open it in a browser\n", out)
    assert told is not None, out
    path, session = Path(told[1]), told[2]
    assert path.parent == tmp_path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")

    code, out, _ = shell(f"$K trace {session[:20].lower()} --turn 1 -o {path.name}")
    assert code == 0, "a part of the id will do, and it may be written again"
    code, out, _ = shell("$K trace last -o -")
    assert (code, out.startswith("<!DOCTYPE html>"), out.rstrip().endswith("</html>")) == (0, True, True)
    code, out, errors = shell("$K trace last --turn 2")
    assert (code, out) == (2, "")
    assert "there is no turn 2: the session has 1" in errors

    (tmp_path / "link.html").symlink_to(tmp_path / "other")
    (tmp_path / "file").write_text("")
    for name, expected in (("link.html", 2), (".", 2), ("file/x.html", 73)):
        code, out, errors = shell(f"$K trace last -o {name}")
        assert (code, out, errors.count("\n")) == (expected, "", 1), name


def test_the_data_comes_as_json_with_exact_requests(shell: Shell) -> None:
    assert shell(TALK)[0] == 0
    code, out, _ = shell("$K trace last --json")
    data = json.loads(out)
    assert code == 0
    assert [item["kind"] for item in data["turns"][0]["items"]] == [
        *("person", "inference", "thought", "text", "call", "call", "inference", "answer")
    ]
    assert {exchange["source"] for exchange in data["exchanges"]} == {"log"}


def test_without_the_log_the_requests_are_rebuilt(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[agent]\nllm = "scripted"\nturn_log = false\n')
    assert shell('$K chat -c config.toml "Hello"')[0] == 0
    data = json.loads(shell("$K trace -c config.toml last --json")[1])
    assert {exchange["source"] for exchange in data["exchanges"]} == {"rows"}
    assert not list(tmp_path.rglob("llm-turn-*"))


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("$K trace last", 2, "there is no session yet"),
        ("$K trace nope", 2, "there is no session 'nope'"),
        ("$K trace ../x", 2, "there is no session '../x'"),
        ("$K trace", 2, "Missing argument 'SESSION'"),
        ("$K trace last --turn 0", 2, "0 is not in the range"),
        ("$K trace last --json -o x", 2, "leave -o out"),
    ],
)
def test_what_cannot_be_is_one_line(shell: Shell, line: str, code: int, told: str) -> None:
    found, out, errors = shell(line)
    assert (found, out) == (code, "")
    assert told in errors
    assert errors.count("\n") == 1
