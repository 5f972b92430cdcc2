"""Tools: the registry of callables, their schemas, the actor that runs calls, the shell.

* `port`: calls, outcomes, events, and the `Journal` the actor needs
* `registry` `schema` `docstrings`: a callable as a tool; pure
* `annotations` `shapes` (`scalars` `choices` `containers` `records`): what an argument looks like, and what becomes of
  what a model sends; pure
* `runner` `options` `board` `execution` `threads`: the actor and its face `Tools`, slots, one call carried out
* `binding`: the arguments of a call, checked; pure
* `approval` `asking`: which calls wait for a person's yes, and the wait
* `jobs` `job_tools`: calls that go on behind their results, and the tools to deal with them
* `results` `output` `whole` `spool`: what a tool said, as text, made fit to be stored and shown; the whole of it in a
  file
* `shell`: the tool `run_shell_command`; `files`: `read_file`, `write_file`, `edit_file`; `modules`: a person's own
"""

from kesoku_actors.tools.approval import ApprovalRules, Approve
from kesoku_actors.tools.board import Ending
from kesoku_actors.tools.job_tools import JOB_TOOLS, add_job_tools
from kesoku_actors.tools.jobs import lost_job
from kesoku_actors.tools.options import DEADLINE_S, SHUTDOWN_GRACE_S, ToolOptions, ToolStatistics
from kesoku_actors.tools.output import OUTPUT_CHARS, harmless, head_and_tail
from kesoku_actors.tools.port import (
    AwaitingApproval,
    Journal,
    NewJob,
    RunningCall,
    Settled,
    Sink,
    Started,
    ToolCall,
    ToolContext,
    ToolEvent,
    ToolOutcome,
)
from kesoku_actors.tools.registry import Asking, DuplicateTool, Preview, Tool, ToolRegistry
from kesoku_actors.tools.runner import Tools
from kesoku_actors.tools.schema import InvalidTool
from kesoku_actors.tools.shapes import InvalidArgument

__all__ = [
    "DEADLINE_S",
    "JOB_TOOLS",
    "OUTPUT_CHARS",
    "SHUTDOWN_GRACE_S",
    "ApprovalRules",
    "Approve",
    "Asking",
    "AwaitingApproval",
    "DuplicateTool",
    "Ending",
    "InvalidArgument",
    "InvalidTool",
    "Journal",
    "NewJob",
    "Preview",
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
    "add_job_tools",
    "harmless",
    "head_and_tail",
    "lost_job",
]
