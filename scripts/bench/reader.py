"""Reports of planted bugs for somebody who has not seen their source, and the key to score the answers by.

    scripts/reader_test [--reports N] [--seed N] [--into FOLDER]

Each report is what `kesoku-actors check` prints, as `01.txt` and so on, of bugs of different causes that the seed
draws. The source says in comments what races; such comments are taken out of the lines a report shows, and a bug is
left out when its report shows a line on which the program and its twin without the bug differ. Names are as they are.

A reader is asked, for each report: which two tasks race, on which line, and what is to be changed? `key.txt` holds the
tasks, the lines and the story of each bug. An answer is right when it names two of the tasks and a line of the key, or
one beside it (a line of the key is where the gap is; the lines around it are what it is between).
"""

from __future__ import annotations

import argparse
import linecache
import random
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from attrs import frozen

from kesoku_actors.harness import explore
from kesoku_actors.harness.report import text
from kesoku_actors.harness.zoo import BUGS, Bug

_ANSWER: Final = re.compile(r"\s*# race:.*")
_TWIN: Final = re.compile(r"\bfixed\b")
_RUNS: Final = 20_000
_SECONDS: Final = 60.0


@frozen
class Sheet:
    """A report and its answer."""

    bug: Bug
    lines: tuple[str, ...]
    report: str


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/reader_test", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--reports", type=int, default=10, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="draws the bugs")
    parser.add_argument("--into", type=Path, default=Path("reader-test"), metavar="FOLDER")
    options = parser.parse_args(arguments)
    options.into.mkdir(parents=True, exist_ok=True)
    key: list[str] = []
    for number, sheet in enumerate(sheets(options.reports, options.seed), 1):
        (options.into / f"{number:02}.txt").write_text(f"{sheet.report}\n", encoding="utf-8")
        key.append(answer(number, sheet))
        sys.stdout.write(f"{number:02}.txt\n")
    (options.into / "key.txt").write_text("\n\n".join(key) + "\n", encoding="utf-8")
    return 0


def sheets(count: int, seed: int) -> Iterator[Sheet]:
    """Yield so many reports, of different causes as long as there are others."""
    drawn, lines = list(BUGS), {bug: bug.lines for bug in BUGS}
    random.Random(seed).shuffle(drawn)
    causes: set[str] = set()
    later: list[Bug] = []
    todo = iter(drawn)
    for bug in _with_seconds(todo, later):
        if count <= 0:
            return
        if bug.cause in causes and bug not in later:
            later.append(bug)
            continue
        report = report_of(bug, seed)
        if report is not None:
            causes.add(bug.cause)
            count -= 1
            yield Sheet(bug, lines[bug], report)


def _with_seconds(first: Iterator[Bug], later: list[Bug]) -> Iterator[Bug]:
    yield from first
    yield from list(later)


def report_of(bug: Bug, seed: int) -> str | None:
    """Return the report of a bug without what tells the answer; none when it cannot be told without."""
    without_answers(bug)
    found = explore(bug.program(), runs=_RUNS, seconds=_SECONDS, strategy="portfolio2", seed=seed).counterexample
    if found is None:
        return None
    report = text(found)
    return None if _TWIN.search(report) else report


def without_answers(bug: Bug) -> None:
    """Let reports show the lines of a bug's file without the comments that say what races."""
    file = bug.make.__code__.co_filename
    lines = [_ANSWER.sub("", line) for line in linecache.getlines(file)]
    linecache.cache[file] = (sum(map(len, lines)), None, lines, file)  # without a time it is never read again


def answer(number: int, sheet: Sheet) -> str:
    """Return the entry of the key for one report."""
    bug = sheet.bug
    tasks = ", ".join(sorted(set(bug.races)))
    lines = ", ".join(sheet.lines)
    return f"{number:02}  {bug.name}\n    tasks: {tasks}\n    lines: {lines}\n    cause: {bug.cause}\n    {bug.story}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
