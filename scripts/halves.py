"""Run the suite in two halves at once, on two processors; what each prints stays together.

The first half computes, the other one mostly waits for processes, sockets and disks, and is seen as it goes; the first
one's output follows. Exits as the half does that went wrong. `scripts/test` runs this.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

FIRST: Final = ("harness", "llm", "properties", "session")
"""Folders of `tests`; whatever else is there is in the other half."""


def main() -> int:
    """Run both and return the exit code."""
    tests = Path(__file__).resolve().parents[1] / "tests"
    places = sorted(place for place in tests.iterdir() if place.is_dir() or place.match("test_*.py"))
    others = [place for place in places if place.name not in {*FIRST, "__pycache__"}]
    command = [sys.executable, "-m", "pytest"]
    with TemporaryFile() as told:
        first = subprocess.Popen([*command, *(tests / name for name in FIRST)], stdout=told, stderr=told)
        try:
            others_ended = subprocess.run([*command, *others], check=False).returncode
        finally:
            first_ended = first.wait()
            told.seek(0)
            sys.stdout.flush()
            sys.stdout.buffer.write(told.read())
    return others_ended or first_ended


if __name__ == "__main__":
    sys.exit(main())
