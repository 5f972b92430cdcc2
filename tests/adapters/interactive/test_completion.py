"""Completion of commands and of files, with a file system of the test's own."""

from __future__ import annotations

import os.path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.adapters.commands import COMMANDS, Choice, Values
from kesoku_actors.adapters.terminal.interactive.completion import MOST, Completion, Offer

FOLDERS = {
    "/wood": [("notes.txt", False), ("notebook", True), (".hidden", False), ("src", True)],
    "/wood/src": [("main.py", False)],
    "/home/ada": [("letter.txt", False)],
    "/": [("wood", True), ("etc", True)],
    "/many": [(f"{number:03}", False) for number in range(200)],
}
COMPLETION = Completion(
    commands=COMMANDS,
    values=lambda: {Values.MODE: (Choice("queue"),)},
    list_folder=lambda path: FOLDERS.get(os.path.normpath(path), []),
    home="/home/ada",
    working_folder="/wood",
)


@pytest.mark.parametrize(
    ("before", "length", "texts"),
    [
        ("/mod", 4, ["/mode"]),
        ("/mode ", 0, ["queue"]),
        ("look at @note", 4, ["/wood/notebook/", "/wood/notes.txt"]),
        ("look at @src/", 4, ["/wood/src/main.py"]),
        ("@.h", 2, ["/wood/.hidden"]),
        ("@", 0, ["/wood/notebook/", "/wood/notes.txt", "/wood/src/"]),
        ("cat ./s", 3, ["./src/"]),
        ("cat ~/l", 3, ["~/letter.txt"]),
        ("cat /w", 2, ["/wood/"]),
        ("@/", 1, ["/etc/", "/wood/"]),
    ],
)
def test_the_last_word_is_completed(before: str, length: int, texts: list[str]) -> None:
    offer = COMPLETION.offer(before)
    assert offer is not None
    assert offer.length == length
    assert [choice.text for choice in offer.choices] == texts


@pytest.mark.parametrize("before", ["", "hello", "a word", "@nosuch", "mail a@b", "./none/x", "/stop "])
def test_where_nothing_is_known_nothing_is_offered(before: str) -> None:
    assert COMPLETION.offer(before) is None


def test_a_large_folder_is_cut() -> None:
    offer = COMPLETION.offer("@/many/")
    assert offer is not None
    assert len(offer.choices) == MOST


def test_only_commands_and_files_after_an_at_sign_are_offered_unasked() -> None:
    assert COMPLETION.asks("/mo")
    assert COMPLETION.asks("see @no")
    assert not COMPLETION.asks("cat ./no")
    assert not COMPLETION.asks("text\n/mo")


@given(st.lists(st.text("ab", max_size=4), min_size=1))
def test_what_is_common_is_the_longest_begin_of_all(texts: list[str]) -> None:
    common = Offer(length=0, choices=tuple(map(Choice, texts))).common
    assert all(text.startswith(common) for text in texts)
    longer = {text[: len(common) + 1] for text in texts}
    assert len(longer) > 1 or longer == {common}
