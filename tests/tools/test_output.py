"""What a tool printed is short, harmless and whole where it counts (R14, S17, T6, I8)."""

from __future__ import annotations

import json
import os
import stat
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.protocol import Outcome
from kesoku_actors.tools import Settled, ToolContext, ToolOptions, ToolOutcome, harmless, head_and_tail
from kesoku_actors.tools.output import Capture
from tests.tools.journals import bench, call

SECRET = "secret-token-0123456789"


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]52;c;Y2xpcA==\x1b\\text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdevice\x1b\\text", "text"),
        ("\x9b2Jtext", "text"),
        ("50%\r100%", "50%\n100%"),
        ("a\r\nb", "a\nb"),
        ("nul\x00bell\x07", "nul\\x00bell\\x07"),
        ("ab\b\b\b", "ab\\x08\\x08\\x08"),
        ("evil\u202egnp.exe", "evil\\u202egnp.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("家族 👩\u200d👩\u200d👧 é", "家族 👩\u200d👩\u200d👧 é"),
        ("half \ud83d a pair", "half \\ud83d a pair"),
        ("\x1b", ""),
        ("\x1b[", ""),
    ],
)
def test_output_does_nothing_to_a_terminal(printed, shown):
    assert harmless(printed) == shown


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("\x1b[]P;mJ\x07\\\x9b\r\n\x00"))))
def test_no_output_leaves_a_control_character(text):
    left = {character for character in harmless(text) if unicodedata.category(character) == "Cc"}
    assert left <= {"\n", "\t"}
    json.dumps(harmless(text)).encode()


@given(st.text(max_size=200), st.integers(min_value=1, max_value=100))
def test_a_long_text_keeps_head_and_tail_and_says_what_is_missing(text, chars):
    shown = head_and_tail(text, chars)
    if len(text) <= chars:
        assert shown == text
    else:
        assert shown.startswith(text[: chars // 2])
        assert shown.endswith(text[len(text) - (chars - chars // 2) :])
        assert f"{len(text) - chars} characters left out" in shown


@given(st.lists(st.binary(max_size=60), max_size=40))
def test_a_capture_keeps_a_short_stream_whole_and_a_long_one_within_its_bound(pieces):
    capture = Capture(limit=200)
    for piece in pieces:
        capture.feed(piece)
    whole = b"".join(pieces)
    assert capture.total == len(whole)
    if len(whole) <= 200:
        assert capture.text() == whole.decode("utf-8", "replace")
    else:
        assert len(capture.text()) <= 200 + len("\n[... 9,999 bytes left out ...]\n")
        assert "bytes left out" in capture.text()


@given(st.integers(min_value=0, max_value=400), st.integers(min_value=0, max_value=400))
def test_no_cut_of_a_flood_shows_a_part_of_a_secret(before, behind):
    capture = Capture(limit=200)
    capture.feed(b"x" * before + b" " + SECRET.encode() + b" " + b"y" * behind)
    text = capture.text().replace(SECRET, "***")
    assert not any(SECRET[start : start + 6] in text for start in range(len(SECRET) - 5))


async def shout(text: str, context: ToolContext) -> ToolOutcome:
    return ToolOutcome(outcome=Outcome.OK, content=text, metadata={"said": [text[:60]], "in": str(context.workspace)})


def masking(chars: int) -> ToolOptions:
    return ToolOptions(output_chars=chars, mask=lambda text: text.replace(SECRET, "***"))


async def test_a_long_output_is_masked_and_short_and_the_whole_is_in_a_private_file(tmp_path: Path):
    text = f"\x1b[31m{SECRET}\x1b[0m" + "x" * 50_000 + "middle" + "x" * 50_000 + "sec\x1b[0mret-token-0123456789\x00"
    async with bench([shout], options=masking(1000), workspace=tmp_path) as made:
        made.start(call("a", "shout", text=text))
        await made.heard(Settled, "a")
    staged = made.outcome("a")
    assert staged.content.startswith("***xxx")
    assert staged.content.endswith("xxx***\\x00")
    assert len(staged.content) < 1200
    assert "the whole is in output/a.txt" in staged.content
    assert staged.metadata["said"][0].startswith("***xxx")
    file = tmp_path / staged.metadata["output_file"]
    assert file.read_text() == "***" + "x" * 50_000 + "middle" + "x" * 50_000 + "***\\x00"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


async def test_data_about_an_outcome_is_what_a_store_can_hold(tmp_path: Path):
    async def odd() -> ToolOutcome:
        return ToolOutcome(
            outcome=Outcome.OK,
            content="x",
            metadata={"path": Path("/a"), "nan": float("nan"), "deep": {1: (None, True)}},
        )

    async with bench([odd], workspace=tmp_path) as made:
        made.start(call("a", "odd"))
        await made.heard(Settled, "a")
    assert made.outcome("a").metadata == {"path": "/a", "nan": "nan", "deep": {"1": [None, True]}}


async def test_a_short_output_makes_no_file(tmp_path: Path):
    async with bench([shout], options=masking(1000), workspace=tmp_path) as made:
        made.start(call("a", "shout", text=f"it is {SECRET}"))
        await made.heard(Settled, "a")
    assert made.outcome("a").content == "it is ***"
    assert os.listdir(tmp_path) == []


async def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path):
    workspace, elsewhere = tmp_path / "session", tmp_path / "elsewhere"
    workspace.mkdir()
    elsewhere.mkdir()
    (workspace / "output").symlink_to(elsewhere)
    async with bench([shout], options=masking(100), workspace=workspace) as made:
        made.start(call("a", "shout", text="x" * 1000))
        await made.heard(Settled, "a")
    assert made.outcome("a").outcome is Outcome.OK
    assert "could not be kept in a file" in made.outcome("a").content
    assert os.listdir(elsewhere) == []
