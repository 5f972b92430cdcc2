"""Who may import whom: the rows of the house, read from the imports."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .source import PRODUCT, Module, modules

ROWS = {
    "values": -1,
    "": 0,
    "errors": 0,
    "log": 0,
    "invocation": 0,
    "clock": 0,
    "protocol": 1,
    "actors": 2,
    "files": 2,
    "context": 3,
    "store": 4,
    "llm": 4,
    "tools": 4,
    "skills": 4,
    "prompt": 4,
    "gateway": 5,
    "turnlog": 5,
    "search": 6,
    "session": 6,
    "trace": 6,
    "adapters": 7,
    "server": 7,
    "client": 7,
    "plugins": 7,
    "service": 7,
    "app": 8,
    "harness": 8,
    "cli": 9,
    "__main__": 10,
}
"""Row of every part; a part imports from lower rows and from itself. The harness imports nothing of ours."""

NEVER_MEET = ("adapters",)
"""Parts whose sub-packages do not know each other."""

IMPURE = frozenset(
    {"trio", "apsw", "httpx2", "socket", "subprocess", "threading", "asyncio", "discord", "anthropic", "google"}
)
"""What a module that calls itself pure does not import."""


def part(module: str) -> str:
    """Return the part of the house a module stands in: `kesoku_actors.llm.port` is in `llm`."""
    return f"{module}.".split(".")[1]


def test_every_part_has_a_row():
    assert {part(module.name) for module in modules()} <= set(ROWS)


def test_a_module_imports_only_from_lower_rows_or_its_own_part():
    def broken(module: Module) -> Iterator[str]:
        here = part(module.name)
        for found in module.imports():
            there = part(found.target if found.target != PRODUCT else f"{PRODUCT}.{found.name}")
            if (
                found.target.split(".")[0] != PRODUCT
                or there == here
                or (there not in ROWS and found.target == PRODUCT)
            ):
                continue
            if here == "harness" or ROWS[there] >= ROWS[here]:
                yield f"{module.where}:{found.line} imports {found.target}"

    assert [line for module in modules() for line in broken(module)] == []


def test_across_parts_only_public_faces_are_used():
    def broken(module: Module) -> Iterator[str]:
        for found in module.imports():
            if found.target.split(".")[0] != PRODUCT or part(found.target) == part(module.name):
                continue
            private = [word for word in [*found.target.split("."), found.name or ""] if word.startswith("_")]
            if private and private != ["__version__"]:
                yield f"{module.where}:{found.line} reaches for {private[0]} of {found.target}"

    assert [line for module in modules() for line in broken(module)] == []


@pytest.mark.parametrize("family", NEVER_MEET)
def test_siblings_never_meet(family):
    def child(name: str) -> str | None:
        words = name.split(".")
        packages = {module.name for module in modules() if module.is_package}
        own = ".".join(words[:3])
        return own if words[1:2] == [family] and own in packages and len(words) > 2 else None

    broken = [
        f"{module.where}:{found.line} imports {found.target}"
        for module in modules()
        for found in module.imports()
        if (here := child(module.name)) and (there := child(found.target)) and here != there
    ]
    assert broken == []


def test_a_module_that_calls_itself_pure_imports_no_input_or_output():
    broken = [
        f"{module.where}:{found.line} imports {found.target}"
        for module in modules()
        if module.headline.endswith("Pure.") or "Pure" in module.headline.split(". ")[1:]
        for found in module.imports()
        if not found.for_types_only and found.target.split(".")[0] in IMPURE
    ]
    assert broken == []
