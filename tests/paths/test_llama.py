"""The `openai` provider against the genuine llama server, under a configuration of its own, on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from kesoku_actors.llm import local_server, weights

ROOT = Path(__file__).parents[2]
CONFIG = """
[agent]
llm = "openai"
[openai]
base_url = "{address}/v1"
model_name = "smollm2"
api_key = "sk-of-this-test"
"""


def test_the_openai_provider_talks_with_a_llama_server(tmp_path: Path) -> None:
    options = local_server.ServerOptions(
        model_path=str(weights.pull(progress=lambda _step, _fraction: None)),
        model_name="smollm2",
        hostname="127.0.0.1",
        key="sk-of-this-test",
        context_size=2048,
        threads=1,
        cache_ram_mib=64,
        sampling={"temp": 0.0},
        most_tokens=64,
    )
    server = subprocess.Popen(
        [sys.executable, local_server.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    with server:
        server.stdin.write(json.dumps(options) + "\n")
        server.stdin.flush()
        (tmp_path / "config.toml").write_text(CONFIG.format(address=server.stdout.readline().strip()))
        (tmp_path / "config.toml").chmod(0o600)
        chat = [sys.executable, "-m", "kesoku_actors", "chat", "-c", str(tmp_path / "config.toml"), "--json"]
        said = subprocess.run([*chat, "Say hello."], cwd=ROOT, capture_output=True, text=True, timeout=120)
        server.stdin.close()
        assert said.returncode == 0, said.stderr
    events = [json.loads(line) for line in said.stdout.splitlines()]
    [answer] = [event for event in events if event["event"] == "answer"]
    assert answer["text"].strip()
    assert events[-1]["state"] == "answered"
    assert events[-1]["tokens"] > 0
