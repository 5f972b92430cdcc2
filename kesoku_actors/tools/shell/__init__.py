"""The shell: one tool, `run_shell_command`, behind a policy.

* `tool`: the tool itself
* `policy` `words` `readings` `programs` `patterns`: what may run; pure
* `cautions`: what a person should know of a policy
* `process` `process_table` `ending`: a command as a process, started clean, read within bounds, ended whole
* `survivors`: what an earlier life of the program left running
* `privacy`: our own environment, out of a command's reach
"""

from kesoku_actors.tools.shell.cautions import warnings
from kesoku_actors.tools.shell.patterns import PatternRefused
from kesoku_actors.tools.shell.policy import DEFAULT_PATH, Mode, ShellPolicy
from kesoku_actors.tools.shell.privacy import hide_environment
from kesoku_actors.tools.shell.survivors import DeadCall, Survivors, end_survivors
from kesoku_actors.tools.shell.tool import ShellOptions, clean_environment, shell_tool

__all__ = [
    "DEFAULT_PATH",
    "DeadCall",
    "Mode",
    "PatternRefused",
    "ShellOptions",
    "ShellPolicy",
    "Survivors",
    "clean_environment",
    "end_survivors",
    "hide_environment",
    "shell_tool",
    "warnings",
]
