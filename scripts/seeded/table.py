"""The seeded faults of the daemon, as `tests/properties/mutants.toml` lists them, and the texts they make.

Invariants: each fault is of a rule of the contract and is to be noticed by one property, which is named; its `old` text
stands exactly once in its file, and what is made of it is Python that differs. The files themselves are never changed.
"""

from __future__ import annotations

import ast
import random
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from attrs import field, frozen

ROOT: Final = Path(__file__).resolve().parents[2]
TABLE: Final = ROOT / "tests" / "properties" / "mutants.toml"
DAEMON: Final = ROOT / "tests" / "properties" / "daemon"
"""Where the properties are."""
PACKAGE: Final = "kesoku_actors"


class NoSuchFault(Exception):
    """A fault of the table does not fit the program any more."""


@frozen(kw_only=True)
class Mutant:
    """A seeded fault."""

    rule: str
    test: str
    """The property that notices it, as module and name: `test_messages.test_m5_...` of `tests/properties/daemon`."""
    file: str
    """Below the package."""
    fault: str
    """What it is, in one line."""
    old: str = field(repr=False)
    new: str = field(repr=False)
    number: int = 0
    """Of its rule, from 1."""

    @property
    def name(self) -> str:
        """What it is called in reports."""
        return f"{self.rule}.{self.number}"

    @property
    def module(self) -> str:
        """The module that it is in."""
        return ".".join([PACKAGE, *Path(self.file).with_suffix("").parts])

    def source(self, root: Path = ROOT) -> str:
        """Return the text of its module with the fault in it. Raises `NoSuchFault`."""
        before = (root / PACKAGE / self.file).read_text(encoding="utf-8")
        if (count := before.count(self.old)) != 1:
            raise NoSuchFault(f"{self.name}: its old text stands {count} times in {self.file}")
        after = before.replace(self.old, self.new)
        try:
            is_same = ast.dump(ast.parse(after)) == ast.dump(ast.parse(before))
        except SyntaxError as error:
            raise NoSuchFault(f"{self.name}: {self.file} is no Python with it: {error}") from error
        if is_same:
            raise NoSuchFault(f"{self.name}: it changes nothing in {self.file}")
        return after


def read_table(path: Path = TABLE) -> tuple[Mutant, ...]:
    """Return the faults in the order of the table."""
    counts = defaultdict[str, int](int)
    mutants = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
        counts[entry["rule"]] += 1
        mutants.append(Mutant(test=entry.pop("property"), number=counts[entry["rule"]], **entry))
    return tuple(mutants)


def one_of_each_rule(mutants: Sequence[Mutant], seed: int) -> tuple[Mutant, ...]:
    """Draw a fault of every rule."""
    rng, of_rule = random.Random(seed), defaultdict[str, list[Mutant]](list)
    for mutant in mutants:
        of_rule[mutant.rule].append(mutant)
    return tuple(rng.choice(some) for some in of_rule.values())


@frozen(kw_only=True)
class Property:
    """A property that is explored."""

    test: str
    """Module and name."""
    is_drawn: bool
    """Whether Hypothesis draws its inputs; else it is of one script."""


def explored_properties() -> list[Property]:
    """Return the properties that are explored, without importing them."""
    return [
        Property(test=f"{path.stem}.{node.name}", is_drawn=bool(node.args.defaults or node.args.kw_defaults))
        for path in sorted(DAEMON.glob("test_*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test_") and node.decorator_list
    ]


def properties() -> list[str]:
    """Return their names."""
    return [each.test for each in explored_properties()]
