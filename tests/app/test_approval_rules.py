"""From settings to who is asked about which calls (T7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesoku_actors.app.approval import approval_rules, check_rules
from kesoku_actors.app.plan import tool_registry
from kesoku_actors.app.settings import Settings, load_settings
from kesoku_actors.app.shelter import UNSHELTERED
from kesoku_actors.app.skills import skill_shelf
from kesoku_actors.errors import ConfigError
from kesoku_actors.protocol import Channel
from kesoku_actors.tools import ToolRegistry

TEXT = """
[tools]
approve = "risky"
approve_within_s = 60.0
[tools.rules]
read_file = "always"
write_file = "never"
[[discord.channels]]
channels = ["17", "18"]
approve = "always"
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "config.toml").write_text(TEXT)
    return load_settings(tmp_path / "config.toml", environ={})


def registry_of(settings: Settings) -> ToolRegistry:
    return tool_registry(settings, skill_shelf(settings), UNSHELTERED)


def test_commands_and_writing_are_risky_and_rules_stand_above(settings: Settings) -> None:
    rules, registry = approval_rules(settings, can_ask=True), registry_of(settings)
    tools = [tool for name in registry.names() if (tool := registry.find(name)) is not None]
    asked = {tool.name for tool in tools if rules.needs_yes(tool, None)}
    assert asked == {"run_shell_command", "edit_file", "read_file"}
    assert rules.within_s == 60.0


def test_a_channel_has_its_own_setting(settings: Settings) -> None:
    rules, registry = approval_rules(settings, can_ask=True), registry_of(settings)
    strict, other = (Channel(chatbot_id="discord", channel_id=name) for name in ("17", "99"))
    tool = registry.find("list_skills")
    assert tool is not None
    assert (rules.needs_yes(tool, strict), rules.needs_yes(tool, other)) == (True, False)


def test_a_rule_for_a_tool_that_is_not_there_is_refused_and_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[tools.rules]\nrun_shel_command = "always"\njob_stop = "always"\n')
    settings = load_settings(tmp_path / "config.toml", environ={})
    with pytest.raises(
        ConfigError, match=r"tools\.rules\.run_shel_command: unknown key, did you mean 'run_shell_command'"
    ):
        check_rules(settings, registry_of(settings))
