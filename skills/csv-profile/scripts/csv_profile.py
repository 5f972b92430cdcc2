"""Describe the columns of a CSV file, and draw one of them as an SVG file. Standard library only.

The file is read once, a row at a time; of each column no more than `MOST_DISTINCT` different values and `MOST_NUMBERS`
numbers are kept, so memory is bounded whatever the size of the file.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from html import escape
from pathlib import Path

MOST_DISTINCT = 10_000
MOST_NUMBERS = 200_000
MOST_COLUMNS = 500
BARS = 20
NOTHING = {"", "na", "n/a", "null", "none", "-"}
YES_NO = {"true", "false", "yes", "no"}


class Column:
    """What is known of one column so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.filled = 0
        self.values: Counter[str] = Counter()
        self.overflow = False
        self.numbers: list[float] = []
        self.count = 0
        self.total = 0.0
        self.low = math.inf
        self.high = -math.inf
        self.kinds: Counter[str] = Counter()
        self.first = self.last = ""

    def take(self, cell: str) -> None:
        text = cell.strip()
        if text.lower() in NOTHING:
            return
        self.filled += 1
        kind = kind_of(text)
        self.kinds[kind] += 1
        if text in self.values or len(self.values) < MOST_DISTINCT:
            self.values[text] += 1
        else:
            self.overflow = True
        if kind == "number":
            number = float(text)
            self.count += 1
            self.total += number
            self.low, self.high = min(self.low, number), max(self.high, number)
            if len(self.numbers) < MOST_NUMBERS:
                self.numbers.append(number)
        elif kind == "date":
            self.first, self.last = min(self.first or text, text), max(self.last, text)

    @property
    def kind(self) -> str:
        if not self.kinds:
            return "empty"
        return next(iter(self.kinds)) if len(self.kinds) == 1 else "text"

    def extent(self) -> str:
        if self.kind == "number":
            return f"{self.low:.6g} to {self.high:.6g}, mean {self.total / self.count:.6g}"
        return f"{self.first} to {self.last}" if self.kind == "date" else ""

    def frequent(self) -> str:
        return ", ".join(f"{short(value, 24)} ({times})" for value, times in self.values.most_common(3))


def kind_of(text: str) -> str:
    """Return `number`, `date`, `yes/no` or `text`."""
    if text[0] in "+-.0123456789":
        try:
            if math.isfinite(float(text)) and "_" not in text:
                return "number"
        except ValueError:
            pass
        try:
            datetime.fromisoformat(text.replace("Z", "+00:00"))
            return "date"
        except ValueError:
            return "text"
    return "yes/no" if text.lower() in YES_NO else "text"


