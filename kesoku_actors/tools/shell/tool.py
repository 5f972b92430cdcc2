"""`run_shell_command`, the tool: the policy decides, the process runs, the model reads what came of it (T2)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio
from attrs import evolve, field

from kesoku_actors.protocol import Outcome
from kesoku_actors.tools.output import BYTES_KEPT, Capture
from kesoku_actors.tools.port import ToolContext, ToolOutcome
from kesoku_actors.tools.registry import Asking, ToolRegistry
from kesoku_actors.tools.shell import process
from kesoku_actors.tools.shell.asking import asking_about, refusal
from kesoku_actors.tools.shell.kernel import END_GRACE_S, MACHINE, Command, Kernel
from kesoku_actors.tools.shell.leftovers import Leftovers
from kesoku_actors.tools.shell.limits import Limits
from kesoku_actors.tools.shell.policy import DEFAULT_PATH, Refused, ShellPolicy, judge
from kesoku_actors.tools.shell.process_table import CALL_VARIABLE, marked
from kesoku_actors.tools.shell.sandbox import Sandbox, environment_inside
from kesoku_actors.tools.shell.steady import SteadySpawn
from kesoku_actors.tools.spool import Spool
from kesoku_actors.values import frozen

PASSED_ON: Final = ("HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
"""Variables of ours that a command gets to see, beside PATH and TERM (S14)."""

_JUDGED_AT_ONCE_CHARS: Final = 1_000
"""Up to here the judgement takes less than going to a thread and back."""
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
    leftovers: Leftovers = field(factory=Leftovers)
    """Hears of commands that left something running."""
    bytes_kept: int = BYTES_KEPT
    end_grace_s: float = END_GRACE_S
    """Between TERM and KILL."""
    kernel: Kernel = MACHINE


def clean_environment(ours: Mapping[str, str], extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what a command sees of our environment: the variables of `PASSED_ON`, an absolute PATH, and `extra`."""
    folders = [folder for folder in ours.get("PATH", DEFAULT_PATH).split(":") if folder.startswith("/")]
    return {
        **{name: ours[name] for name in PASSED_ON if name in ours},
        "PATH": ":".join(folders) or DEFAULT_PATH,
        "TERM": "dumb",
        **(extra or {}),
    }


def add_shell_tool(registry: ToolRegistry, options: ShellOptions, *, owner: str) -> None:
    """Register the tool with all that is known of it: it is risky, and a long command becomes a job (T7, I8)."""
    policy = evolve(options.policy, sandboxed=options.sandbox is not None)

    async def preview(arguments: Mapping[str, Any]) -> Asking | ToolOutcome:
        return await trio.to_thread.run_sync(asking_about, policy, arguments)

    registry.add(shell_tool(options), owner=owner, risky=True, becomes_job=True, preview=preview)


def shell_tool(options: ShellOptions) -> Callable[..., Any]:
    """Return the tool, to be registered."""
    policy = evolve(options.policy, sandboxed=options.sandbox is not None)
    spawn: process.Spawn = options.kernel.spawn if options.sandbox is None else SteadySpawn()

    async def run_shell_command(command: str, context: ToolContext, background: bool = False) -> ToolOutcome:
        """Run a command and return what it printed and how it ended.

        It runs in the session's folder, without input. A command that takes long goes on in the background as a job.

        Args:
            command: The command line.
            background: Whether it goes on in the background at once, for a server or a long build.
        """
        # A long command against many patterns takes longer than an event loop may stand still.
        is_short = len(command) <= _JUDGED_AT_ONCE_CHARS
        verdict = judge(policy, command) if is_short else await trio.to_thread.run_sync(judge, policy, command)
        if isinstance(verdict, Refused):
            return refusal(verdict)
        spool = Spool(context.workspace, f"{context.call_id}.txt", context.mask)
        record = process.Record(output=Capture(options.bytes_kept), spool=spool)
        context.watch(partial(_so_far, record))
        what = _placed(options, verdict.argv, context)
        began = trio.current_time()
        try:
            announce = partial(_announce, context, background)
            ended = await process.run(what, record, announce, kernel=options.kernel, spawn=spawn)
        except OSError as problem:
            return ToolOutcome(
                outcome=Outcome.ERROR,
                content=f"[not run: {os.strerror(problem.errno or 0)}: {problem.filename or verdict.argv[0]}]",
                metadata={"reason": "not_run"},
            )
        if record.living:
            options.leftovers.add(context.session_id, context.call_id)
        return _told(ended, record, trio.current_time() - began)

    return run_shell_command


async def _announce(context: ToolContext, background: bool, pid: int, start: float | None) -> None:
    await context.report_process(pid, start)
    if background:
        context.go_on_behind()


def _placed(options: ShellOptions, argv: tuple[str, ...], context: ToolContext) -> Command:
    """The command as it runs: inside the sandbox, where there is one, and always within the limits."""
    environment = {**options.environment, CALL_VARIABLE: context.call_id}
    if options.sandbox is not None:
        argv = options.sandbox.enclosed(argv, workspace=context.workspace, read_only=options.read_only)
        environment = environment_inside(environment, context.workspace)
    return Command(
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
        output_file=record.output_file,
    )


def _so_far(record: process.Record) -> ToolOutcome:
    """What a command has said so far, or had said when it was ended; and what of it could not be ended."""
    return ToolOutcome(
        outcome=Outcome.INTERRUPTED,
        content=_with_notes(record),
        metadata=_metadata(record),
        output_file=record.output_file,
    )


def _with_notes(record: process.Record, *notes: str) -> str:
    if record.living:
        named = ", ".join(f"{one.name} (pid {one.pid})" for one in record.living[:_NAMED])
        notes = (*notes, f"still running: {named}")
    if record.spool.problem is not None and record.spool.path is not None:
        notes = (*notes, f"in {record.spool.path} {record.spool.problem}")
    printed = record.output.text().rstrip()
    return "\n".join([*([printed] if printed else []), *([f"[{'; '.join(notes)}]"] if notes else [])])


def _metadata(record: process.Record) -> Mapping[str, Any]:
    return {
        "output_bytes": record.output.total,
        "survivors": [{"pid": one.pid, "name": one.name, "start": one.start} for one in record.living[:_NAMED]],
    }
