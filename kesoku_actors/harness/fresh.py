"""A fresh Python for a module of the harness: the same interpreter, that finds what this one finds."""

from __future__ import annotations

import os
import sys


def fresh_python(module: str) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs a module in a fresh process, and its environment."""
    path = os.pathsep.join(dict.fromkeys(one or os.getcwd() for one in sys.path))
    return [sys.executable, "-W", "ignore", "-m", module], {**os.environ, "PYTHONPATH": path}
