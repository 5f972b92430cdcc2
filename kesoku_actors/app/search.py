"""Search as the composition gives it: where the index lies, and whose messages a model may search."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kesoku_actors.app.chat_request import TERMINAL
from kesoku_actors.log import Logger
from kesoku_actors.search import Search, search_tool
from kesoku_actors.store import StoreOptions, open_reader
from kesoku_actors.tools import ToolRegistry

PERSONAL: Final = frozenset({TERMINAL})
"""Chatbots whose channels all belong to one person: on the command line every session has a channel of its own."""


def index_path(db_path: Path) -> Path:
    """Return where the search index of a database lies: beside it, under a name that no other has."""
    return db_path.with_name(f"{db_path.stem}-search.db")


def search_over(store: StoreOptions, log: Logger) -> Search:
    """Return the search over a store, read the way `store` says."""
    return Search(path=index_path(store.path), reader=open_reader(store), log=log)


def add_search_tool(search: Search, registry: ToolRegistry) -> None:
    """Let models search what was said where they talk (P05)."""
    registry.add(search_tool(search, personal=PERSONAL), owner="kesoku")
