"""The program as a process in a home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PYTHON = Path(sys.executable)

Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment without keys, whose home and working folder is `tmp_path`."""
    return {
        "PATH": f"{PYTHON.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


@pytest.fixture
def shell(environ: dict[str, str]) -> Shell:
    """Run a line in a shell, where `$K` is the program, and return exit code, output and errors."""

    def shell(line: str, **changes: str) -> tuple[int, str, str]:
        done = subprocess.run(
            ["bash", "-c", line],
            # By name, as the shell splits what stands in $K and the path to Python may have spaces.
            env={**environ, "K": f"{PYTHON.name} -m kesoku_actors", **changes},
            cwd=environ["HOME"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    return shell
