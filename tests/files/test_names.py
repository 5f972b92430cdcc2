"""Case rows A01 and A02: what a file from outside may be called."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.files.names import LONGEST_NAME, NAMELESS, extension_of, numbered, safe_name

NASTY = st.lists(
    st.sampled_from(
        ["..", "/", "\\", ".", "-", "_", "~", "\0", "\n", "\x1b[2J", "\u202e", "\ud800", " ", "é", "日", "a"]
    )
).map("".join)
NAMES = st.one_of(st.text(), NASTY, st.text(min_size=100, max_size=400), st.text(alphabet=st.characters()))


@given(NAMES)
def test_a_safe_name_is_one_plain_component_that_every_file_system_takes(filename: str) -> None:
    name = safe_name(filename)
    assert name not in ("", ".", "..")
    assert not set(name) & set("/\\\0")
    assert name[0] not in "-._"
    assert not name.endswith(".")
    assert 0 < len(name.encode("utf-8")) <= LONGEST_NAME
    assert all(char in ".-+_" or unicodedata.category(char)[0] in "LMN" for char in name)


@given(NAMES)
def test_a_safe_name_stays_as_it_is(filename: str) -> None:
    assert safe_name(safe_name(filename)) == safe_name(filename)


@given(NAMES, st.sampled_from(["../", "/etc/", "C:\\Users\\", "a/../../", "./"]))
def test_where_a_file_came_from_does_not_matter(filename: str, before: str) -> None:
    plain = filename.replace("/", "").replace("\\", "")
    if plain:
        assert safe_name(before + plain) == safe_name(plain)


@given(st.text(alphabet="abc日é", min_size=1, max_size=300), st.sampled_from([".png", ".PDF", ".tar"]))
def test_a_long_name_keeps_its_extension(stem: str, extension: str) -> None:
    name = safe_name(stem + extension)
    assert name.endswith(extension)
    assert unicodedata.normalize("NFC", stem).startswith(name.removesuffix(extension))


@given(NAMES, st.integers(1, 10_000), st.integers(1, 10_000))
def test_names_of_different_numbers_differ_and_are_safe(filename: str, one: int, other: int) -> None:
    name = safe_name(filename)
    assert (numbered(name, one) == numbered(name, other)) == (one == other)
    assert extension_of(numbered(name, one)) == extension_of(name)
    assert len(numbered(name, one).encode()) <= LONGEST_NAME + 6


@pytest.mark.parametrize(
    ("filename", "name"),
    [
        ("../../x", "x"),
        ("/etc/passwd", "passwd"),
        ("C:\\Windows\\win.ini", "win.ini"),
        ("", NAMELESS),
        (".", NAMELESS),
        ("..", NAMELESS),
        ("dir/", "dir"),
        ("-rf", "rf"),
        (".bashrc", "bashrc"),
        ("a\nb\x00c.txt", "a_b_c.txt"),
        ("my report (1).pdf", "my_report__1_.pdf"),
        ("gpj.\u202egnp.exe", "gpj._gnp.exe"),
        ("Übersicht.PDF", "Übersicht.PDF"),
        ("हिन्दी.txt", "हिन्दी.txt"),
        ("x" * 300 + ".png", "x" * (LONGEST_NAME - 4) + ".png"),
        ("a]b[c|d.png", "a_b_c_d.png"),
        ("$(reboot).sh", "reboot_.sh"),
    ],
)
def test_names_that_people_and_attackers_send(filename: str, name: str) -> None:
    assert safe_name(filename) == name
