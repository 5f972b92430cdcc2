"""The trace that is written in a talk, beside the event loop."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from attrs import evolve

from kesoku_actors.app.sections import ModelPrice
from kesoku_actors.app.settings import Settings
from kesoku_actors.app.trace import price_of, trace_file
from kesoku_actors.clock import Clock
from kesoku_actors.errors import NotFound
from kesoku_actors.llm.scripted import Say
from kesoku_actors.trace import Tokens
from tests.paths.house import at_home


async def test_it_lies_in_the_current_folder_under_the_name_of_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    workspace = evolve(Settings().workspace, sessions_dir=tmp_path / "sessions")
    write = partial(trace_file, settings=evolve(Settings(), workspace=workspace), clock=Clock())
    async with at_home(tmp_path, [(Say(text="Yes."),)]) as home:
        asked = await home.ended(await home.say("Hello"))
        path = await write(home.gateway.reader, asked.session_id)
        with pytest.raises(NotFound):
            await write(home.gateway.reader, "other")
    assert path == tmp_path / f"trace-{asked.session_id}.html"
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_cost_is_known_only_with_a_price_and_with_tokens() -> None:
    prices = {"m": ModelPrice(input=10.0, output=100.0, cached=1.0), "plain": ModelPrice(input=10.0, output=100.0)}
    tokens = Tokens(input=1_000_000, cached=500_000, output=10_000, is_known=True)
    assert price_of(prices, "m", tokens) == pytest.approx(5.0 + 0.5 + 1.0)
    assert price_of(prices, "plain", tokens) == pytest.approx(10.0 + 1.0)
    assert price_of(prices, "other", tokens) is None
    assert price_of(prices, "m", Tokens()) is None
