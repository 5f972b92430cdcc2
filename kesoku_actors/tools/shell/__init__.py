"""The shell: one tool, `run_shell_command`, behind a policy.

* `tool`: the tool itself
* `asking`: what a person is asked about a command; pure
* `policy` `patterns`: what may run; pure
* `words`: the words of one plain command, for an allowlist; pure
* `readings`: every command that a script runs, from `grammar` `expansion` `scope` `feeding` `loose` (what its text
  says) and `unwrapping` `programs` `foreign` (what programs run in turn); pure
* `sandbox` `sandbox_trial` `steady`: a command inside bubblewrap, which is tried before it is trusted
* `limits`: what a command may take of the machine
* `cautions`: what a person should know of a policy
* `kernel`: what all of that needs of the system, which is a seam
* `process` `process_table` `ending`: a command as a process, started clean, read within bounds, ended whole
* `leftovers` `survivors`: what commands left running, in this life of the program and in earlier ones
* `privacy`: our own environment, out of a command's reach
"""

from kesoku_actors.tools.shell.cautions import warnings
from kesoku_actors.tools.shell.kernel import MACHINE, Kernel
from kesoku_actors.tools.shell.leftovers import Leftovers
from kesoku_actors.tools.shell.patterns import Pattern, PatternRefused
from kesoku_actors.tools.shell.policy import DEFAULT_PATH, Mode, ShellPolicy
from kesoku_actors.tools.shell.privacy import hide_environment
from kesoku_actors.tools.shell.sandbox import Sandbox
from kesoku_actors.tools.shell.sandbox_trial import NoSandbox, find_sandbox
from kesoku_actors.tools.shell.survivors import DeadCall, Survivors, end_survivors
from kesoku_actors.tools.shell.tool import ShellOptions, add_shell_tool, clean_environment, shell_tool

__all__ = [
    "DEFAULT_PATH",
    "MACHINE",
    "DeadCall",
    "Kernel",
    "Leftovers",
    "Mode",
    "NoSandbox",
    "Pattern",
    "PatternRefused",
    "Sandbox",
    "ShellOptions",
    "ShellPolicy",
    "Survivors",
    "add_shell_tool",
    "clean_environment",
    "end_survivors",
    "find_sandbox",
    "hide_environment",
    "shell_tool",
    "warnings",
]
