"""`chat --attach` in real processes: the file is in the workspace and named in the message, or nothing is begun."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

Shell = Callable[..., tuple[int, str, str]]

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 3000


def home_of(tmp_path: Path) -> Path:
    return tmp_path / "data" / "kesoku-actors"


def said(tmp_path: Path) -> list[str]:
    """What people said, as stored."""
    with sqlite3.connect(home_of(tmp_path) / "kesoku.db") as database:
        rows = database.execute("SELECT content FROM messages WHERE role = 'user' ORDER BY seq").fetchall()
    database.close()
    return [content for (content,) in rows]


def test_attached_files_are_copied_and_named_before_the_model_reads(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(PNG)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "cat.png").write_text("no cat")
    (tmp_path / "-my notes.md").write_text("# Notes")
    line = "$K chat --llm scripted --attach cat.png --attach sub/cat.png --attach '-my notes.md' 'What is this?'"
    code, output, errors = shell(line)
    assert (code, "error" in errors) == (0, False), errors
    assert "I am a scripted model" in output
    [workspace] = (home_of(tmp_path) / "sessions").iterdir()
    kept = {path.name: path.read_bytes() for path in (workspace / "attachments").iterdir()}
    assert sorted(kept) == ["cat-2.png", "cat.png", "my_notes.md"]
    assert {kept["cat.png"], kept["cat-2.png"]} == {PNG, b"no cat"}
    [content] = said(tmp_path)
    first, *references = content.splitlines()
    assert first == "What is this?"
    assert {line.partition(":")[0] for line in references} == {
        "[attachment cat.png (image/png)",
        "[attachment cat.png (text/plain)",
        "[attachment -my notes.md (text/markdown)",
    }
    assert {line.rpartition(" ")[2].rstrip("]") for line in references} == {f"attachments/{name}" for name in kept}


def test_a_prompt_may_be_piped_beside_an_attachment(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    assert shell("echo 'Read this.' | $K chat --llm scripted --attach a.txt")[0] == 0
    assert said(tmp_path) == ["Read this.\n[attachment a.txt (text/plain): attachments/a.txt]"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        ("true", "cannot attach 'x': no such file or directory"),
        ("mkdir x", "cannot attach 'x': it is a folder; attach files, or name the folder in the prompt"),
        ("mkfifo x", "cannot attach 'x': it is no regular file; copy its content into one"),
        ("ln -s x x", "cannot attach 'x': too many levels of symbolic links"),
        ("truncate -s 26214401 x", "cannot attach 'x': it is larger than 25 MiB; name it in the prompt instead"),
        pytest.param(
            "touch x; chmod 0 x",
            "cannot attach 'x': permission denied",
            marks=pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may read everything"),
        ),
    ],
)
def test_a_file_that_cannot_be_attached_is_one_line_and_nothing_is_begun(
    shell: Shell, tmp_path: Path, make: str, words: str
) -> None:
    (tmp_path / "good.txt").touch()
    code, output, errors = shell(f"{make}; $K chat --llm scripted --attach good.txt --attach x 'What is this?'")
    assert (code, output, errors) == (2, "", f"kesoku-actors: error: {words}\n")
    assert not home_of(tmp_path).exists()


def test_a_list_takes_no_files(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    code, _, errors = shell("$K chat -l --attach a.txt")
    assert code == 2
    assert "-l takes no prompt and no files" in errors
