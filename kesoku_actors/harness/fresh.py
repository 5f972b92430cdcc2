"""A fresh Python for a module of the harness: the same interpreter, that finds what this one finds.

Invariant: it finds things in the same order, too. Here the harness was imported before the folder of a program came
first on the path; there, a file of that folder with the name of a standard module is in nobody's way either.
"""

from __future__ import annotations

import os
import sys
from typing import Final

_PROGRAM: Final = "import sys; path = {path!r}; sys.path += path; from {module} import main; sys.path[:] = path; main()"


def fresh_python(module: str) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs `main` of a module in a fresh process, and its environment."""
    path = list(dict.fromkeys(one or os.getcwd() for one in sys.path))
    program = _PROGRAM.format(path=path, module=module)
    return [sys.executable, "-P", "-W", "ignore", "-c", program], dict(os.environ)
