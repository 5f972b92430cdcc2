"""The skills of a run: a catalog that is read again when something in its folders changed.

Looking is a few `stat` calls and may stand on the event loop; reading waits for a disk and for the YAML library, and
belongs in a thread. The catalog is one value, replaced whole: a reader in another thread sees the old or the new one.
"""

from __future__ import annotations

from pathlib import Path

from attrs import field

from kesoku_actors.skills.catalog import Catalog, catalog_of
from kesoku_actors.skills.folders import Mark, look, read_roots
from kesoku_actors.values import define


@define(kw_only=True, eq=False)
class Shelf:
    """Folders of skills and what they held when they were last read. The first root with a name has it."""

    roots: tuple[Path, ...]
    host: str
    """As `host_platform` names it."""
    _catalog: Catalog = field(factory=Catalog, init=False)
    _seen: frozenset[Mark] | None = field(default=None, init=False)

    @property
    def catalog(self) -> Catalog:
        """What was read last; nothing before the first reading."""
        return self._catalog

    def is_stale(self) -> bool:
        """Return whether something changed since the last reading."""
        return look(self.roots) != self._seen

    def read(self) -> Catalog:
        """Return the catalog as it is now, read again if need be."""
        seen = look(self.roots)  # before the reading: what changes meanwhile is read next time
        if seen != self._seen:
            self._catalog = catalog_of(read_roots(self.roots), self.host)
            self._seen = seen
        return self._catalog
