"""`read_file`, `write_file`, `edit_file`: what they do, and what they refuse (T3, F01 to F06, A04, A05)."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.files.places import Refused, place_of
from kesoku_actors.protocol import Outcome, attachments_in
from kesoku_actors.tools import ToolContext, ToolOutcome, ToolRegistry
from kesoku_actors.tools.files import FileTools, Root
from kesoku_actors.tools.files.texts import replaced_once

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", 3, 2, 8, 0, 0, 0, 0)
PNG += struct.pack(">I", zlib.crc32(PNG[12:29]))
JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08" + struct.pack(">HH", 2, 3) + b"\0" * 12
LINK = "in/a: 'in' is a link, and links are not followed"
AT_FDCWD, RENAME_EXCHANGE = -100, 2
GIF = b"GIF89a" + struct.pack("<HH", 3, 2) + b"\0" * 8
WEBP = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + (2).to_bytes(3, "little") + (1).to_bytes(3, "little")


class Desk:
    """The tools over a session's folder, with a root to write in and one to read in."""

    def __init__(self, top: Path) -> None:
        self.workspace, self.project, self.library = top / "sessions" / "one", top / "project", top / "library"
        for folder in (self.workspace, self.project, self.library):
            folder.mkdir(parents=True)
        self.files = FileTools(roots=(Root(path=self.project), Root(path=self.library, is_writable=False)))
        self.context = ToolContext(session_id="s", call_id="call-1", workspace=self.workspace)

    def read(self, path: object, **more: Any) -> ToolOutcome:
        return self.files.read_file(path=str(path), context=self.context, **more)

    def write(self, path: object, content: str) -> ToolOutcome:
        return self.files.write_file(path=str(path), content=content, context=self.context)

    def edit(self, path: object, old: str, new: str) -> ToolOutcome:
        return self.files.edit_file(path=str(path), old_text=old, new_text=new, context=self.context)

    def every(self, path: object) -> list[ToolOutcome]:
        """Return what each tool makes of a path."""
        return [self.read(path), self.write(path, "x"), self.edit(path, "secret", "x")]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def said(outcome: ToolOutcome) -> str:
    assert outcome.outcome is Outcome.OK, outcome.content
    return outcome.content


def refused(outcome: ToolOutcome) -> str:
    assert outcome.outcome is Outcome.ERROR, outcome.content
    assert outcome.metadata["reason"] == "refused"
    return outcome.content


def test_the_three_are_tools_with_schemas():
    registry = ToolRegistry()
    for tool in FileTools().all():
        registry.add(tool, owner="kesoku")
    assert registry.names() == ("read_file", "write_file", "edit_file")
    (read, write, edit) = registry.schemas()
    assert list(read.parameters["properties"]) == ["path", "first_line", "last_line"]
    assert write.parameters["required"] == ["path", "content"]
    assert edit.parameters["required"] == ["path", "old_text", "new_text"]
    assert all(schema.description for schema in (read, write, edit))


def test_a_text_is_read_with_numbers_and_by_ranges(desk):
    (desk.workspace / "a.txt").write_text("one\ntwo\nthree\n")
    assert said(desk.read("a.txt")) == "     1\tone\n     2\ttwo\n     3\tthree\n[a.txt: lines 1 to 3 of 3]"
    assert said(desk.read("./b/../a.txt", first_line=2, last_line=2)).startswith("     2\ttwo\n[")
    assert "more follow, from first_line=3" in said(desk.read(desk.workspace / "a.txt", first_line=2, last_line=2))
    assert said(desk.read("a.txt", first_line=3)) == "     3\tthree\n[a.txt: lines 3 to 3 of 3]"
    assert "has 3 lines; there is no line 9" in refused(desk.read("a.txt", first_line=9))
    assert "lines count from 1" in refused(desk.read("a.txt", first_line=0))
    assert "no lines from 3 to 2" in refused(desk.read("a.txt", first_line=3, last_line=2))


