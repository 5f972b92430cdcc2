"""What a person is asked about a command (T7): nothing that is refused anyway; for the session, its programs. Pure.

A yes for the session covers later commands of the same programs, of all that a line runs. It cannot be given where
somebody cannot tell what runs, nor for a line that may write a file by redirection: that says no program's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kesoku_actors.protocol import Outcome
from kesoku_actors.tools.port import ToolOutcome
from kesoku_actors.tools.registry import Asking
from kesoku_actors.tools.shell.policy import Refused, ShellPolicy, judge

MOST_PARTS: Final = 8
"""A line of more programs is allowed once only: nobody would read them."""
_HARMLESS_REDIRECTION: Final = re.compile(r"\d?>&[\d-]|&?\d?>{1,2}\s*/dev/null(?=[\s;|&)]|$)")


def asking_about(policy: ShellPolicy, arguments: Mapping[str, Any]) -> Asking | ToolOutcome:
    """Return what is asked about a call of the shell tool, or its outcome when it is refused."""
    command = arguments["command"]
    verdict = judge(policy, command)
    if isinstance(verdict, Refused):
        return refusal(verdict)
    return Asking(parts=programs_of(command))


def refusal(verdict: Refused) -> ToolOutcome:
    """Return what the model reads of a command that may not run."""
    return ToolOutcome(outcome=Outcome.ERROR, content=f"[refused: {verdict.reason}]", metadata={"reason": "refused"})


def programs_of(command: str) -> tuple[str, ...] | None:
    """Return the programs that a command runs; none when a yes for the session cannot be given."""
    if ">" in _HARMLESS_REDIRECTION.sub("", command):
        return None
    from kesoku_actors.tools.shell.readings import readings

    read = readings(command)
    names = sorted({words[0] for words in read.commands})
    if read.hidden or read.is_too_much or not 0 < len(names) <= MOST_PARTS:
        return None
    return tuple(names)
