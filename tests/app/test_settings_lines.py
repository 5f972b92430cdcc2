"""Where the keys of a TOML text stand."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.app.settings_lines import KeyPath, find_lines

TEXT = (
    '''\
# a comment with = and [brackets]
top.dotted."quo.ted" = 1
[a]
b = """
[not.a.table]
x = 1
""""
c = [1, # one
  {d = 2, e.f = "}"},
  "a]b",
  [3, 4],
]
[[rows]]
name = 'x'
[[rows]]
"name" = "\\"#y"
[[rows.inner]]
k = 1979-05-27 07:32:00
[rows.inner.deep]
z = 1
["odd \\u00e9 key".'it'''
    + """'s"]
"""
)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 2),
        (("top", "dotted", "quo.ted"), 2),
        (("a", "b"), 4),
        (("a", "c"), 8),
        (("a", "c", 1, "d"), 9),
        (("a", "c", 1, "e", "f"), 9),
        (("a", "c", 3, 1), 11),
        (("rows", 0, "name"), 14),
        (("rows", 1, "name"), 16),
        (("rows", 1, "inner", 0, "k"), 18),
        (("rows", 1, "inner", 0, "deep", "z"), 20),
    ],
)
def test_each_way_of_writing_a_key_is_found(path: KeyPath, line: int) -> None:
    text = TEXT.rsplit("[", 1)[0]
    tomllib.loads(text)
    assert find_lines(text).of(path) == line


def test_what_is_not_in_the_text_stands_where_its_table_stands() -> None:
    lines = find_lines("[a]\nb = 1\n")
    assert lines.of(("a", "missing")) == 1
    assert lines.of(("missing",)) is None


def paths(data: Any, here: KeyPath = ()) -> Iterator[KeyPath]:
    """Every way through parsed TOML."""
    if here:
        yield here
    members = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, inner in members:
        yield from paths(inner, (*here, key))


leaves = st.one_of(
    st.integers(-100, 100),
    st.booleans(),
    st.text(st.sampled_from("ab\"'\\#=,.[]{}\n\té🙂"), max_size=12),
    st.sampled_from(['"', "'", "'''", '"""', "]", "}", "#", "\n[x]\ny = 1\n", "\\"]),
)
keys = st.text(st.sampled_from("ab.#[]=\"' \\é"), max_size=4)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))
documents = st.dictionaries(keys, values | st.lists(st.dictionaries(keys, values, max_size=3), max_size=3), max_size=4)


@settings(deadline=None)
@given(documents)
def test_every_key_of_any_document_is_found_on_a_line_that_names_it(document: dict[str, Any]) -> None:
    text = tomlkit.dumps(document).replace("\r\n", "\n")
    data = tomllib.loads(text)
    lines, written = find_lines(text).by_path, text.split("\n")
    assert set(lines) == set(paths(data))
    for path, line in lines.items():
        if isinstance(path[-1], str):
            bare = path[-1].replace("\\", "\\\\").replace('"', '\\"')
            assert bare in written[line - 1]


@settings(deadline=None)
@given(st.lists(st.sampled_from(["[t{0}]", "[[r]]", "[[r.s]]", "k{0} = '''\n\n'''", "x{0}.y = [\n1,\n]", "#", ""])))
def test_hand_written_layouts_are_followed_line_by_line(pieces: list[str]) -> None:
    """Each numbered key is written once, so that its line can be read off the text."""
    statements = [piece.format(number) for number, piece in enumerate(pieces)]
    text = "[[r]]\n" + "\n".join(statements)
    data = tomllib.loads(text)
    found = find_lines(text).by_path
    assert set(found) == set(paths(data))
    for path, line in found.items():
        if isinstance(path[-1], str) and path[-1][0] in "tkx":
            assert path[-1] in text.split("\n")[line - 1]
