"""The shape of the source: sizes, docstrings, public names, and what may not be written."""

from __future__ import annotations

import ast
import importlib
import statistics
import subprocess
import sys
from collections.abc import Iterator

import pytest

from .source import PRODUCT, ROOT, Module, modules

LIMIT = 400
LARGER = {
    "kesoku_actors/store/port.py": "one vocabulary: every command of the store beside its reply and its rows",
}
"""Modules over the limit, each with the reason why a cut would go through a noun."""

CATCHES_ALL = {
    "kesoku_actors/cli/run.py": "the last place before the shell: one line and an exit code, whatever happened",
    "kesoku_actors/harness/origin.py": "a person's file may raise anything when it is imported; its line is told",
    "kesoku_actors/harness/control/control.py": "how a program under test ends is what a run is for",
}
"""Modules outside the actor kernel that catch everything for good, each with the reason."""

TOP_LEVEL = {"pyproject.toml", "README.rst", "kesoku_actors", "tests", "scripts", "config", "skills"}

READS_THE_CLOCK = {
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "sleep"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "uuid": {"uuid1", "uuid4", "uuid7"},
    "random": {"random", "randint", "choice", "choices", "shuffle", "uniform", "randbytes", "getrandbits", "randrange"},
}
"""Time, ids and randomness are arguments (`kesoku_actors.clock`), so that every run can be replayed."""


def test_no_module_is_larger_than_a_reader_can_hold(record_property, capsys):
    sizes = {module.where: module.lines for module in modules()}
    median = statistics.median(size for where, size in sizes.items() if not where.endswith("__init__.py"))
    record_property("median_lines", median)
    with capsys.disabled():
        sys.stdout.write(f"\n{len(sizes)} modules, {sum(sizes.values())} lines, median {median:g}\n")
    assert {where: size for where, size in sizes.items() if size > LIMIT and where not in LARGER} == {}


def test_every_exemption_from_the_limit_is_still_needed():
    assert {module.where for module in modules() if module.lines > LIMIT} >= set(LARGER)


def test_every_module_says_first_what_it_is():
    def wrong(module: Module) -> bool:
        return not module.headline.rstrip().endswith((".", ":", "!", "?"))

    assert [module.where for module in modules() if wrong(module)] == []


@pytest.mark.parametrize(
    "package", [module for module in modules() if module.is_package], ids=lambda module: module.name
)
def test_a_package_names_exactly_what_it_offers(package):
    lazy = [inner for node in package.tree.body if isinstance(node, ast.If) for inner in node.body]
    offered = {
        alias.asname or alias.name
        for node in [*package.tree.body, *lazy]
        if isinstance(node, ast.ImportFrom) and node.module != "__future__" and node.module != "typing"
        for alias in node.names
    }
    if offered:
        names = importlib.import_module(package.name).__all__
        assert len(names) == len(set(names))
        assert set(names) == offered


def test_only_the_actor_kernel_catches_everything_for_good():
    def broken(module: Module) -> Iterator[str]:
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.ExceptHandler):
                continue
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            names = {item.id if isinstance(item, ast.Name) else "" if item is None else "." for item in caught}
            raises_on = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
            if names & {"", "Exception", "BaseException"} and not raises_on:
                yield f"{module.where}:{node.lineno}"

    outside = [module for module in modules() if not module.name.startswith(f"{PRODUCT}.actors")]
    outside = [module for module in outside if module.where not in CATCHES_ALL]
    assert [line for module in outside for line in broken(module)] == []


def test_time_ids_and_randomness_come_as_arguments():
    def broken(module: Module) -> Iterator[str]:
        for node in ast.walk(module.tree):
            match node:
                case ast.Attribute(value=ast.Name(id=owner), attr=name) if name in READS_THE_CLOCK.get(owner, ()):
                    yield f"{module.where}:{node.lineno} {owner}.{name}"
                case ast.ImportFrom(module=owner, names=names):
                    for alias in names:
                        if alias.name in READS_THE_CLOCK.get(owner or "", ()):
                            yield f"{module.where}:{node.lineno} {owner}.{alias.name}"

    outside = [module for module in modules() if module.name != f"{PRODUCT}.clock"]
    assert [line for module in outside for line in broken(module)] == []


def test_the_worker_judges_no_status_and_no_role():
    def judged(node: ast.AST) -> bool:
        return any(
            isinstance(inner, ast.Attribute)
            and isinstance(inner.value, ast.Name)
            and inner.value.id in ("Status", "Role")
            for inner in ast.walk(node)
        )

    parts = tuple(f"{PRODUCT}.session.{part}" for part in ("worker", "hands", "inlet"))
    workers = [module for module in modules() if module.name.startswith(parts)]
    broken = [
        f"{module.where}:{node.lineno}"
        for module in workers
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Compare | ast.MatchValue) and judged(node)
    ]
    assert workers
    assert broken == []


def test_the_top_level_holds_only_what_belongs_there():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    top = {line.split("/")[0] for line in listed.splitlines()}
    assert {name for name in top if not name.startswith(".")} <= TOP_LEVEL


def test_the_package_is_typed():
    assert (ROOT / PRODUCT / "py.typed").is_file()