def short(text: str, length: int) -> str:
    """Return `text` on one line and cut to `length`, without signs that cannot be shown."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= length else line[: length - 1] + "…"


def open_text(path: Path) -> io.TextIOBase:
    """Open the file as UTF-8, or as Latin-1 when it is not."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        try:
            while file.read(1 << 20):
                pass
        except UnicodeDecodeError:
            return open(path, encoding="latin-1", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def delimiter_of(sample: str) -> str:
    """Return the separator that parts the lines of `sample` most often and most evenly."""
    lines = [line for line in sample.splitlines()[:50] if line.strip()]

    def score(sign: str) -> tuple[int, int]:
        counts = [len(row) for row in csv.reader(lines, delimiter=sign)]
        usual, times = Counter(counts).most_common(1)[0]
        return (times if usual > 1 else 0, usual)

    return max(",;\t|", key=score) if lines else ","


def profile(path: Path, delimiter: str | None) -> tuple[list[Column], int, int]:
    """Return the columns, how many rows there are, and how many of them do not fit the header."""
    csv.field_size_limit(1 << 24)
    with open_text(path) as file:
        sample = file.read(1 << 16)
        file.seek(0)
        rows: Iterator[list[str]] = csv.reader(file, delimiter=delimiter or delimiter_of(sample))
        header = next(rows, [])
        columns = [Column(name.strip() or f"column {place}") for place, name in enumerate(header, 1)][:MOST_COLUMNS]
        count = uneven = 0
        for row in rows:
            if not row:
                continue
            count += 1
            uneven += len(row) != len(header)
            for column, cell in zip(columns, row, strict=False):
                column.take(cell)
    return columns, count, uneven


def report(path: Path, columns: list[Column], count: int, uneven: int) -> str:
    """Return the profile as Markdown."""
    lines = [f"# {path.name}: {count} rows, {len(columns)} columns", ""]
    lines += ["| column | type | filled | distinct | range | frequent |", "| --- | --- | --- | --- | --- | --- |"]
    for column in columns:
        filled = f"{column.filled / count:.0%}" if count else "-"
        distinct = f"{len(column.values)}{'+' if column.overflow else ''}"
        cells = [short(column.name, 40), column.kind, filled, distinct, column.extent(), column.frequent()]
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    if uneven:
        lines += ["", f"Note: {uneven} rows have more or fewer cells than the header."]
    return "\n".join(lines)


def bars_of(column: Column) -> list[tuple[str, int]]:
    """Return labels and heights: a histogram of numbers, or the most frequent values."""
    if column.kind != "number":
        return column.values.most_common(BARS)
    low, high = min(column.numbers), max(column.numbers)
    number_of_bars = min(BARS, max(5, math.isqrt(len(column.numbers))))
    width = high / number_of_bars - low / number_of_bars  # apart, as their difference may be too large for a float
    if width == 0:
        return [(f"{low:.6g}", len(column.numbers))]
    places = Counter(min(number_of_bars - 1, int(number / width - low / width)) for number in column.numbers)
    return [(f"{low + place * width:.4g}", places[place]) for place in range(number_of_bars)]


def chart(column: Column) -> str:
    """Return an SVG picture of the column."""
    bars = bars_of(column)
    tallest, step, height = max(times for _, times in bars), 640 / len(bars), 260
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 400" font-family="sans-serif" font-size="11">',
        '<rect width="720" height="400" fill="#fff"/>',
        f'<text x="40" y="24" font-size="16">{escape(short(column.name, 60))}</text>',
    ]
    for place, (label, times) in enumerate(bars):
        x, tall = 40 + place * step, height * times / tallest
        middle = x + step / 2
        parts += [
            f'<rect x="{x:.1f}" y="{300 - tall:.1f}" width="{step * 0.9:.1f}" height="{tall:.1f}" fill="#4878a8">'
            f"<title>{escape(short(label, 60))}: {times}</title></rect>",
            f'<text x="{middle:.1f}" y="{295 - tall:.1f}" text-anchor="middle">{times}</text>',
            f'<text x="{middle:.1f}" y="315" text-anchor="end" transform="rotate(-45 {middle:.1f} 315)">'
            f"{escape(short(label, 14))}</text>",
        ]
    return "\n".join([*parts, '<path d="M40 300h640" stroke="#333"/>', "</svg>", ""])


def column_to_draw(columns: list[Column], name: str | None) -> Column:
    """Return the column called `name`, or the first of numbers, or the first. Raises `ValueError`."""
    filled = [column for column in columns if column.filled]
    if name is not None:
        filled = [column for column in filled if column.name == name]
    if not filled:
        raise ValueError(f"there is no column {name!r} with values" if name else "there is no column with values")
    return next((column for column in filled if column.kind == "number"), filled[0])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Describe the columns of a CSV file.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--delimiter", help="the separator, one character; found by itself otherwise")
    parser.add_argument("--chart", type=Path, metavar="FILE.svg", help="draw a column into this file")
    parser.add_argument("--column", help="the column to draw; the first one of numbers otherwise")
    options = parser.parse_args(arguments)
    try:
        columns, count, uneven = profile(options.file, options.delimiter)
        text = report(options.file, columns, count, uneven)
        if options.chart is not None:
            column = column_to_draw(columns, options.column)
            options.chart.write_text(chart(column), encoding="utf-8")
            text += f"\n\nA chart of the column {column.name!r} is in {options.chart}"
    except (OSError, ValueError, TypeError, csv.Error) as problem:
        sys.stderr.write(f"csv_profile: {options.file}: {problem}\n")
        return 1
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
