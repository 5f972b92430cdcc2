"""Which models the settings make ready, and what is missing to the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesoku_actors.app.models import provider_registry
from kesoku_actors.app.settings import load_settings
from kesoku_actors.clock import real_world
from kesoku_actors.llm.port import Limits
from kesoku_actors.log import Logger


@pytest.mark.parametrize(
    ("config", "missing"),
    [
        ("[gemini]", "no key is set"),
        ('[gemini]\nproject_id = "p"', "no key is set"),
        ('[gemini]\nauth_mode = "vertex"\nproject_id = "p"', None),
        ('[gemini]\nauth_mode = "vertex"', None),
        ("[claude]", "no key is set"),
        ('[claude]\nauth_mode = "api_key"\nproject_id = "p"', "no key is set"),
        ('[claude]\nproject_id = "p"', None),
        ('[claude]\nauth_mode = "vertex"', None),
    ],
)
def test_vertex_needs_no_project_where_credentials_may_name_one(
    tmp_path: Path, config: str, missing: str | None
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(config)
    world = real_world()
    settings = load_settings(path, environ={})
    registry = provider_registry(settings, world, Logger(sink=lambda _entry: None, wall=world.clock.wall))
    name = config[1:7]
    assert {factory.name: factory.missing() for factory in registry.factories()}[name] == missing


@pytest.mark.parametrize("name", ["gemini", "claude", "openai"])
def test_a_service_may_be_silent_for_a_minute_and_then_for_three_quarters_of_one(tmp_path: Path, name: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f'[{name}]\napi_key = "k"\n')
    world = real_world()
    settings = load_settings(path, environ={})
    registry = provider_registry(settings, world, Logger(sink=lambda _entry: None, wall=world.clock.wall))
    assert registry.choose(name).provider.limits == Limits(first_byte_s=60.0, idle_s=45.0, concurrency=8)
