"""Serves the text of one module with a fault in it, in place of the file, to whoever imports it from then on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Final

from attrs import define

from scripts.seeded.table import PACKAGE, Mutant

HARNESS: Final = f"{PACKAGE}.harness"
"""What explores is no part of what is explored: it is the one package of ours that is loaded before a fault is in."""


class _Faulty(SourceFileLoader):
    """Loads a module from a text; no compiled file is read or written."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._source.encode(), self.get_filename(fullname))


@define(eq=False)
class _Finder(MetaPathFinder):
    module: str
    source: str

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None, "it is in the table, so its file is there"
        assert spec.origin is not None
        spec.loader = _Faulty(fullname, spec.origin, self.source)
        return spec


def put_in(mutant: Mutant) -> None:
    """Let the fault be in the program, which nothing of is loaded yet. Raises `NoSuchFault`."""
    assert not loaded(), f"{loaded()} are loaded already"
    sys.meta_path.insert(0, _Finder(mutant.module, mutant.source()))


def loaded() -> list[str]:
    """Return the modules of the program that are loaded, apart from its harness."""
    ours = (name for name in sys.modules if name.startswith(f"{PACKAGE}."))
    return sorted(name for name in ours if name != HARNESS and not name.startswith(f"{HARNESS}."))
