"""The genuine llama server in a process of its own, as any server that somebody else runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kesoku_actors.llm import local_server, weights

KEY = "sk-of-this-test"


@contextmanager
def llama(*, most_tokens: int) -> Iterator[str]:
    """Run it with one slot; give its address."""
    options = local_server.ServerOptions(
        model_path=str(weights.pull(progress=lambda _step, _fraction: None)),
        model_name="smollm2",
        hostname="127.0.0.1",
        key=KEY,
        context_size=4096,
        threads=1,
        cache_ram_mib=64,
        sampling={"temp": 0.0},
        most_tokens=most_tokens,
    )
    server = subprocess.Popen(
        [sys.executable, local_server.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    with server:
        server.stdin.write(json.dumps(options) + "\n")
        server.stdin.flush()
        yield server.stdout.readline().strip()
        server.stdin.close()
