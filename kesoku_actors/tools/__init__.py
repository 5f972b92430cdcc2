"""Tools: the registry of callables, their schemas, the actor that runs calls, the shell.

* `port`: calls, outcomes, events, and the `Journal` the actor needs
* `registry` `schema` `docstrings`: a callable as a tool; pure
* `annotations` `shapes` (`scalars` `choices` `containers` `records`): what an argument looks like, and what becomes of
  what a model sends; pure
* `runner` `board` `execution` `threads`: the actor and its face `Tools`, slots, one call carried out
* `results` `output` `whole`: what a tool said, as text, made fit to be stored and shown; the whole of a long output in a file
* `shell`: the tool `run_shell_command`; `files`: `read_file`, `write_file`, `edit_file`; `modules`: a person's own
"""

from kesoku_actors.tools.output import OUTPUT_CHARS, harmless, head_and_tail
from kesoku_actors.tools.port import (
    AwaitingApproval,
    Journal,
    RunningCall,
    Settled,
    Sink,
    Started,
    ToolCall,
    ToolContext,
    ToolEvent,
    ToolOutcome,
)
from kesoku_actors.tools.registry import DuplicateTool, Tool, ToolRegistry
from kesoku_actors.tools.runner import DEADLINE_S, SHUTDOWN_GRACE_S, ToolOptions, Tools, ToolStatistics
from kesoku_actors.tools.schema import InvalidTool
from kesoku_actors.tools.shapes import InvalidArgument

__all__ = [
    "DEADLINE_S",
    "OUTPUT_CHARS",
    "SHUTDOWN_GRACE_S",
    "AwaitingApproval",
    "DuplicateTool",
    "InvalidArgument",
    "InvalidTool",
    "Journal",
    "RunningCall",
    "Settled",
    "Sink",
    "Started",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolEvent",
    "ToolOptions",
    "ToolOutcome",
    "ToolRegistry",
    "ToolStatistics",
    "Tools",
    "harmless",
    "head_and_tail",
]
