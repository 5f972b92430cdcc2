"""Answers are cut into parts that platforms accept."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kesoku_actors.adapters import characters, parts, split, utf8_bytes, utf16_units

FAMILY = "👩‍👩‍👧‍👦"
FLAGS = "🇩🇪🇫🇷🇯🇵"
UNITS = st.sampled_from([characters, utf16_units, utf8_bytes])


def code_of(text: str) -> list[tuple[str, str]]:
    """Return info string and content of each fenced block, as an independent reader of markdown sees them."""
    return [(token.info, token.content) for token in MarkdownIt().parse(text) if token.type == "fence"]


def open_fence(text: str) -> str | None:
    """Return the marks of the fence left open at the end of a text."""
    marks = None
    for line in text.split("\n"):
        bare = line.strip(" \t>\r")
        found = re.match(r"(`{3,})[^`]*$|(~{3,})", bare)
        if marks is None and found:
            marks = found[1] or found[2]
        elif marks is not None and len(bare) >= len(marks) and set(bare) == {marks[0]}:
            marks = None
    return marks


WORDS = st.sampled_from(
    [
        "word",
        "`code`",
        "**bold**",
        "https://example.org/a/very/long/path?with=query",
        FAMILY,
        FLAGS,
        "漢字。",
        "é",
        "x" * 30,
        "```",
        "~~~",
    ]
)
PROSE = st.lists(WORDS, max_size=12).map(" ".join)
CODE = st.lists(
    st.sampled_from(["def f():", "    return 1", "", "~~~~ not a mark", "``", "y" * 50, "a ``` b"]), max_size=12
)
MARKS = st.sampled_from(["```", "~~~", "````"])
FENCED = st.builds(
    lambda marks, info, code: "\n".join([marks + info, *code, marks]),
    MARKS,
    st.sampled_from(["", "python", "text file=a-b"]),
    CODE,
)
MARKDOWN = st.lists(PROSE | FENCED, max_size=8).flatmap(
    lambda blocks: st.sampled_from(["\n", "\n\n"]).map(lambda gap: gap.join(blocks))
)


@given(MARKDOWN | st.text(), st.integers(16, 120), UNITS)
@example("```\n" + "a" * 40 + "\n```", 16, characters)
@example("x" * 20 + " ```", 16, characters)
def test_no_part_is_longer_than_the_limit_and_the_bodies_are_the_text(text, limit, units):
    made = parts(text, limit, units)
    assert all(units(part.text) <= limit for part in made)
    assert not any(part.body.isspace() for part in made)
    squeezed = re.sub(r"\s", "", text)
    assert re.sub(r"\s", "", "".join(part.body for part in made)) == squeezed


@given(MARKDOWN.filter(lambda text: open_fence(text) is None), st.integers(40, 120), UNITS)
def test_every_part_closes_the_fences_it_opens(text, limit, units):
    assert [open_fence(part) for part in split(text, limit, units)] == [None] * len(split(text, limit, units))


@given(MARKDOWN, st.integers(16, 120))
def test_fences_are_added_only_around_the_body(text, limit):
    for part in parts(text, limit):
        assert re.fullmatch(r"([ \t>]*(`{3,}|~{3,})[^\n]*\n)?", part.opening)
        assert re.fullmatch(r"(\n?[ \t>]*(`{3,}|~{3,}))?", part.closing)


@given(st.lists(st.sampled_from([FAMILY, "🇩🇪", "👍🏽", "e\u0301", "각", "1️⃣"]), min_size=1, max_size=60), UNITS)
def test_a_character_is_never_cut(clusters, units):
    joined = "".join(clusters)
    made = [part.body for part in parts(joined, 64, units)]
    ends, total = set(), 0
    for cluster in clusters:
        total += len(cluster)
        ends.add(total)
    position = 0
    for body in made:
        position += len(body)
        assert position in ends


@pytest.mark.parametrize("length", range(1990, 2011))
@pytest.mark.parametrize("marks", ["```", "~~~"])
def test_added_marks_never_push_a_part_over_the_limit(length, marks):
    info = "python title=" + "x" * 90
    text = f"*Look*:\n\n{marks}{info}\n" + "_" * (length - 130) + f"\n{marks}\n\n*" + "w" * 1200 + "*"
    made = split(text, 2000, utf16_units)
    assert len(made) >= 2
    assert all(utf16_units(part) <= 2000 and open_fence(part) is None for part in made)


@pytest.mark.parametrize(("marks", "indent"), [("~~~", ""), ("```", ""), ("`````", ""), ("```", "   ")])
def test_a_long_program_is_cut_between_its_lines_and_keeps_its_language(marks, indent):
    code = [f"{indent}line_{number} = {number}" for number in range(300)]
    text = "\n".join(["Here it is:", "", f"{indent}{marks}py", *code, f"{indent}{marks}", "", "Done."])
    made = split(text, 2000)
    blocks = [block for part in made for block in code_of(part)]
    assert len(made) > 2
    assert {info for info, _content in blocks} == {"py"}
    assert "".join(content for _info, content in blocks) == "".join(line.removeprefix(indent) + "\n" for line in code)


@pytest.mark.parametrize("limit", [60, 100, 200])
def test_an_address_stays_whole(limit):
    address = "https://example.org/" + "p" * 35
    text = "中文" * 17 + address + "。" + "字" * 90 + " " + address
    assert sum(address in part for part in split(text, limit)) >= 1
    assert "".join(part for part in split(text, limit)).count(address) == 2
    assert all(part.count("https") == part.count(address) for part in split(text, limit))


def test_a_paragraph_is_a_better_place_than_a_line_and_a_line_than_a_word():
    first, second = "one " * 20, "two " * 20
    assert split(f"{first}\n\n{second}\n{second}", 150)[0] == f"{first}\n\n"
    assert split(f"{first}\n{second}{second}", 150)[0] == f"{first}\n"
    assert split("abcd " * 50, 101)[0] == "abcd " * 20


def test_a_whole_block_of_code_moves_to_the_next_part_rather_than_being_cut():
    text = "word " * 30 + "\n```py\n" + "x = 1\n" * 15 + "```\n"
    assert split(text, 200) == ("word " * 30 + "\n", "```py\n" + "x = 1\n" * 15 + "```\n")


def test_words_that_look_like_a_fence_in_the_middle_of_a_line_never_start_a_part():
    text = "see ``` here " * 40
    assert all(open_fence(part) is None for part in split(text, 50))


def test_without_a_limit_the_text_is_the_one_part():
    assert split("a" * 100_000) == ("a" * 100_000,)
    assert split(" \n ") == ()
    assert split(" \n " * 100, 20) == ()


def test_a_limit_without_room_is_refused():
    with pytest.raises(ValueError, match="at least 16"):
        parts("text", 15)


@pytest.mark.parametrize("piece", ["a", " ", "🇩", "`", "> ", "é\u0301", "a://", "~~~", "\u200d", "\n", "```\n", "漢"])
def test_monotonous_texts_are_cut_in_time(piece):
    """Each of these once made a slower chunker quadratic; here only its result is looked at."""
    text = piece * (40_000 // len(piece))
    made = split(text, 2000, utf16_units)
    assert all(utf16_units(part) <= 2000 for part in made)
    assert bool(made) == bool(text.strip())
