"""Run the measurements and hold each against its goal: a ratio to a floor of the same run, never a time.

    scripts/bench/run [--only NAME]... [--long] [--json]

Every module beside this file with a function `rows()` is one measurement; NAME is the module's. --long adds what takes
minutes (`long_rows()`). Prints a table, or JSON with --json; progress goes to standard error. A verdict in parentheses
stands beside the durability by which the goal is judged. Exits with 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from time import monotonic

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from scripts.bench.report import Row, show  # noqa: E402  (the root of the repository has just become importable)

Measure = Callable[[], list[Row]]


def measurements(only: Sequence[str], *, long: bool) -> Mapping[str, Measure]:
    """Return what is to be measured, by name; of some modules a long part too.

    Ends the program when a name of `only` is no module here.
    """
    names = sorted(path.stem for path in HERE.glob("*.py"))
    if unknown := set(only) - set(names):
        sys.exit(f"no measurement {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    modules = {name: import_module(f"scripts.bench.{name}") for name in only or names}
    found = {name: module.rows for name, module in modules.items() if hasattr(module, "rows")}
    if long:
        found |= {f"{name}, long": each.long_rows for name, each in modules.items() if hasattr(each, "long_rows")}
    return found


def measured(chosen: Mapping[str, Measure]) -> Iterator[Row]:
    """Measure one after the other and say on standard error which one is under way."""
    begun = monotonic()
    for number, (name, measure) in enumerate(chosen.items(), start=1):
        print(f"[{number}/{len(chosen)}] {name} (after {monotonic() - begun:.0f} s)", file=sys.stderr, flush=True)
        yield from measure()


def as_data(row: Row) -> dict[str, object]:
    """Return `row` as JSON data."""
    ratio, spread = round(row.ratio, 3), round(row.spread, 3)
    data = {"goal": row.goal, "name": row.name, "ratio": ratio, "limit": row.limit, "spread": spread}
    return {**data, "verdict": row.verdict}


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this one; may be repeated")
    parser.add_argument("--long", action="store_true", help="also what takes minutes")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows = measured(measurements(options.only, long=options.long))
    if not options.json:
        return 0 if show(rows) else 1
    found = list(rows)
    print(json.dumps([as_data(row) for row in found], indent=2))
    return 0 if all(row.reached for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
