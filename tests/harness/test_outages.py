"""Reports of worlds that go wrong: told in the program's lines, by the race and not by the cleaning up behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kesoku_actors.harness import explore
from kesoku_actors.harness.counterexample import Counterexample
from kesoku_actors.harness.report import text
from kesoku_actors.harness.world import World
from tests.harness import outages


def found_in(program: Callable[[World], Awaitable[None]]) -> Counterexample:
    counterexample = explore(program, runs=2000).counterexample
    assert counterexample is not None
    return counterexample


@pytest.fixture(scope="module")
def election() -> Counterexample:
    return found_in(outages.election)


def test_a_race_over_the_network_is_told_by_what_the_two_do_and_not_by_the_end(election: Counterexample) -> None:
    one, other = election.story.witnesses
    assert {"self.has_voted" in one.what, "self.has_voted" in other.what} == {True}
    assert {one.lane.rpartition("/")[2], other.lane.rpartition("/")[2]} & {"a stands", "b stands"}
    assert "cancel" not in election.story.summary


def test_what_goes_over_a_connection_is_told_as_such(election: Counterexample) -> None:
    said = [row.what for row in election.story.failing.doings]
    assert any("sends to connection" in one for one in said)
    assert any("receives from connection" in one for one in said)
    assert not any("event" in one for one in said)


@pytest.mark.parametrize(
    ("program", "line", "drawn_at"),
    [
        (outages.mailed_twice_as_the_power_goes, "while not await world.life(_mail, world, mails", set()),
        (outages.mailed_twice_as_it_crashes, "world.crash()", {"outages.py"}),
    ],
)
def test_a_crash_is_told_in_the_lines_of_the_program(
    program: Callable[[World], Awaitable[None]], line: str, drawn_at: set[str]
) -> None:
    found = found_in(program)
    story = found.story
    cut, crash = story.witnesses
    assert crash.source.startswith(line)
    assert {Path(one.site.file).name for one in story.witnesses if one.site is not None} == {"outages.py"}
    assert (cut.source, cut.lane in story.summary) == ("await trio.lowlevel.checkpoint()", True)
    assert "ends by a crash" in story.summary
    assert "world.py" not in text(found)
    [row] = [row for row in story.failing.doings if row.is_witness and row.lane == crash.lane]
    assert (set() if row.site is None else {Path(row.site.file).name}) == drawn_at