def test_a_long_text_is_read_in_parts_that_join_without_a_gap(desk):
    lines = [f"line {number} {'x' * (number % 90)}" for number in range(1, 2_001)]
    (desk.workspace / "long.txt").write_text("\n".join(lines))
    seen: list[str] = []
    first = 1
    while True:
        content = said(desk.read("long.txt", first_line=first))
        assert len(content) <= desk.files.chars
        *shown, note = content.split("\n")
        seen += [line.partition("\t")[2] for line in shown]
        if note == f"[long.txt: lines {first} to 2000 of 2,000]":
            break
        first = int(note.rpartition("=")[2].rstrip("]"))
    assert seen == lines


def test_one_endless_line_is_shown_by_its_beginning(desk):
    (desk.workspace / "line.txt").write_text("a\n" + "b" * 3_000_000 + "\nc\n")
    content = said(desk.read("line.txt"))
    assert "more in this line]" in content
    assert content.endswith("     3\tc\n[line.txt: lines 1 to 3 of 3]")


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"", "[a is empty]"),
        (b"\xef\xbb\xbfhi\r\nyou", "     1\thi\n     2\tyou\n[a: lines 1 to 2 of 2]"),
        ("größe\n".encode("utf-16"), "     1\tgröße\n[a: lines 1 to 1 of 1]"),
        (b"caf\xe9\n", "     1\tcaf\ufffd\n[a: lines 1 to 1 of 1]"),
        (b"\n\n", "     1\t\n     2\t\n[a: lines 1 to 2 of 2]"),
    ],
)
def test_texts_of_other_kinds_are_read(desk, content, shown):
    (desk.workspace / "a").write_bytes(content)
    assert said(desk.read("a")) == shown


def test_what_is_no_text_is_refused_with_a_hint(desk):
    (desk.workspace / "a.zip").write_bytes(b"PK\x03\x04\0\0\0")
    assert "is no text (7 bytes); look at it with run_shell_command" in refused(desk.read("a.zip"))
    assert "is no text" in refused(desk.edit("a.zip", "PK", "x"))


@pytest.mark.parametrize(
    ("content", "mime_type"),
    [(PNG, "image/png"), (JPEG, "image/jpeg"), (GIF, "image/gif"), (WEBP, "image/webp")],
)
def test_a_picture_is_attached_to_the_result(desk, content, mime_type):
    (desk.workspace / "in").mkdir()
    (desk.workspace / "in" / "a.txt").write_bytes(content)
    outcome = desk.read("in/a.txt")
    assert said(outcome) == f"[in/a.txt: {mime_type}, 3 x 2 pixels, {len(content)} bytes; attached to this result]"
    (attached,) = attachments_in(outcome.metadata)
    assert (attached.path, attached.mime_type, attached.filename) == ("in/a.txt", mime_type, "a.txt")


def test_a_picture_from_elsewhere_is_copied_once_to_where_a_provider_finds_it(desk):
    (desk.library / "a.png").write_bytes(PNG)
    first, again = desk.read(desk.library / "a.png"), desk.read(desk.library / "a.png")
    (attached,) = attachments_in(first.metadata)
    assert attachments_in(again.metadata) == (attached,)
    assert (desk.workspace / attached.path).read_bytes() == PNG
    assert attached.filename == "a.png"
    assert len(list((desk.workspace / "attachments").iterdir())) == 1


def test_a_picture_too_large_is_refused_before_it_is_loaded(desk):
    bomb = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 50_000, 50_000) + b"\0" * 9
    (desk.workspace / "bomb.png").write_bytes(bomb)
    assert "50000 x 50000 pixels" in refused(desk.read("bomb.png"))
    (desk.workspace / "big.png").write_bytes(PNG)
    os.truncate(desk.workspace / "big.png", 26 << 20)
    assert "too large to look at" in refused(desk.read("big.png"))


def test_a_page_that_calls_itself_a_picture_is_read_as_the_text_it_is(desk):
    (desk.workspace / "evil.png").write_text("<svg onload=alert(1)>")
    outcome = desk.read("evil.png")
    assert "<svg" in said(outcome)
    assert attachments_in(outcome.metadata) == ()


