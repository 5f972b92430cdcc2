"""The child process that is the embedded model: the llama server of xllamacpp, nothing else.

Run by file name, not as a part of the package: it needs the standard library and xllamacpp only, so it is up in a
fraction of the time the package takes to import, and a crash of the native code takes nothing of ours with it.

The talk with the parent: the first line on stdin is a JSON object, the fields of `ServerOptions`; the key stands
there because every user of the machine can read the argument list. Then one line on stdout: the address. Then stdin
stays open, with nothing on it, for as long as the parent lives; its end is the order to leave, and it comes however
the parent died. (A parent-death signal would not do: it goes off when the *thread* that started this process ends,
and trio starts processes from worker threads that come and go.)
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
from typing import Any, TypedDict


class ServerOptions(TypedDict):
    """What the parent says on the first line of stdin."""

    model_path: str
    model_name: str
    hostname: str
    """A loopback address, or the path of the unix socket to make; the folder of a socket is removed at the end."""
    key: str
    context_size: int
    threads: int
    cache_ram_mib: int
    sampling: dict[str, float]
    """What to use where a request says nothing: names of the fields of xllamacpp's sampling parameters."""
    most_tokens: int
    """Tokens of one answer at most, -1 for as many as the context holds."""


def parameters(options: ServerOptions) -> Any:
    """Return the server's parameters. Raises `ImportError` without xllamacpp."""
    made = _xllamacpp().CommonParams()
    made.model.path = options["model_path"]
    made.model_alias = [options["model_name"]]  # otherwise every chunk carries the file's path
    made.hostnames = [options["hostname"]]
    made.port = 0
    made.api_keys = [options["key"]]
    made.n_ctx = options["context_size"]
    made.n_parallel = 1  # the context is divided among the slots
    made.cpuparams.n_threads = made.cpuparams_batch.n_threads = options["threads"]
    made.n_batch = made.n_ubatch = 64  # a cancel waits for the batch: 1 s at 64, 10 s and more at 2048
    made.cache_ram_mib = options["cache_ram_mib"]
    made.n_predict = options["most_tokens"]
    for name, value in options["sampling"].items():
        setattr(made.sampling, name, value)
    made.ui = False
    made.verbosity = 1  # errors only, on stderr: the parent quotes the first when the start fails
    return made


def _xllamacpp() -> Any:
    return importlib.import_module("xllamacpp")  # it has no types


def main() -> None:
    """Serve until stdin ends."""
    address = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nobody reads what native code may print on stdout; stderr is drained
    options: ServerOptions = json.loads(sys.stdin.buffer.readline())
    server = _xllamacpp().Server(parameters(options))
    print(server.listening_address, file=address, flush=True)
    while sys.stdin.buffer.read(4096):
        continue
    del server
    if options["hostname"].startswith("/"):
        shutil.rmtree(os.path.dirname(options["hostname"]), ignore_errors=True)


if __name__ == "__main__":
    main()
