"""Measuring in a child process of its own: its memory and processor time are nobody else's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from attrs import frozen

ROOT = Path(__file__).resolve().parents[2]
_COMPILED: Final = {"PYTHONPYCACHEPREFIX": str(ROOT / ".cache" / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}
"""Modules are compiled once, as in an installed program, however the tree has just been edited."""


@frozen(kw_only=True)
class Child:
    """What a child said on its standard output, as JSON, and what it cost."""

    said: Any
    processor_s: float


def run_child(*arguments: str) -> Child:
    """Run Python with these arguments in the repository. Ends the program when the child fails."""
    environment = {**os.environ, **_COMPILED}
    child = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    said = child.stdout.read()
    child.stdout.close()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)} ended with {child.returncode}")
    return Child(said=json.loads(said or "null"), processor_s=usage.ru_utime + usage.ru_stime)


def resident_kib() -> float:
    """Return how much memory this process has resident."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024