def test_a_file_is_written_with_its_folders_and_private(desk):
    old = os.umask(0)
    try:
        assert said(desk.write("a/b/c.txt", "one\ntwo")) == "wrote a/b/c.txt: 2 lines, 7 bytes, a new file"
    finally:
        os.umask(old)
    file = desk.workspace / "a" / "b" / "c.txt"
    assert file.read_text() == "one\ntwo"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)] == [0o600, 0o700]
    assert said(desk.write("a/b/c.txt", "")) == "wrote a/b/c.txt: 0 lines, 0 bytes, in place of 7 bytes"
    assert [path.name for path in file.parent.iterdir()] == ["c.txt"]


def test_a_file_keeps_its_mode_when_it_is_replaced(desk):
    script = desk.workspace / "run.sh"
    script.write_text("echo one\n")
    script.chmod(0o750)
    said(desk.edit("run.sh", "one", "two"))
    said(desk.write("run.sh", script.read_text() + "true\n"))
    assert script.read_text() == "echo two\ntrue\n"
    assert stat.S_IMODE(script.stat().st_mode) == 0o750


def test_other_names_of_a_file_keep_the_old_content(desk):
    (desk.workspace / "a").write_text("old")
    os.link(desk.workspace / "a", desk.workspace / "b")
    said(desk.write("a", "new"))
    assert (desk.workspace / "b").read_text() == "old"


def test_an_edit_changes_exactly_one_place(desk):
    (desk.workspace / "a.py").write_text("x = 1\ny = 1\n")
    assert said(desk.edit("a.py", "y = 1", "y = 2\nz = 3")) == "edited a.py at line 2: 1 lines became 2"
    assert (desk.workspace / "a.py").read_text() == "x = 1\ny = 2\nz = 3\n"


@pytest.mark.parametrize(
    ("content", "old", "new", "text"),
    [
        ("x = 1\ny = 1\nx = 1\n", "x = 1", "x", "is there 2 times, at lines 1, 3: nothing was changed"),
        ("aaa", "aa", "b", "is there 2 times, at lines 1, 1"),
        ("a\n" * 30, "a", "b", "is there 30 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ..."),
        ("a", "b", "c", "is not there: nothing was changed. Read the file again"),
        ("if x:\n\tgo()\n", "    go()", "c", "Line 2 differs only in its blanks"),
        ("one\ntwo\n", "one\nthree", "c", "Its first line is at line 1, but what follows differs"),
        ("a", "", "c", "old_text is empty"),
        ("a", "a", "a", "nothing would change"),
        ("a", "a", "\ud800", "new_text holds half a character"),
    ],
)
def test_an_edit_that_is_not_exactly_one_is_refused_and_nothing_changes(desk, content, old, new, text):
    (desk.workspace / "a").write_text(content)
    assert text in refused(desk.edit("a", old, new))
    assert (desk.workspace / "a").read_text() == content


@pytest.mark.parametrize(
    ("content", "old", "new", "changed"),
    [
        (b"a\r\nb\r\n", "a\nb", "c\nd\ne", b"c\r\nd\r\ne\r\n"),
        (b"a\r\nb\n", "a\r\n", "c\n", b"c\nb\n"),
        (b"\xef\xbb\xbfa", "a", "b", b"\xef\xbb\xbfb"),
        ("größe".encode("utf-16"), "ö", "oe", "groeße".encode("utf-16")),
        (b"caf\xe9 one", "one", "two", b"caf\xe9 two"),
    ],
)
def test_an_edit_keeps_line_ends_marks_and_bytes_it_does_not_know(desk, content, old, new, changed):
    (desk.workspace / "a").write_bytes(content)
    said(desk.edit("a", old, new))
    assert (desk.workspace / "a").read_bytes() == changed


@given(st.binary(max_size=30), st.text(max_size=3), st.text(max_size=5))
def test_an_edit_is_the_replacement_of_the_one_occurrence_or_refused(content, old, new):
    text = content.decode("utf-8", "surrogateescape")
    if "\r\n" in text or content.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        return
    places = [at for at in range(len(text)) if old and text.startswith(old, at)]
    try:
        changed, line = replaced_once(content, old, new)
    except Refused:
        assert len(places) != 1 or old == new
        return
    assert len(places) == 1
    assert changed.decode("utf-8", "surrogateescape") == text.replace(old, new, 1)
    assert line == text[: places[0]].count("\n") + 1


