"""What a running daemon asks a model turn by turn goes on from what it asked before, whatever the model's wire."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve
from trio.testing import MockClock

from kesoku_actors.llm.kept_talk import KeptTalks
from kesoku_actors.llm.scripted import Call, Say

from ..llm.changing_sessions import WIRES, rows_made
from .house import at_home

TURNS = 12


@pytest.mark.parametrize("name", WIRES)
async def test_requests_of_a_session_are_gone_on_with_within_a_turn_and_between_turns(
    name: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    def look(place: str) -> str:
        """Look there."""
        return f"Nothing at {place}."

    turn = [(Call(name="look", arguments={"place": "home"}),), (Say(text="Nothing there."),)]
    async with at_home(tmp_path, turn * TURNS, tools=[look]) as home:
        for number in range(TURNS):
            await home.ended(await home.say(f"Look, for the time number {number}."))
        requests = home.model.requests
    assert len(requests) == 2 * TURNS
    assert len({id(request.kept) for request in requests}) == 1, "the session's, from turn to turn"
    kept = KeptTalks(shortest=0, compares=True)
    made = [rows_made(name, evolve(request, kept=kept)) for request in requests]
    assert len(requests[-1].history) > 4 * (TURNS - 1)
    assert max(made[4:]) <= 6, made
