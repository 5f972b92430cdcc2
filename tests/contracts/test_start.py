"""The command line starts fast: help and version import nothing heavy."""

from __future__ import annotations

import subprocess
import sys

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
