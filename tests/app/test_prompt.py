"""The prompt of a run, as the settings make it: whose identity, whose day, which skills."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from kesoku_actors.app.plan import prompt_layers
from kesoku_actors.app.settings import load_settings
from kesoku_actors.app.skills import skill_shelf
from kesoku_actors.errors import ConfigError
from kesoku_actors.prompt import PromptContext, PromptLayers
from kesoku_actors.protocol import Channel

CONTEXT = PromptContext(
    session_id="S",
    channel=Channel(chatbot_id="terminal", channel_id="1"),
    wall=1_700_000_000.0,  # 2023-11-14, 22:13 UTC
    has_tools=True,
    small_model=False,
    workspace=Path("/sessions/S"),
)


def layers(folder: Path, text: str = "") -> PromptLayers:
    (folder / "config.toml").write_text(text)
    settings = load_settings(folder / "config.toml", environ={})
    return prompt_layers(settings, skill_shelf(settings))


async def test_the_skills_are_named_once_they_were_read_and_again_when_one_comes(tmp_path: Path) -> None:
    found = layers(tmp_path)
    assert found.is_stale()
    await found.freshen()
    assert not found.is_stale()
    before = found.render(CONTEXT)
    assert "- csv-profile: Describe a CSV" in before
    assert before == found.render(evolve(CONTEXT, wall=CONTEXT.wall + 60))

    folder = tmp_path / "skills" / "tidy"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: tidy\ndescription: Tidies up.\n---\n")
    assert found.is_stale()
    await found.freshen()
    assert found.render(CONTEXT) == before.replace("\n\nCommands start", "\n- tidy: Tidies up.\n\nCommands start")


async def test_without_tools_or_with_little_room_skills_take_little(tmp_path: Path) -> None:
    found = layers(tmp_path)
    await found.freshen()
    assert "skill" not in found.render(evolve(CONTEXT, has_tools=False))
    small = found.render(evolve(CONTEXT, small_model=True))
    assert "csv-profile, repository-summary" in small
    assert "Describe a CSV" not in small


async def test_the_shipped_skills_can_be_left_out(tmp_path: Path) -> None:
    found = layers(tmp_path, "[skills]\nshipped = false\n")
    await found.freshen()
    assert "skill" not in found.render(CONTEXT)


def test_identity_and_day_come_from_the_settings(tmp_path: Path) -> None:
    text = '[agent]\nsystem_prompt = """\nYou are Ada\'s gardener.\nAnswer in German.\n"""\ntime_zone = "Asia/Tokyo"\n'
    said = layers(tmp_path, text).render(CONTEXT)
    assert said.startswith("You are Ada's gardener.\nAnswer in German.\n\nUse the tools")
    assert said.endswith("Today is Wednesday, 15 November 2023 (Asia/Tokyo).")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("system_prompt", '" "', "must not be empty"),
        ("system_prompt", r'"a\u001b[31m"', "must not hold control characters"),
        ("time_zone", '"Mars/Olympus"', "must be the name of a time zone"),
        ("time_zone", '"../../etc/passwd"', "must be the name of a time zone"),
        ("time_zone", '"/etc/localtime"', "must be the name of a time zone"),
        ("time_zone", '""', "must be the name of a time zone"),
        ("time_zone", '"Europe"', "must be the name of a time zone"),
    ],
)
def test_what_cannot_be_used_is_refused_at_its_key(tmp_path: Path, key: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError, match=rf"config\.toml:2: agent\.{key}: {words}"):
        layers(tmp_path, f"[agent]\n{key} = {value}\n")


def test_the_text_may_hold_tabs_and_windows_line_ends(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b'[agent]\r\nsystem_prompt = """\r\nYou are Ada.\r\n\tBe brief.\r\n"""\r\n')
    settings = load_settings(tmp_path / "config.toml", environ={})
    assert settings.agent.system_prompt == "You are Ada.\n\tBe brief.\n"
