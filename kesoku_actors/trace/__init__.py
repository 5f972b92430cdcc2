"""The trace: a session as one HTML file, every turn a timeline, every inference with its request and its reply.

* `model`: what is shown, as values, and as JSON data
* `build`, `items`, `calls`, `exchanges`: made from what is stored and from the turn log
* `page`, `assets/`: drawn as HTML

All of it is pure; who has a store and a folder gives it what they hold.
"""

from kesoku_actors.trace.build import Price, Sources, build_trace
from kesoku_actors.trace.model import Tokens, Trace, trace_data
from kesoku_actors.trace.page import render_page

__all__ = ["Price", "Sources", "Tokens", "Trace", "build_trace", "render_page", "trace_data"]
