"""The narrator writes plainly where nobody sees colours, and a promise that is not kept fails the demonstration."""

from __future__ import annotations

import io

import pytest

from kesoku_actors.app.demo.narrator import WIDTH, Narrator
from kesoku_actors.app.demo.scenes import must
from kesoku_actors.app.demo.stage import DemoFailed
from kesoku_actors.protocol import DeltaKind


async def at_once(_seconds: float) -> None:
    """Do not wait."""


def narrator(*, is_coloured: bool = False) -> tuple[Narrator, io.StringIO]:
    out = io.StringIO()
    return Narrator(out=out, is_coloured=is_coloured, pause_s=9.0, sleep=at_once), out


def test_a_promise_that_is_not_kept_fails() -> None:
    must(True, "all is well")
    with pytest.raises(DemoFailed, match="did not happen: the tool ends"):
        must(False, "the tool ends")
    assert DemoFailed("x").exit_code == 1


async def test_colours_are_only_written_where_they_are_seen() -> None:
    for is_coloured in (False, True):
        told, out = narrator(is_coloured=is_coloured)
        await told.scene(1, 4, "Title", "Words.")
        told.heard("you", "Hello")
        told.kept("as promised")
        assert ("\x1b[" in out.getvalue()) is is_coloured


def test_a_streamed_text_stays_within_the_width_and_ends_before_what_comes_next() -> None:
    told, out = narrator()
    for _ in range(40):
        told.stream(DeltaKind.TEXT, "word\x1b ")
    told.heard("you", "stop")
    lines = out.getvalue().splitlines()
    assert all(len(line) <= WIDTH for line in lines)
    assert lines[-1].strip() == "you  stop"
    assert "\x1b" not in out.getvalue()


def test_a_thought_and_the_text_after_it_are_two_lines() -> None:
    told, out = narrator()
    told.stream(DeltaKind.THOUGHT, "Hm.")
    told.stream(DeltaKind.TEXT, "Well.")
    told.end_line()
    assert [line.split() for line in out.getvalue().splitlines()] == [["model", "Hm."], ["model", "Well."]]
