"""`run_shell_command`, the tool: the policy decides, the process runs, the model reads what came of it (T2)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import trio
from attrs import evolve, field, frozen

from kesoku_actors.protocol import Outcome
from kesoku_actors.tools.output import BYTES_KEPT, Capture
from kesoku_actors.tools.port import ToolContext, ToolOutcome
from kesoku_actors.tools.shell import process
from kesoku_actors.tools.shell.ending import END_GRACE_S
from kesoku_actors.tools.shell.limits import Limits
from kesoku_actors.tools.shell.policy import DEFAULT_PATH, Refused, ShellPolicy, judge
from kesoku_actors.tools.shell.process_table import CALL_VARIABLE, marked
from kesoku_actors.tools.shell.sandbox import Sandbox, environment_inside
from kesoku_actors.tools.shell.steady import SteadySpawn

PASSED_ON: Final = ("HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
"""Variables of ours that a command gets to see, beside PATH and TERM (S14)."""

_NAMED: Final = 20
"""How many processes that live on are named."""


@frozen(kw_only=True)
class ShellOptions:
    """How commands run."""

    policy: ShellPolicy = field(factory=ShellPolicy)
    environment: Mapping[str, str] = field(factory=dict)
    """The variables of every command, as `clean_environment` makes them."""
    sandbox: Sandbox | None = None
    """Where commands run; none: on this system itself, with all rights of this user."""
    read_only: tuple[Path, ...] = ()
    """Absolute folders that commands inside a sandbox can read beside the system's own: skills."""
    limits: Limits = field(factory=Limits)
    bytes_kept: int = BYTES_KEPT
    end_grace_s: float = END_GRACE_S
    """Between TERM and KILL."""


def clean_environment(ours: Mapping[str, str], extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what a command sees of our environment: the variables of `PASSED_ON`, an absolute PATH, and `extra`."""
    folders = [folder for folder in ours.get("PATH", DEFAULT_PATH).split(":") if folder.startswith("/")]
    return {
        **{name: ours[name] for name in PASSED_ON if name in ours},
        "PATH": ":".join(folders) or DEFAULT_PATH,
        "TERM": "dumb",
        **(extra or {}),
    }


def shell_tool(options: ShellOptions, spawn: process.Spawn | None = None) -> Callable[..., Any]:
    """Return the tool, to be registered."""
    policy = evolve(options.policy, sandboxed=options.sandbox is not None)
    start: process.Spawn = spawn or (process.spawn if options.sandbox is None else SteadySpawn())

    async def run_shell_command(command: str, context: ToolContext) -> ToolOutcome:
        """Run a command and return what it printed and how it ended.

        It runs in the session's folder, without input. A command that takes too long is ended.

        Args:
            command: The command line.
        """
        # In a thread: a long command against many patterns takes a while.
        verdict = await trio.to_thread.run_sync(judge, policy, command)
        if isinstance(verdict, Refused):
            return ToolOutcome(
                outcome=Outcome.ERROR, content=f"[refused: {verdict.reason}]", metadata={"reason": "refused"}
            )
        record = process.Record(output=Capture(options.bytes_kept))
        what = _placed(options, verdict.argv, context)
        began = trio.current_time()
        try:
            ended = await process.run(what, record, context.report_process, start)
        except OSError as problem:
            return ToolOutcome(
                outcome=Outcome.ERROR,
                content=f"[not run: {os.strerror(problem.errno or 0)}: {problem.filename or verdict.argv[0]}]",
                metadata={"reason": "not_run"},
            )
        except BaseException:  # a cancellation, alone or in a group
            context.keep(_kept(record))
            raise
        return _told(ended, record, trio.current_time() - began)

    return run_shell_command


def _placed(options: ShellOptions, argv: tuple[str, ...], context: ToolContext) -> process.Command:
    """The command as it runs: inside the sandbox, where there is one, and always within the limits."""
    environment = {**options.environment, CALL_VARIABLE: context.call_id}
    if options.sandbox is not None:
        argv = options.sandbox.enclosed(argv, workspace=context.workspace, read_only=options.read_only)
        environment = environment_inside(environment, context.workspace)
    return process.Command(
        argv=marked(argv, context.call_id, first=options.limits.script()),
        directory=context.workspace,
        environment=environment,
        call_id=context.call_id,
        end_grace_s=options.end_grace_s,
    )


def _told(ended: process.Ended, record: process.Record, seconds: float) -> ToolOutcome:
    how = f"exit status {ended.exit_status}" if ended.signal is None else f"ended by signal {ended.signal}"
    return ToolOutcome(
        outcome=Outcome.OK if ended.exit_status == 0 else Outcome.ERROR,
        content=_with_notes(record, f"{how}, {seconds:.1f} s"),
        metadata={"exit_status": ended.exit_status, "signal": ended.signal, **_metadata(record)},
    )


def _kept(record: process.Record) -> ToolOutcome:
    """What a command that was ended had said, and what of it could not be ended."""
    return ToolOutcome(outcome=Outcome.INTERRUPTED, content=_with_notes(record), metadata=_metadata(record))


def _with_notes(record: process.Record, *notes: str) -> str:
    if record.living:
        named = ", ".join(f"{one.name} (pid {one.pid})" for one in record.living[:_NAMED])
        notes = (*notes, f"still running: {named}")
    printed = record.output.text().rstrip()
    return "\n".join([*([printed] if printed else []), *([f"[{'; '.join(notes)}]"] if notes else [])])


def _metadata(record: process.Record) -> Mapping[str, Any]:
    return {
        "output_bytes": record.output.total,
        "survivors": [{"pid": one.pid, "name": one.name, "start": one.start} for one in record.living[:_NAMED]],
    }
