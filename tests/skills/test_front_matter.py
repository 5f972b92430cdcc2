"""P06, C05: whatever stands in a header, it is a skill's header or a reason why it is none, and soon."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kesoku_actors.skills.front_matter import LARGEST_HEADER, Header, InvalidHeader, parse, split
from kesoku_actors.skills.platforms import host_platform, runs_on


def header(metadata: str = "", name: str = "name: tidy", description: str = "description: Tidies up.") -> Header:
    return parse(f"{name}\n{description}\n{metadata}\n".encode())


def platforms(value: str) -> tuple[str, ...] | None:
    return header(f"metadata:\n  platforms: {value}").platforms


def refused(text: str | bytes) -> str:
    with pytest.raises(InvalidHeader) as problem:
        parse(text if isinstance(text, bytes) else text.encode())
    return str(problem.value)


def test_a_header_as_it_is_meant() -> None:
    text = """
        name: csv-profile
        description: >
          Describes the columns of a table
          and draws them.
        license: MIT
        metadata:
          tags: [data, "csv", 2024]
          platforms:
            - Linux
            - macOS
          author: Ada
    """
    assert parse(text.encode()) == Header(
        name="csv-profile",
        description="Describes the columns of a table and draws them.",
        tags=("data", "csv", "2024"),
        platforms=("linux", "macos"),
    )


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("[linux]", ("linux",)),
        ("[]", ()),
        ("", None),
        ("~", None),
        ("null", None),
        ("linux", ("linux",)),
        ("Linux, macOS", ("linux", "macos")),
        ('""', ()),
        ("[LINUX, Darwin, Win32]", ("linux", "macos", "windows")),
        ('["OS X", "GNU/Linux"]', ("macos", "linux")),
        ("[beos]", ("beos",)),
    ],
)
def test_platforms_in_every_form_they_may_have(value: str, wanted: tuple[str, ...] | None) -> None:
    assert platforms(value) == wanted


@pytest.mark.parametrize("value", ["7", "1.5", "true", "{linux: true}", "[7]", "[linux, null]", "[[linux]]", "[true]"])
def test_platforms_that_are_no_words_are_refused_by_name(value: str) -> None:
    with pytest.raises(InvalidHeader, match=r"metadata\.platforms must"):
        platforms(value)


def test_what_a_terminal_or_a_prompt_would_obey_becomes_a_space() -> None:
    found = header('metadata: {tags: ["a\\e[31m"]}', 'name: "a\\u202eb"', 'description: "two\\nlines\\0and\\tmore"')
    assert found == Header(name="a b", description="two lines and more", tags=("a [31m",))


def test_without_metadata_a_skill_is_for_everywhere_and_has_no_tags() -> None:
    for metadata in ("", "metadata:", "metadata: {}", "metadata: null"):
        assert (header(metadata).platforms, header(metadata).tags) == (None, ())


@pytest.mark.parametrize(
    ("value", "wanted"),
    [("[a, b]", ("a", "b")), ("a, b", ("a", "b")), ("[1, 2.5]", ("1", "2.5")), ("", ()), ('[" x  y ", ""]', ("x y",))],
)
def test_tags_in_every_form_they_may_have(value: str, wanted: tuple[str, ...]) -> None:
    assert header(f"metadata:\n  tags: {value}").tags == wanted


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no name"),
        ("name: x", "has no description"),
        ("name: \ndescription: y", "has no name"),
        ("name: ' '\ndescription: y", "name is empty"),
        ("name: 2024\ndescription: y", "name must be text, not a number"),
        ("name: true\ndescription: y", "name must be text, not true or false"),
        ("name: [x]\ndescription: y", "name must be text, not a list"),
        ("name: {a: b}\ndescription: y", "name must be text, not a table"),
        ("name: x\ndescription: 1e9", "description must be text, not a number"),
        (f"name: {'x' * 65}\ndescription: y", "at most 64"),
        ("just words", "must be a table"),
        ("- name: x", "must be a table"),
        ("name: x\nname: y", "'name' twice"),
        ("name: x\ndescription: y\nmetadata: [a]", "metadata must be a table"),
        ("name: x\ndescription: y\nmetadata: words", "metadata must be a table"),
        ("name: x\ndescription: y\nmetadata: {tags: {a: b}}", r"metadata.tags must be a list"),
        ("name: x\ndescription: y: z", "line 3: mapping values are not allowed here"),
        ("name: 'x", "not YAML"),
        ("\tname: x", "not YAML"),
        ("name: !!python/object/apply:os.system [ls]", "uses a tag"),
        ('name: "\\UFFFFFFFF"', "not YAML"),
        ("name: \x00", "not YAML"),
        (b"name: \xff", "not UTF-8: byte 0xff"),
        ("? [a]\n: b", "a list as a key"),
        ("a: " + "[" * 40_000, "nested more than"),
        ("\n".join(f"k{n}: v" for n in range(5_000)), "more than 1,000 values"),
        ("\n".join(f"{' ' * n}k:" for n in range(200)), "too deep"),
    ],
)
def test_a_header_that_cannot_be_used_says_why(text: str | bytes, told: str) -> None:
    assert told in refused(text)


BOMBS = [
    "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{k}: &{k} [{','.join([f'*{j}'] * 9)}]\n" for j, k in zip("abcdefg", "bcdefgh", strict=True)),
    "a: &a {x: y}\n"
    + "".join(f"{k}: &{k} {{<<: [*{j}, *{j}, *{j}]}}\n" for j, k in zip("abcdefg", "bcdefgh", strict=True)),
    "a: &a [*a]",
    "name: *nothing",
    "&a name: x",
]


@pytest.mark.parametrize("bomb", BOMBS)
def test_an_alias_bomb_ends_at_its_first_anchor(bomb: str) -> None:
    assert "anchor" in refused(bomb)
    assert "anchor" in refused("# " + "x" * 60_000 + "\n" + bomb)


def outcome(content: bytes) -> str:
    try:
        found = parse(content)
    except InvalidHeader as problem:
        return str(problem)
    return f"{found.name}: {found.description}"


@given(st.text(max_size=300) | st.binary(max_size=200))
@example('a: "\\xg"')
@example("%YAML 9.9\n---\na: b")
@example("--- a\n--- b")
@example("a: |9\n b")
@example("a: !<tag:x> b")
@example("\ufeff---")
def test_whatever_it_is_it_is_a_header_or_refused(text: str | bytes) -> None:
    content = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    for whole in (content, b"name: x\ndescription: y\nmetadata:\n  tags: " + content):
        assert outcome(whole)


SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(tags=SHAPES, where=SHAPES)
def test_odd_types_crash_nothing(tags: Any, where: Any) -> None:
    text = json.dumps({"name": "x", "description": "y", "metadata": {"tags": tags, "platforms": where}})
    try:
        found = parse(text.encode())
    except InvalidHeader:
        return
    assert all(isinstance(word, str) for word in (*found.tags, *(found.platforms or ())))
    assert (found.platforms is None) == (where is None)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", ["---", "---  ", "..."])
def test_header_and_body_are_parted_at_the_lines_of_dashes(end: str, mark: str, last: str) -> None:
    text = mark + end.join(["---", "name: x", "description: a --- b", last, "# Body", "---", "more"])
    head, body = split(text.encode())
    assert parse(head).description == "a --- b"
    assert body.decode() == end.join(["# Body", "---", "more"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "first line must be ---"),
        ("# Title\n---\n", "first line must be ---"),
        ("----\nname: x\n---\n", "first line must be ---"),
        ("---\nname: x\n", "no line --- at its end"),
        ("---\nname: x\n" + "# more\n" * (LARGEST_HEADER // 7 + 1) + "---\n", f"larger than {LARGEST_HEADER:,} bytes"),
    ],
)
def test_what_has_no_header_or_one_too_large_is_refused(text: str, told: str) -> None:
    with pytest.raises(InvalidHeader, match=told):
        split(text.encode())


def test_a_header_just_as_large_as_allowed_is_read() -> None:
    start = "name: x\ndescription: y\n#"
    head, _ = split(f"---\n{start}{'z' * (LARGEST_HEADER - len(start) - 1)}\n---\n".encode())
    assert len(head) == LARGEST_HEADER
    assert parse(head).name == "x"


@pytest.mark.parametrize(
    ("system", "host"),
    [("linux", "linux"), ("darwin", "macos"), ("win32", "windows"), ("cygwin", "windows"), ("freebsd14", "freebsd")],
)
def test_the_host_is_named_as_headers_name_it(system: str, host: str) -> None:
    assert host_platform(system) == host


def test_missing_is_everywhere_and_an_empty_list_is_nowhere() -> None:
    assert [runs_on(listed, "linux") for listed in (None, (), ("linux",), ("macos", "windows"))] == [
        True,
        False,
        True,
        False,
    ]
