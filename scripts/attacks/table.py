"""Run every attack in every profile and print what became of it, a row for each kind: `scripts/sandbox_table`.

DENY: never started. CONTAIN: ran and reached no canary. touched: reached one, which profile C does not promise to
prevent: it is a guard rail, and start says so. With --all each attack is shown. Exits with 1 where A or B touched one.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import trio

from kesoku_actors.tools.shell import NoSandbox, find_sandbox
from scripts.attacks.rows import ATTACKS
from scripts.attacks.trial import Fate, Profile, Result, attempt


async def results(profiles: Iterable[Profile]) -> list[Result]:
    """Attempt all, one after the other. Ends the program when there is no sandbox for profile B."""
    sandbox = None
    if Profile.SANDBOX in (chosen := tuple(profiles)):
        found = find_sandbox(network=False, hidden=(), search_path=os.environ["PATH"])
        if isinstance(found, NoSandbox):
            sys.exit(f"{found.reason}; {found.remedy}")
        sandbox = found
    done: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="attacks-") as top:
        for row, attacks in ATTACKS.items():
            for attack in attacks:
                for profile in chosen:
                    folder = Path(top, str(len(done)))
                    done.append(await attempt(row, attack, profile, sandbox=sandbox, folder=folder))
    return done


def cell(found: Iterable[Result]) -> str:
    """Return the fates of one row in one profile."""
    fates = Counter(f"{each.fate} {each.reached}" if each.reached else str(each.fate) for each in found)
    return ", ".join(f"{count} {fate}" for fate, count in fates.items())


def main() -> int:
    """Print the table and return the exit code."""
    done = trio.run(results, tuple(Profile))
    print(f"| row | {' | '.join(Profile)} |\n|---|---|---|---|")
    for row in ATTACKS:
        cells = (cell(each for each in done if (each.row, each.profile) == (row, profile)) for profile in Profile)
        print(f"| {row} | {' | '.join(cells)} |")
    if "--all" in sys.argv:
        for each in done:
            said = each.said.replace("\n", " / ")[:100]
            print(f"{each.profile[0]} {each.fate:8} {each.command!r}: {said}")
    broken = [each for each in done if each.profile is not Profile.BARE and each.fate is Fate.TOUCHED]
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