def test_many_edits_of_one_file_at_once_lose_none(desk):
    (desk.workspace / "a").write_text("".join(f"<{number}>\n" for number in range(40)))
    outcomes: list[ToolOutcome] = []

    def change(number: int) -> None:
        context = evolve(desk.context, call_id=f"call-{number}")
        outcomes.append(desk.files.edit_file(path="a", old_text=f"<{number}>", new_text=f"[{number}]", context=context))

    threads = [threading.Thread(target=change, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(outcome.outcome is Outcome.OK for outcome in outcomes)
    assert (desk.workspace / "a").read_text() == "".join(f"[{number}]\n" for number in range(40))


def test_roots_are_read_and_written_as_they_say(desk):
    (desk.library / "note.txt").write_text("secret")
    assert "secret" in said(desk.read(desk.library / "note.txt"))
    assert "may only be read" in refused(desk.write(desk.library / "new.txt", "x"))
    assert "may only be read" in refused(desk.edit(desk.library / "note.txt", "secret", "x"))
    said(desk.write(desk.project / "src" / "a.py", "x"))
    assert (desk.project / "src" / "a.py").read_text() == "x"
    assert (desk.library / "note.txt").read_text() == "secret"


def test_a_file_that_may_only_be_read_is_not_replaced(desk):
    (desk.workspace / "a").write_text("secret")
    (desk.workspace / "a").chmod(0o444)
    assert "its mode is 0444" in refused(desk.write("a", "x"))
    assert "its mode is 0444" in refused(desk.edit("a", "secret", "x"))


def test_what_lies_outside_is_refused_in_every_writing_of_the_path(desk, tmp_path):
    (tmp_path / "config.toml").write_text("secret")
    (tmp_path / "sessions" / "two").mkdir()
    (tmp_path / "sessions" / "two" / "a").write_text("secret")
    (desk.workspace / "in").mkdir()
    for path in (
        "/etc/passwd",
        "~/.ssh/id_rsa",
        "~root/x",
        tmp_path / "config.toml",
        "../../config.toml",
        "in/../../../config.toml",
        f"{desk.project}/../config.toml",
        f"{desk.workspace}/../two/a",
        "../two/a",
        f"{desk.workspace}2/a",
        "/",
        "..",
        "",
        " ",
        "a\0b",
        "\ud800",
    ):
        for outcome in desk.every(path):
            assert "secret" not in refused(outcome)
    assert (tmp_path / "config.toml").read_text() == "secret"
    assert not (tmp_path / "sessions" / "one2").exists()


def test_no_link_is_followed_wherever_it_stands(desk, tmp_path):
    (tmp_path / "config.toml").write_text("secret")
    (desk.workspace / "file").symlink_to(tmp_path / "config.toml")
    (desk.workspace / "folder").symlink_to(tmp_path)
    (desk.workspace / "inner").mkdir()
    (desk.workspace / "inner" / "back").symlink_to(desk.workspace)
    (desk.workspace / "nowhere").symlink_to(tmp_path / "new")
    for path in ("file", "folder/config.toml", "folder/new/x", "inner/back/a", "nowhere"):
        for outcome in desk.every(path):
            assert "links are not followed" in refused(outcome)
    assert (tmp_path / "config.toml").read_text() == "secret"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.toml", "library", "project", "sessions"]


def test_a_link_put_in_the_way_meanwhile_is_not_followed(desk, tmp_path):
    """Something swaps a folder for a link to the outside, as fast as it can, while files are read and written."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("secret")
    inside, link = desk.workspace / "in", desk.workspace / "link"
    exchange = ctypes.CDLL(None).renameat2
    inside.mkdir()
    (inside / "a").write_text("mine")
    link.symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            exchange(AT_FDCWD, os.fsencode(inside), AT_FDCWD, os.fsencode(link), RENAME_EXCHANGE)

    swapping = threading.Thread(target=swap)
    swapping.start()
    contents = set()
    try:
        for number in range(5_000):
            contents.add(desk.read("in/a").content)
            desk.write("in/b", str(number))
            if number > 300 and LINK in contents:
                break
    finally:
        stop.set()
        swapping.join()
    assert contents >= {LINK, "     1\tmine\n[in/a: lines 1 to 1 of 1]"}
    assert not any("secret" in content for content in contents)
    assert [path.name for path in outside.iterdir()] == ["a"]


def test_pipes_devices_sockets_and_folders_are_refused_without_a_hang(desk):
    os.mkfifo(desk.workspace / "pipe")
    (desk.workspace / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        old = os.getcwd()
        os.chdir(desk.workspace)
        try:
            listening.bind("socket")
        finally:
            os.chdir(old)
        for path, what in (("pipe", "is a pipe"), ("socket", "is a socket"), ("folder", "is a folder")):
            for outcome in desk.every(path):
                assert what in refused(outcome)
    assert "'folder' is not a folder" not in desk.read("folder/x").content
    (desk.workspace / "file").write_text("x")
    assert "'file' is not a folder" in refused(desk.write("file/x", "y"))


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/tty", "/proc/self/environ", "/proc/self/mem", "/sys/kernel/notes"])
def test_devices_and_files_of_the_system_are_refused_even_where_they_lie_in_a_root(desk, path):
    files = FileTools(roots=[Root(path=Path("/"))])
    outcome = files.read_file(path=path, context=desk.context)
    assert any(word in refused(outcome) for word in ("device", "made by the system", "no such", "is a link"))


def test_a_missing_file_is_told_with_the_nearest_name(desk):
    (desk.workspace / "notes.txt").write_text("x")
    assert "did you mean 'notes.txt'?" in refused(desk.read("note.txt"))
    assert "there is no folder 'in' on the way to in/a" in refused(desk.edit("in/a", "a", "b"))
    assert "file name too long" in refused(desk.write("x" * 300, "y"))


def test_a_text_too_large_is_refused_with_what_to_use_instead(desk):
    small = FileTools(largest=10, largest_scan=20)
    (desk.workspace / "a").write_text("x" * 30)
    assert "sed, head or tail" in refused(small.read_file(path="a", context=desk.context))
    assert "written at once" in refused(small.write_file(path="b", content="x" * 11, context=desk.context))
    edited = small.edit_file(path="a", old_text="x", new_text="y", context=desk.context)
    assert "edited at once" in refused(edited)


def test_a_disk_that_refuses_leaves_the_old_file_and_nothing_beside_it(desk):
    (desk.workspace / "a").write_text("old")
    program = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from kesoku_actors.tools import ToolContext\n"
        "from kesoku_actors.tools.files import FileTools\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "context = ToolContext(session_id='s', call_id='c', workspace=Path(sys.argv[1]))\n"
        "print(FileTools().write_file(path='a', content='x' * 5000, context=context).content)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, desk.workspace], capture_output=True, text=True, check=True)
    assert "a was not written: File too large" in done.stdout
    assert [(path.name, path.read_text()) for path in desk.workspace.iterdir()] == [("a", "old")]


def test_a_writer_killed_at_any_moment_leaves_one_content_or_the_other(desk):
    first, second = "a" * 300_000, "b" * 300_000
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from kesoku_actors.tools import ToolContext\n"
        "from kesoku_actors.tools.files import FileTools\n"
        "files, context = FileTools(), ToolContext(session_id='s', call_id='c', workspace=Path(sys.argv[1]))\n"
        "files.write_file(path='it', content='a' * 300_000, context=context)\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    files.write_file(path='it', content='b' * 300_000, context=context)\n"
        "    files.edit_file(path='it', old_text='b' * 300_000, new_text='a' * 300_000, context=context)\n"
    )
    for number in range(6):
        writer = subprocess.Popen([sys.executable, "-c", program, desk.workspace], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        for _ in range(number * 40):
            assert (desk.workspace / "it").read_text() in (first, second)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        assert (desk.workspace / "it").read_text() in (first, second)
    said(desk.files.write_file(path="it", content="c", context=evolve(desk.context, call_id="c")))
    assert [path.name for path in desk.workspace.iterdir()] == ["it"]


def test_a_file_changed_by_another_program_meanwhile_is_not_replaced(desk, monkeypatch):
    (desk.workspace / "a").write_text("one two")
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        (desk.workspace / "a").write_text("somebody else's")

    monkeypatch.setattr(os, "fsync", fsync)
    assert "changed by somebody else meanwhile" in refused(desk.edit("a", "one", "1"))
    assert (desk.workspace / "a").read_text() == "somebody else's"
    assert [path.name for path in desk.workspace.iterdir()] == ["a"]


def test_a_session_folder_behind_a_link_of_the_person_is_found_under_both_names(desk, tmp_path):
    (tmp_path / "short").symlink_to(tmp_path / "sessions")
    (desk.workspace / "a").write_text("mine")
    desk.context = evolve(desk.context, workspace=tmp_path / "short" / "one")
    for path in ("a", tmp_path / "short" / "one" / "a", desk.workspace / "a"):
        assert "mine" in said(desk.read(path))
    (desk.workspace / "p").write_bytes(PNG)
    assert attachments_in(desk.read(desk.workspace / "p").metadata)[0].path == "p"


@given(st.text(alphabet="a./~ \\", max_size=12), st.booleans())
def test_a_path_lies_beneath_the_root_it_is_said_to_lie_in_or_is_refused(text, is_absolute):
    workspace, other = Root(path=Path("/a/a")), Root(path=Path("/a/.a"), is_writable=False)
    try:
        place = place_of(f"/{text}" if is_absolute else text, workspace, [other])
    except Refused:
        return
    assert not {"", ".", ".."} & set(place.parts)
    assert place.root in (workspace, other)
    meant = os.path.normpath(os.path.join("/a/a", f"/{text}" if is_absolute else text)).replace("//", "/")
    assert os.path.join(place.root.path, *place.parts) == meant


def test_the_functions_are_for_threads(desk: Desk, tmp_path: Path) -> None:
    registry = ToolRegistry()
    tools: list[Callable[..., Any]] = list(FileTools().all())
    for tool in tools:
        registry.add(tool, owner="kesoku")
        found = registry.find(tool.__name__)
        assert found is not None
        assert not found.signature.is_async
        assert found.signature.context_parameter == "context"


@pytest.mark.parametrize("content", [b"\xff\xfea\0b\0c", b"\xff\xfea\0\0\xd8b\0", b"\xfe\xff\xdc\0\0a"])
def test_what_only_begins_as_utf_16_is_read_and_never_changed(desk: Desk, content: bytes) -> None:
    (desk.workspace / "odd").write_bytes(content)
    assert desk.read("odd").outcome is Outcome.OK
    edited = desk.edit("odd", "a", "x")
    assert (edited.outcome, edited.metadata["reason"]) == (Outcome.ERROR, "refused")
    assert "begins as UTF-16 and is none at byte" in edited.content
    assert (desk.workspace / "odd").read_bytes() == content


def test_of_a_text_that_is_everywhere_not_every_place_is_kept(desk: Desk) -> None:
    (desk.workspace / "blank").write_bytes(b"\n" * (1 << 20))
    tracemalloc.start()
    try:
        edited = desk.edit("blank", "\n", "x")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "old_text is there more than 1,000 times, at lines 1, 2, 3" in edited.content
    assert peak < 24 << 20  # what is read at once, 16 MiB, and the text


def test_line_ends_that_are_not_shown_are_told_where_only_they_differ(desk: Desk) -> None:
    file = desk.workspace / "mixed"
    file.write_bytes(b"a\r\nb\nc\r\nd\n")
    told = desk.edit("mixed", "a\nb\nc\nd", "x").content
    assert "But for the ends of its lines it is: of lines 1 to 4, 1, 3 end with \\r\\n and others with \\n" in told
    assert desk.edit("mixed", "a\r\nb\nc\r\nd", "x").outcome is Outcome.OK
    assert file.read_bytes() == b"x\n"
    file.write_bytes(b"a\nb\n")
    assert "it is: lines 1 to 2 end with \\n; write them so" in desk.edit("mixed", "a\r\nb", "x").content
