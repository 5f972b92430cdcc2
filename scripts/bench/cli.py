"""Goal 17: how much processor time a command costs to start, against `python -c pass` in the same run.

Run `scripts/python -m scripts.bench.cli`. The processor time of a child is read when it ends, so
a busy machine disturbs it little. The entry point is what pip installs: it imports `main` and calls it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from scripts.bench.report import Row, row, show

ROUNDS: Final = 9
ROOT: Final = Path(__file__).resolve().parents[2]
ENTRY_POINT: Final = "import sys; from kesoku_actors.__main__ import main; sys.exit(main())"
COMMANDS: Final = (
    (("--help",), 1.5),
    (("--version",), 1.5),
    (("chat", "--help"), 7.0),
)


def rows() -> list[Row]:
    """Measure goal 17; takes about two seconds."""
    floor: list[float] = []
    costs: dict[tuple[str, ...], list[float]] = {arguments: [] for arguments, _ in COMMANDS}
    for _ in range(ROUNDS):
        floor.append(_least_processor_s("-c", "pass"))
        for arguments, found in costs.items():
            found.append(_least_processor_s("-c", ENTRY_POINT, *arguments))
    return [
        row(
            17, f"kesoku-actors {' '.join(arguments)} / python -c pass", limit=limit, ours=costs[arguments], floor=floor
        )
        for arguments, limit in COMMANDS
    ]


def _least_processor_s(*arguments: str) -> float:
    """Return the smaller cost of two starts: a cold cache or an interrupt can only add."""
    return min(_processor_s(arguments) for _ in range(2))


def _processor_s(arguments: tuple[str, ...]) -> float:
    child = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    """Print the rows; 0 when every goal is reached."""
    return 0 if show(rows()) else 1


if __name__ == "__main__":
    sys.exit(main())
