"""The terminal: what `chat "prompt"` shows, on a terminal, in a pipe, to a program.

* `terminal`: subscription, deliveries, the end of the turn
* `render`: events -> what a person should see (pure)
* `view`: what a view is; `plain`, `json_view`, `rich_view` are views, `kinds` chooses
* `markdown`, `cards`, `redraw`, `harmless`: the parts of the rich view (only they import rich)
* `summary`: the last line; `output`: where it all is written
"""

from kesoku_actors.adapters.terminal.kinds import ViewKind, fitting_kind, make_view
from kesoku_actors.adapters.terminal.output import DescriptorOutput, Output, stream_output
from kesoku_actors.adapters.terminal.summary import ChatOutcome, ChatState, TurnSummary, summary_line
from kesoku_actors.adapters.terminal.terminal import TerminalPort, run_terminal
from kesoku_actors.adapters.terminal.view import Leaf, View

__all__ = [
    "ChatOutcome",
    "ChatState",
    "DescriptorOutput",
    "Leaf",
    "Output",
    "TerminalPort",
    "TurnSummary",
    "View",
    "ViewKind",
    "fitting_kind",
    "make_view",
    "run_terminal",
    "stream_output",
    "summary_line",
]
