"""Search over what was said: an index beside the store, which nothing else depends on.

* `search`: the face: keeps the index up to date, finds messages
* `actor`: the indexer, behind everything else
* `tool`: what a model may find, and where
* `index`: the file with FTS5; `query`: what a person types; `excerpt`: what is shown of a message; the last two pure
"""

from kesoku_actors.search.actor import LAST_S, search_actor
from kesoku_actors.search.index import EVERYWHERE, IndexUnusable, Scope
from kesoku_actors.search.search import Hit, Search
from kesoku_actors.search.tool import search_tool

__all__ = [
    "EVERYWHERE",
    "LAST_S",
    "Hit",
    "IndexUnusable",
    "Scope",
    "Search",
    "search_actor",
    "search_tool",
]
