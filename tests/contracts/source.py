"""The source of the product as data, for the tests beside this file: modules, their imports, their docstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = "kesoku_actors"


@frozen(kw_only=True)
class Import:
    """One imported module or name. `target` is absolute; for `from a import b` it is `a`, and `name` is `b`."""

    target: str
    name: str | None
    line: int
    for_types_only: bool

    @property
    def modules(self) -> tuple[str, ...]:
        """What the import may mean: the module itself, or a module inside it."""
        return (self.target,) if self.name is None else (self.target, f"{self.target}.{self.name}")


@frozen(kw_only=True)
class Module:
    """One source file of ours."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def where(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def headline(self) -> str:
        """The first line of the docstring, or nothing."""
        return (ast.get_docstring(self.tree) or "").partition("\n")[0]

    def imports(self) -> Iterator[Import]:
        """Every import, wherever it stands, also inside functions."""
        typed = {id(inner) for node in ast.walk(self.tree) if _is_type_checking(node) for inner in ast.walk(node)}
        for node in ast.walk(self.tree):
            match node:
                case ast.Import(names=names):
                    for alias in names:
                        yield Import(target=alias.name, name=None, line=node.lineno, for_types_only=id(node) in typed)
                case ast.ImportFrom(names=names):
                    for alias in names:
                        yield Import(
                            target=self._absolute(node),
                            name=alias.name,
                            line=node.lineno,
                            for_types_only=id(node) in typed,
                        )

    def _absolute(self, node: ast.ImportFrom) -> str:
        if node.level == 0:
            return node.module or ""
        package = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        above = package[: len(package) - (node.level - 1)]
        return ".".join([*above, node.module] if node.module else above)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the product, by name."""
    found = []
    for path in sorted((ROOT / PRODUCT).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        found.append(Module(name=name, path=path, text=text, tree=ast.parse(text)))
    return tuple(found)
