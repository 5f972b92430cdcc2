"""The command line starts fast: help and version import nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .source import ROOT

HEAVY = {
    "trio",
    "rich",
    "attrs",
    "attr",
    "click",
    "discord",
    "google",
    "anthropic",
    "httpx2",
    "apsw",
    "tomlkit",
    "asyncio",
}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(option):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "kesoku_actors", option],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "kesoku_actors" in imported
    assert imported & HEAVY == set()
    assert done.stdout.strip()


SDKS = {"google", "anthropic"}
CHAT = '[agent]\nllm = "scripted"\nfailover = ["claude", "gemini"]\n[claude]\napi_key = "k"\n[gemini]\napi_key = "k"\n'
IMPORTING = """
import json, sys, threading, time

seen = {}

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("anthropic", "google"):
            seen.setdefault(threading.current_thread() is threading.main_thread(), name)

sys.meta_path.insert(0, Finder())
import trio
from kesoku_actors.llm.classify import Source
from kesoku_actors.llm.NAME import KINDAccess, KINDModel
from kesoku_actors.log import Logger

log = Logger(sink=lambda entry: None, wall=time.time)
model = KINDModel(
    source=Source(provider="NAME"), model="NAME-3", access=KINDAccess(api_key="k"), log=log, wall=time.time
)

async def main():
    assert not seen, seen
    await model.warm()
    await model.aclose()

trio.run(main)
print(json.dumps(sorted(seen)))
"""


@pytest.mark.parametrize(
    "arguments", [("chat", "hello"), ("chat", "-l"), ("history", "list"), ("check",), ("tools", "list")]
)
def test_no_command_imports_a_sdk_that_it_does_not_ask(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Nor does one that might fail over to it."""
    (tmp_path / "config.toml").write_text(CHAT)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "kesoku_actors", *arguments, "-c", str(tmp_path / "config.toml")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "kesoku_actors" in imported
    assert imported & SDKS == set()


OURS = "kesoku_actors."
ANSWERING = {
    *(OURS + name for name in ("trace", "app.trace", "app.demo", "app.talk", "app.tool_listing", "store.alone")),
    *(OURS + name for name in ("store.archive", "store.archiving", "tools.shell.readings", "app.history.export_lines")),
    *("rich", "prompt_toolkit", "tree_sitter", "tree_sitter_bash", "h11", "httpx2", "xllamacpp", "asyncio"),
    *("email", "statistics", "importlib.resources", "re2"),
}
"""What an answer without a command does not need."""
LOOKING_BACK = {
    *(OURS + name for name in ("app.plan", "app.house", "app.prelude", "gateway", "session", "tools", "search")),
    *(OURS + name for name in ("turnlog", "skills", "prompt", "llm.gate", "store.alone")),
    *("ruamel", "re2", "apsw.fts5", "tree_sitter", "rich", "prompt_toolkit", "asyncio"),
}
"""What nobody needs who only reads what was said."""


@pytest.mark.parametrize(
    ("arguments", "banned"),
    [
        (("chat", "hello"), ANSWERING),
        (("history", "list"), LOOKING_BACK),
        (("history", "show", "last"), LOOKING_BACK - {OURS + "turnlog"}),
        (("trace", "last", "--json"), LOOKING_BACK - {OURS + "turnlog"}),
    ],
)
def test_a_command_imports_only_what_it_needs(
    tmp_path: Path, arguments: tuple[str, ...], banned: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "scenario.toml").write_text('repeat = true\ninferences = [[{ say = "Hello." }]]\n')
    (tmp_path / "config.toml").write_text('[agent]\nllm = "scripted"\n[scripted]\nscenario_path = "scenario.toml"\n')
    kesoku = [sys.executable, "-X", "importtime", "-m", "kesoku_actors"]
    for command in (("chat", "hello"), arguments):
        done = subprocess.run(
            [*kesoku, *command, "-c", str(tmp_path / "config.toml")],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}
    assert OURS + "store" in imported
    within = {name for name in imported if any(name == each or name.startswith(f"{each}.") for each in banned)}
    assert within == set()


@pytest.mark.parametrize(("name", "kind"), [("claude", "Claude"), ("gemini", "Gemini")])
def test_a_sdk_is_imported_off_the_thread_of_the_event_loop(name: str, kind: str) -> None:
    source = IMPORTING.replace("KIND", kind).replace("NAME", name)
    done = subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[false]\n", "only by other threads than the main one"
