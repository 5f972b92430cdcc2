"""The README's skill works as written: a person copies the two files, and the agent lists, uses and runs it."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

import tomlkit

from .source import ROOT
from .test_readme import blocks

MEETING = datetime.date(2100, 1, 1)


def test_the_skill_of_the_readme_is_listed_used_and_run(tmp_path: Path) -> None:
    [text] = [block for block in blocks("markdown") if "name: days-until" in block]
    [script] = [block for block in blocks("python") if "fromisoformat" in block]
    folder = tmp_path / "data" / "kesoku-actors" / "skills" / "days-until"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    (folder / "days_until.py").write_text(script)
    command = f"python3 {folder}/days_until.py {MEETING}"
    inferences = [
        [{"call": "list_skills"}, {"call": "use_skill", "arguments": {"skill_name": "days-until"}}],
        [{"call": "run_shell_command", "arguments": {"command": command}}],
        [{"say": "Done."}],
    ]
    (tmp_path / "scenario.toml").write_text(tomlkit.dumps({"inferences": inferences}))
    (folder.parents[1] / "config.toml").write_text(f'[scripted]\nscenario_path = "{tmp_path}/scenario.toml"\n')
    before = datetime.date.today()
    done = subprocess.run(
        [sys.executable, "-m", "kesoku_actors", "chat", "--llm", "scripted", "--json", "How long is it?"],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "XDG_DATA_HOME": str(tmp_path / "data"),
            "PYTHONPATH": str(ROOT),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    listed, used, ran = [event["content"] for event in events if event.get("type") == "tool_result"]
    assert {"name": "days-until", "tags": ["calendar"]}.items() <= json.loads(listed)["skills"][1].items()
    assert f"SKILL DIRECTORY: {folder}\n" in used
    assert "answer in one sentence with the number it prints" in used
    days = [(MEETING - day).days for day in (before, datetime.date.today())]
    assert ran.splitlines()[0] in map(str, days)
