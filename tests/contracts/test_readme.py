"""The README does what it says: its commands run as written, its configurations load."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from kesoku_actors.llm.weights import models_directory

from .source import ROOT

MAIN_COMMANDS = ['scripts/kesoku-actors chat "Say hello in one sentence."', "scripts/test"]
KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "DISCORD_TOKEN")


def blocks(language: str) -> list[str]:
    """Return the code blocks of the README in this language."""
    text = (ROOT / "README.rst").read_text(encoding="utf-8")
    found = re.findall(rf"^\.\. code-block:: {language}\n\n((?:    .*\n|\n)+)", text, re.MULTILINE)
    return [dedent(block).strip() + "\n" for block in found]


def scenario_file() -> str:
    """Return the scenario that the README has its readers write."""
    [scenario] = re.findall(
        r"^    inferences = \[\n(?:    .*\n|\n)+", (ROOT / "README.rst").read_text("utf-8"), re.MULTILINE
    )
    return dedent(scenario)


@pytest.fixture
def reader(tmp_path):
    """A folder like a checkout, for someone without keys; the environment is the one that runs this test."""
    script = tmp_path / "scripts" / "kesoku-actors"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -P -m kesoku_actors "$@"\n')
    script.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name not in KEYS}
    homes = {name: str(tmp_path / name) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    cache = {"XDG_CACHE_HOME": str(models_directory().parents[1])}  # the model is fetched once, not for every test

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path,
            env=environment | homes | cache,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


def test_the_two_main_commands_stand_on_the_first_screen():
    screen = (ROOT / "README.rst").read_text(encoding="utf-8").splitlines()[:50]
    assert [line.strip() for line in screen if line.strip() in MAIN_COMMANDS] == MAIN_COMMANDS
    for command in MAIN_COMMANDS:
        assert os.access(ROOT / command.split()[0], os.X_OK)


def test_every_other_command_runs_as_written(reader):
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]
    assert len(commands) > 5
    for command in commands:
        done = reader(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert done.stdout.strip(), f"{command} said nothing"


def test_the_tools_of_ones_own_are_called_as_written(reader, tmp_path):
    [tools] = [block for block in blocks("python") if "def convert" in block]
    [configuration] = [block for block in blocks("toml") if "my_tools.py" in block]
    calls = (
        '{ call = "convert", arguments = { celsius = "21" } }',
        '{ call = "keep", arguments = { text = "It is warm.", day = "2024-05-31" } }',
    )
    Path(tmp_path / "my_tools.py").write_text(tools)
    Path(tmp_path / "my_tools.py").chmod(0o644)
    Path(tmp_path / "scenario.toml").write_text(f'inferences = [[{", ".join(calls)}], [{{ say = "Done." }}]]')
    Path(tmp_path / "config.toml").write_text(f'{configuration}\n[scripted]\nscenario_path = "scenario.toml"\n')
    listed = reader("scripts/kesoku-actors tools list -c config.toml")
    assert "convert(celsius, to=...)  [my_tools.py]\n    Convert a temperature." in listed.stdout
    assert (listed.returncode, listed.stderr) == (0, "")
    talk = reader('scripts/kesoku-actors chat -c config.toml --llm scripted --json "How warm is it?"')
    assert talk.returncode == 0, talk.stderr
    events = [json.loads(line) for line in talk.stdout.splitlines()]
    assert [event["content"] for event in events if event.get("type") == "tool_result"] == ["69.8 fahrenheit", "kept"]
    [diary] = tmp_path.glob("sessions/*/diary.txt")
    assert diary.read_text() == "2024-05-31: It is warm.\n"


def test_the_scenario_is_played_as_written(reader, tmp_path):
    [configuration] = [block for block in blocks("toml") if "scenario_path" in block]
    Path(tmp_path / "scenario.toml").write_text(scenario_file())
    Path(tmp_path / "config.toml").write_text(configuration)
    for said, answered in (("How is the weather?", "It rains."), ("Which year is it?", "That was the year.")):
        talk = reader(f'scripts/kesoku-actors chat -c config.toml --llm scripted "{said}"')
        assert (talk.returncode, talk.stdout.strip().endswith(answered)) == (0, True), talk.stderr


def test_every_configuration_is_accepted(reader, tmp_path):
    configurations = blocks("toml")
    assert configurations
    Path(tmp_path / "scenario.toml").write_text(scenario_file())
    for text in configurations:
        Path(tmp_path / "config.toml").write_text(text)
        done = reader("scripts/kesoku-actors check -c config.toml")
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


def test_the_last_line_of_the_sample_is_what_the_program_says(reader):
    [sample] = [line.strip() for line in (ROOT / "README.rst").read_text("utf-8").splitlines() if line.endswith("⚡")]
    talk = reader('scripts/kesoku-actors chat --llm scripted "Show me what you can do."')
    told = [line.rpartition(" · ")[0] for line in (sample, talk.stderr.splitlines()[-1])]  # all but the seconds
    assert told[0] == told[1]
