"""A one-shot chat has nobody who could say yes (T7): it denies at once, and names the setting."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Shell = Callable[..., tuple[int, str, str]]

CONFIG = """
[agent]
llm = "scripted"
[scripted]
scenario_path = "scenario.toml"
[tools]
approve = "risky"
[tools.rules]
{rule}
"""
SCENARIO = """
[[rules]]
when_result = ""
moves = [{ say = "I was told." }]
[[rules]]
when_said = ""
moves = [{ call = "run_shell_command", arguments = { command = "touch canary" } }]
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    (tmp_path / "config.toml").write_text(CONFIG.format(rule=""))
    return tmp_path


@pytest.mark.parametrize("line", ["$K chat -c config.toml 'Do it.'", "echo 'Do it.' | $K chat -c config.toml"])
def test_what_needs_a_yes_is_denied_and_told_on_the_error_output(shell: Shell, home: Path, line: str) -> None:
    code, out, err = shell(line)
    assert (code, out) == (0, "I was told.\n")
    assert 'run_shell_command was denied: [tools] approve = \\"risky\\"' in err
    assert not list(home.rglob("canary"))


def test_the_model_and_a_program_read_which_setting_it_was(shell: Shell, home: Path) -> None:
    code, out, _ = shell("$K chat -c config.toml --json 'Do it.'")
    assert code == 0
    rows = [event for event in map(json.loads, out.splitlines()) if event["event"] == "message"]
    (result,) = [row for row in rows if row["type"] == "tool_result"]
    assert (result["metadata"]["outcome"], result["metadata"]["reason"]) == ("error", "denied")
    assert '[tools] approve = "risky"' in result["content"]


def test_a_rule_lets_a_tool_run_unasked(shell: Shell, home: Path) -> None:
    (home / "config.toml").write_text(CONFIG.format(rule='run_shell_command = "never"'))
    assert shell("$K chat -c config.toml 'Do it.'")[0] == 0
    assert list(home.rglob("canary"))


def test_a_rule_for_no_tool_is_refused_before_anything_runs(shell: Shell, home: Path) -> None:
    (home / "config.toml").write_text(CONFIG.format(rule='run_shel_command = "never"'))
    code, out, err = shell("$K chat -c config.toml 'Do it.'")
    assert (code, out) == (78, "")
    assert "tools.rules.run_shel_command: unknown key, did you mean 'run_shell_command'?" in err
