"""Goals 18 and 20: processor time until the daemon is ready on an empty store, and its memory then.

The floor imports what no daemon on this stack can do without. Ours is the tree as the settings' defaults compose it,
in a child process of its own; memory needs /proc. Run `scripts/python -m scripts.bench.start`.
"""

from __future__ import annotations

import sys
from typing import Final

from scripts.bench.children import run_child
from scripts.bench.report import Row, row, show

ROUNDS: Final = 7
_IMPORTS: Final = "import trio, apsw, attrs, cattrs"
_FLOOR: Final = f"{_IMPORTS}; from scripts.bench.children import resident_kib; print(resident_kib())"


def rows() -> list[Row]:
    """Measure goals 18 and 20; takes about ten seconds."""
    programs = (_FLOOR, "from scripts.bench.serving import serve; serve()")
    for program in programs:
        run_child("-c", program)  # the first compiles what it imports
    rounds = [[run_child("-c", program) for program in programs] for _ in range(ROUNDS)]
    floor, ours = zip(*rounds, strict=True)
    return [
        row(
            18,
            "start to ready / imports of trio, apsw, attrs",
            limit=1.8,
            ours=[child.processor_s for child in ours],
            floor=[child.processor_s for child in floor],
        ),
        row(
            20,
            "memory when ready / of the imports",
            limit=1.6,
            ours=[float(child.said) for child in ours],
            floor=[float(child.said) for child in floor],
        ),
    ]


def main() -> int:
    """Print the rows; 0 when every goal is reached."""
    return 0 if show(rows()) else 1


if __name__ == "__main__":
    sys.exit(main())
