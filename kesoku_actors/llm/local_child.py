"""One life of the embedded model's server, as a task: from the start of the process to its end.

Invariants:

* The socket lies in a folder of mode 0700 made for this life, as the socket itself can be opened by everybody. Where
  there are no unix sockets, or the path would be too long for one, it is a port of the loopback address. Either way
  the server asks for a random key, which is never an argument and never in the environment.
* The process has its own session: Ctrl-C at the terminal stops a turn and not the model.
* The task ends when the process does, and the process when the task does: asked by the end of its stdin, after
  `END_GRACE_S` killed. If this whole program is killed, the end of stdin comes by itself.
* Nothing here blocks the event loop: a start takes one to two seconds, all of it outside.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, final

import trio

from kesoku_actors.llm import local_server
from kesoku_actors.llm.port import ProviderError, Remedy
from kesoku_actors.values import define, frozen

END_GRACE_S: Final = 2.0
_DEATH_S: Final = 5.0
"""A killed process that is still there then hangs in the kernel, on a disk say; the program does not wait for it."""
_LONGEST_SOCKET_PATH: Final = 100
"""Bytes; the kernels' own limits are 104 and 108."""
_KEPT_WORDS: Final = 4096
_LONGEST_ADDRESS: Final = 4096
_ENVIRONMENT: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "USERPROFILE", "APPDATA"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CUDA_VISIBLE_DEVICES"),
    }
)
"""What the child may know of the environment: nothing that could be a secret of ours."""


@frozen(kw_only=True)
class ChildOptions:
    """What the server is started with."""

    model_path: Path
    model_name: str
    context_size: int
    threads: int
    cache_ram_mib: int
    sampling: dict[str, float]
    most_tokens: int


@final
class Running:
    """A server that listens, until `ended` is set; then `obituary` says how it died."""

    __slots__ = ("base_url", "ended", "key", "obituary", "pid", "socket_path")

    def __init__(self, *, pid: int, key: str, base_url: str, socket_path: str | None) -> None:
        self.pid = pid
        self.key = key
        self.base_url = base_url
        """Of the HTTP API, without `/v1`; its host means nothing where there is a `socket_path`."""
        self.socket_path = socket_path
        self.ended = trio.Event()
        self.obituary = ""


@define
class Words:
    """What the child said on stderr: the first bytes and the last ones, `_KEPT_WORDS` of each at most."""

    first: bytes = b""
    last: bytes = b""


async def run_server(options: ChildOptions, *, task_status: trio.TaskStatus[Running]) -> str:
    """Start a server, report it once it listens, and return its obituary when it has died.

    Raises `ProviderError` when it dies before it listens, with the first error it printed.
    """
    with _hostname() as hostname:
        process = await trio.lowlevel.open_process(
            # By file name and without the working folder on the path: nothing of ours nor of the user's is imported.
            [sys.executable, "-P", local_server.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={name: value for name, value in os.environ.items() if name in _ENVIRONMENT},
        )
        key = secrets.token_urlsafe(32)  # not from the injected randomness: a key must not follow from a seed
        words = Words()
        running: Running | None = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_listen, process, words)
                if address := await _introduce(process, options, hostname, key):
                    running = _running(process.pid, key, address)
                    task_status.started(running)
                await process.wait()
        finally:
            with trio.CancelScope(shield=True):
                await _end(process)
            if running is not None:
                running.obituary = _obituary(process.returncode, words)
                running.ended.set()
        if running is None:
            raise ProviderError(
                f"the local model {options.model_path} could not be started: {_obituary(process.returncode, words)}",
                remedy=Remedy.TELL,
                kind="start",
            )
        return running.obituary


async def _introduce(process: trio.Process, options: ChildOptions, hostname: str, key: str) -> str:
    """Tell the child what it is to be; return its address, or nothing when it died instead."""
    assert process.stdin is not None
    assert process.stdout is not None
    introduction: local_server.ServerOptions = {
        "model_path": str(options.model_path),
        "model_name": options.model_name,
        "hostname": hostname,
        "key": key,
        "context_size": options.context_size,
        "threads": options.threads,
        "cache_ram_mib": options.cache_ram_mib,
        "sampling": options.sampling,
        "most_tokens": options.most_tokens,
    }
    try:
        await process.stdin.send_all(json.dumps(introduction).encode() + b"\n")
    except trio.BrokenResourceError:
        return ""
    line = b""
    while not line.endswith(b"\n") and len(line) < _LONGEST_ADDRESS:
        chunk = await process.stdout.receive_some(_LONGEST_ADDRESS)
        if not chunk:
            return ""
        line += chunk
    return line.decode().strip()


def _running(pid: int, key: str, address: str) -> Running:
    path = address.removeprefix("unix://")
    if path == address:
        return Running(pid=pid, key=key, base_url=address, socket_path=None)
    return Running(pid=pid, key=key, base_url="http://local", socket_path=path)


async def _listen(process: trio.Process, words: Words) -> None:
    assert process.stderr is not None
    async for chunk in process.stderr:
        room = _KEPT_WORDS - len(words.first)
        words.first += chunk[:room]
        words.last = (words.last + chunk[room:])[-_KEPT_WORDS:]


async def _end(process: trio.Process) -> None:
    """End the process: ask, then kill; the caller shields. Takes `END_GRACE_S` and `_DEATH_S` at most."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            await stream.aclose()
    with trio.move_on_after(END_GRACE_S):
        await process.wait()
    if process.returncode is None:
        process.kill()
        with trio.move_on_after(_DEATH_S):
            await process.wait()
    if process.stderr is not None:
        await process.stderr.aclose()


def _obituary(returncode: int | None, words: Words) -> str:
    lines = (words.first + words.last).decode(errors="replace").splitlines()
    # llama.cpp marks its errors with an E between two spaces; the first one names the cause, the others follow from it.
    marked = [line.partition(" E ")[2].strip() for line in lines if " E " in line]
    cause = marked[0] if marked else next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
    return f"{cause} ({_how(returncode)})"


def _how(returncode: int | None) -> str:
    if returncode is None:
        return "killed, but it has not ended"
    return f"killed by signal {-returncode}" if returncode < 0 else f"exit code {returncode}"


@contextmanager
def _hostname() -> Iterator[str]:
    """Yield where the server is to listen: the path of a socket in a folder of its own, else the loopback address."""
    parents = (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir()) if hasattr(socket, "AF_UNIX") else ()
    for parent in filter(None, parents):
        try:
            folder = tempfile.TemporaryDirectory(prefix="kesoku-", dir=parent, ignore_cleanup_errors=True)  # 0700
        except OSError:
            continue  # a runtime folder that is missing or not ours
        with folder as path:
            if len(os.fsencode(path)) + len("/model.sock") <= _LONGEST_SOCKET_PATH:
                yield os.path.join(path, "model.sock")
                return
    yield "127.0.0.1"
