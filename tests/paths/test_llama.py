"""The `openai` provider against the genuine llama server, under a configuration of its own, on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from .llama import KEY, llama

ROOT = Path(__file__).parents[2]
CONFIG = """
[agent]
llm = "openai"
[openai]
base_url = "{address}/v1"
model_name = "smollm2"
api_key = "{key}"
"""


def test_the_openai_provider_talks_with_a_llama_server(tmp_path: Path) -> None:
    with llama(most_tokens=64) as address:
        (tmp_path / "config.toml").write_text(CONFIG.format(address=address, key=KEY))
        (tmp_path / "config.toml").chmod(0o600)
        chat = [sys.executable, "-m", "kesoku_actors", "chat", "-c", str(tmp_path / "config.toml"), "--json"]
        said = subprocess.run([*chat, "Say hello."], cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert said.returncode == 0, said.stderr
    events = [json.loads(line) for line in said.stdout.splitlines()]
    [answer] = [event for event in events if event["event"] == "answer"]
    assert answer["text"].strip()
    assert events[-1]["state"] == "answered"
    assert events[-1]["tokens"] > 0
