"""The whole of an output in a file: masked, harmless, flat in memory, and never through a link (I8, T6)."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.log import mask_secrets
from kesoku_actors.tools import harmless
from kesoku_actors.tools.spool import Spool, read_part

SECRET = "sk-0123456789"
MASK = mask_secrets([SECRET])


def spooled(folder: Path, pieces: list[bytes], **options: int) -> Spool:
    spool = Spool(folder, "a.txt", MASK, **options)
    for piece in pieces:
        spool.feed(piece)
    return spool


def pieces_of(data: bytes, cuts: list[int]) -> list[bytes]:
    bounds = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[begin:end] for begin, end in pairwise(bounds)]


WORDS = st.sampled_from([SECRET, "plain", "ünï", "\u202e", "\x1b[31m", "\x00", "a" * 300, "\r"])


SPACES = st.sampled_from([" ", "\n", "\t", ""])


@given(words=st.lists(st.tuples(WORDS, SPACES), max_size=30), cuts=st.lists(st.integers(0)))
def test_however_it_comes_in_pieces_no_secret_is_written_and_nothing_is_lost(
    tmp_path_factory: pytest.TempPathFactory, words: list[tuple[str, str]], cuts: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    text = "".join(word + space for word, space in words)
    spool = spooled(folder, pieces_of(text.encode(), cuts))
    spool.close()
    written = (folder / spool.path).read_text() if spool.path else ""
    assert SECRET not in written
    assert written == harmless(written), "nothing that controls a terminal"
    if "\x1b" not in text and "\r" not in text:
        assert written == MASK(harmless(text))


def test_what_is_said_can_be_read_while_it_grows(tmp_path: Path) -> None:
    spool = spooled(tmp_path, [b"one\ntwo thr"])
    assert read_part(tmp_path, "a.txt", 0, 100) == (b"one\ntwo ", 8)
    spool.feed(b"ee\n")
    assert read_part(tmp_path, "a.txt", 4, 100) == (b"two three\n", 14)
    assert spool.path == "output/a.txt"


def test_a_secret_in_a_word_without_an_end_is_not_cut_in_two(tmp_path: Path) -> None:
    data = b"x" * 70_000 + SECRET.encode() + b"y" * 70_000
    spool = spooled(tmp_path, [data[at : at + 1_000] for at in range(0, len(data), 1_000)])
    spool.close()
    assert (tmp_path / "output" / "a.txt").read_text() == "x" * 70_000 + "***" + "y" * 70_000


def test_the_file_is_its_owner_s_and_is_made_when_something_is_said(tmp_path: Path) -> None:
    quiet = spooled(tmp_path, [b""])
    quiet.close()
    assert (quiet.path, list(tmp_path.iterdir())) == (None, [])
    spooled(tmp_path, [b"hi\n"])
    assert (tmp_path / "output" / "a.txt").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "output").stat().st_mode & 0o777 == 0o700


def test_nothing_is_written_through_a_link_that_a_command_has_laid(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "output").symlink_to(outside)
    spool = spooled(tmp_path, [b"hi\n"])
    assert spool.path is None
    assert spool.problem is not None
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_a_command_puts_in_the_place_of_the_file_is_not_read(tmp_path: Path, kind: str) -> None:
    spooled(tmp_path, [b"hi\n"])
    file = tmp_path / "output" / "a.txt"
    file.unlink()
    if kind == "link":
        file.symlink_to("/etc/passwd")
    else:
        os.mkfifo(file)
    with pytest.raises(OSError):  # noqa: PT011  # any of them will do
        read_part(tmp_path, "a.txt", 0, 10)


def test_what_is_beyond_the_bound_is_left_out_and_said(tmp_path: Path) -> None:
    spool = spooled(tmp_path, [b"12345\n", b"67890\n", b"more\n"], most_bytes=8)
    spool.close()
    written = (tmp_path / "output" / "a.txt").read_text()
    assert written == "12345\n67\n[only the first 8 bytes are kept]\n"
    assert spool.problem == "only the first 8 bytes are kept"


def test_a_disk_that_is_full_ends_the_file_and_not_the_command(tmp_path: Path) -> None:
    spool = spooled(tmp_path, [b"kept\n"])
    full = os.open("/dev/full", os.O_RDWR)
    os.dup2(full, spool._file or 0)
    os.close(full)
    spool.feed(b"lost\n")
    spool.feed(b"lost\n")
    spool.close()
    assert spool.problem == "the rest could not be kept: No space left on device"
