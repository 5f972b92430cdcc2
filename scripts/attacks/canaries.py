"""The canaries of an attack, and what became of them."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from attrs import frozen

ROOT: Final = Path(__file__).resolve().parents[2]
SECRET: Final = "canary-of-a-file"
TOKEN: Final = "canary-of-a-variable"
_WHOLE: Final = "as it was"
_DAEMON: Final = """
import sys
from kesoku_actors.tools.shell import hide_environment
hide_environment()
print(flush=True)
sys.stdin.read()
"""


@frozen(kw_only=True)
class Canaries:
    """Files outside the workspace, a sink, and a program like ours."""

    outside: Path
    sink: socket.socket
    daemon: subprocess.Popen[bytes]

    def names(self) -> Mapping[str, str]:
        """Return what the commands are written with."""
        spoil = f"cp {self.outside}/secret {self.outside}/file"
        return {
            "outside": str(self.outside),
            "victim": f"{self.outside}/file",
            "secret": f"{self.outside}/secret",
            "config": f"{self.outside}/config.toml",
            "spoil": spoil,
            "read": f"cat {self.outside}/secret",
            "connect": "python3 -c 'import socket; "
            f'socket.create_connection(("127.0.0.1", {self.sink.getsockname()[1]}))\'',
            "base64": base64.b64encode(spoil.encode()).decode(),
            "daemon": str(self.daemon.pid),
            "marker": f"kesoku-stands-{os.getpid()}",
        }

    def touched(self, said: str) -> str | None:
        """Return which canary was reached, `said` being what the model reads; none when all are as they were."""
        found = {path.name: path.read_text() for path in self.outside.iterdir()}
        if found != _files():
            return "a file"
        if SECRET in said:
            return "the secret"
        if TOKEN in said:
            return "a variable"
        if "\ngained" in f"\n{said}":
            return "rights"
        if self.daemon.poll() is not None:
            return "the daemon"
        if any(ord(character) < 32 and character not in "\n\t" for character in said):
            return "the terminal"
        try:
            self.sink.accept()[0].close()
        except BlockingIOError:
            return None
        return "the sink"


def _files() -> Mapping[str, str]:
    return {"file": _WHOLE, "secret": SECRET, "config.toml": _WHOLE}


@contextmanager
def canaries(folder: Path, *, is_aimed_at_us: bool) -> Iterator[Canaries]:
    """Lay them out in `folder`. Where no attack is aimed at a program like ours, any program stands in for it."""
    folder.mkdir(exist_ok=True)
    for name, text in _files().items():
        (folder / name).write_text(text)
    with socket.create_server(("127.0.0.1", 0)) as sink:
        sink.setblocking(False)
        like_ours = [sys.executable, "-c", _DAEMON, f"kesoku-stands-{os.getpid()}"]
        daemon = subprocess.Popen(
            like_ours if is_aimed_at_us else ["cat"],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "API_TOKEN": TOKEN},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        with daemon:
            assert daemon.stdout is not None
            if is_aimed_at_us:
                daemon.stdout.readline()  # it has hidden what it was given
            try:
                yield Canaries(outside=folder, sink=sink, daemon=daemon)
            finally:
                daemon.send_signal(signal.SIGKILL)
