"""Goal 37: how long the event loop stands still for a request that brings ten mebibytes of pictures.

A task on the loop asks to be woken every two milliseconds; how late it is then is how long everybody waits. The floor
is the bound itself, 50 ms. The pictures are loaded, looked through, made part of the request, checked, written and
sent; the server is a process of its own that reads everything and answers. Wall time: what else runs on the machine
counts too.

    scripts/python -m scripts.bench.pictures
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time
from typing import Final

import trio
from attrs import evolve

from kesoku_actors.llm.classify import Source
from kesoku_actors.llm.claude import ClaudeAccess, ClaudeModel
from kesoku_actors.llm.gemini import GeminiAccess, GeminiModel
from kesoku_actors.llm.port import Request
from kesoku_actors.log import Logger
from scripts.bench.children import ROOT
from scripts.bench.report import Row, show
from scripts.bench.stalls import longest_stall, stall_rows
from tests.llm.examples import DATE_TOOL, asking, ignore, said
from tests.llm.pictures import picture
from tests.llm.test_media_files import with_files
from tests.wire import claude_server, gemini_server

_PICTURES: Final = 4
_EDGE: Final = 936
"""Pixels: 2.5 MiB a picture that cannot be packed."""
_ANSWERS: Final = {
    "claude": claude_server.answering(claude_server.text("Four.")),
    "gemini": gemini_server.answering(gemini_server.text("Four.")),
}


def swallow(name: str) -> None:
    """Read every request that comes and answer it, until the end of the input."""
    (said_then,) = [part for part in _ANSWERS[name].parts if isinstance(part, bytes)]
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(said_then)}\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as stream:
                while line := stream.readline():
                    length = 0
                    while line.strip():
                        field, _, value = line.partition(b":")
                        length = int(value) if field.strip().lower() == b"content-length" else length
                        line = stream.readline()
                    stream.read(length)
                    connection.sendall(head.encode() + said_then)


@contextmanager
def swallowing(name: str) -> Iterator[str]:
    """Run that in a process of its own; give its address."""
    script = f"from scripts.bench.pictures import swallow; swallow({name!r})"
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.kill()


def stall(name: str) -> None:
    """Ask a model about the pictures and say how long the loop stood still at most, in seconds."""
    with TemporaryDirectory() as folder, swallowing(name) as origin:
        paths = [f"{number}.png" for number in range(_PICTURES)]
        for path in paths:
            Path(folder, path).write_bytes(picture(_EDGE, _EDGE, noisy=True))
        request = asking(with_files(said(1, "What do they show?"), *paths), tools=(DATE_TOOL,), workspace=Path(folder))
        print(json.dumps(trio.run(_stall, _model(name, origin), request)))


def _model(name: str, origin: str) -> ClaudeModel | GeminiModel:
    log, source = Logger(sink=lambda _entry: None, wall=time), Source(provider=name)
    if name == "claude":
        to_claude = ClaudeAccess(api_key=claude_server.KEY, base_url=origin)
        return ClaudeModel(source=source, model=claude_server.MODEL, access=to_claude, log=log, wall=time)
    to_gemini = GeminiAccess(api_key=gemini_server.KEY, base_url=origin)
    return GeminiModel(source=source, model=gemini_server.MODEL, access=to_gemini, log=log, wall=time)


async def _stall(model: ClaudeModel | GeminiModel, request: Request) -> float:
    await model.infer(evolve(request, workspace=None), ignore)
    stood_still = await longest_stall(lambda: model.infer(request, ignore))
    await model.aclose()
    return stood_still


def rows() -> list[Row]:
    """Measure both providers; takes about half a minute."""
    return stall_rows(37, "loop stall for 10 MiB of pictures, {}", "pictures", _ANSWERS)


if __name__ == "__main__":
    sys.exit(0 if show(rows()) else 1)
