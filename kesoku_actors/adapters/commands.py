"""The commands that people type on a surface: one table for parsing, help and completion, and what each does.

A text is a command when its first line begins with a slash and one word of letters: `/mode queue`. `/etc/hosts` is a
message, and so is what begins with two slashes, of which one is taken away. A command that is not in the table is
answered with one line and never reaches the model.

What a command does is a function over `Surface`: a conversation as its adapter offers it. It returns the lines to show
and never decides where they go. An adapter that cannot do all of them takes a part of the table (`CommandTable`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

from attrs import field

from kesoku_actors.adapters.approvals import NO, Decision, parse, pick
from kesoku_actors.adapters.jobs import job_lines, to_stop
from kesoku_actors.errors import UsageError
from kesoku_actors.llm.prices import dollars
from kesoku_actors.protocol import Approval, BusyMode, Job, SessionInfo, Stop, Usage
from kesoku_actors.store.port import NothingToStop
from kesoku_actors.values import frozen

Lines = tuple[str, ...]

_COMMAND: Final = re.compile(r"/([A-Za-z]+)(?:[ \t]+(\S.*?))?\s*\Z")


class Values(StrEnum):
    """What an argument may be, for completion."""

    MODEL = "model"
    MODE = "mode"
    SESSION = "session"
    APPROVAL = "approval"


@frozen
class Choice:
    """One completion of a word, and what it means."""

    text: str
    note: str = ""


@frozen(kw_only=True)
class ModelInfo:
    """A model that a person may choose."""

    name: str
    missing: str | None
    """What it lacks to be used, in words."""
    is_chosen: bool


class Surface(Protocol):
    """A conversation as commands see it. Methods may raise `UsageError`, whose text is shown, and store faults."""

    @property
    def commands(self) -> CommandTable:
        """The commands offered here."""

    async def stop(self) -> Stop | NothingToStop:
        """Stop what runs and what waits (I7)."""

    async def force(self) -> Stop | NothingToStop:
        """End the running tools of what was stopped, as soon as that is accepted (I7)."""

    async def clear(self) -> Stop | NothingToStop:
        """Clear the session (M7); the next message begins another one."""

    async def compact(self) -> Lines:
        """Begin to summarise the older part of the session; its receipt is shown when that is over."""

    def end_compaction(self) -> bool:
        """Cancel that; return whether it was under way."""

    async def status(self) -> Lines:
        """Return what a person wants to know of the conversation."""

    async def sessions(self) -> Sequence[tuple[SessionInfo, bool]]:
        """Return the sessions that can be gone on with, newest first, and which one this is."""

    async def resume(self, session_id: str) -> Lines:
        """Go on with another session."""

    async def models(self) -> Sequence[ModelInfo]:
        """Return the models there are."""

    async def choose_model(self, name: str) -> str:
        """Let another model answer here; return what it is called."""

    async def mode(self) -> BusyMode:
        """Return the channel's busy mode (I5)."""

    async def set_mode(self, mode: BusyMode) -> BusyMode:
        """Change it."""

    async def approvals(self) -> Sequence[Approval]:
        """Return the calls of the session that wait for a person's yes, in order (T7)."""

    async def decide(self, approval: Approval, decision: Decision) -> str:
        """Answer about one of them; return what became of it, in words."""

    async def jobs(self) -> Sequence[Job]:
        """Return the jobs of the session, oldest first (I8)."""

    def now(self) -> float:
        """Return the time, UTC seconds."""

    async def stop_job(self, job: Job) -> bool:
        """End a job and wait until it has ended. False: it does not run any more."""

    async def trace(self) -> str:
        """Write what happened in this session as a file; return where it is."""

    def leave(self) -> None:
        """End the conversation."""


Run = Callable[[Surface, str], Awaitable[Lines]]


@frozen(kw_only=True)
class Command:
    """One command."""

    name: str
    help: str
    run: Run = field(repr=False)
    argument: str = ""
    """What stands behind it, as help shows it; in brackets when it may be left out."""
    values: Values | None = None
    """What to complete it with."""

    @property
    def usage(self) -> str:
        """How it is typed."""
        return f"/{self.name} {self.argument}".rstrip()

    def typed(self, argument: str) -> str:
        """Return what was typed, tidied."""
        return f"/{self.name} {argument}".rstrip()


@frozen
class Say:
    """Not a command: a message."""

    text: str


@frozen
class Do:
    """A command and its argument, checked only as far as there must be one."""

    command: Command
    argument: str


@frozen
class Refuse:
    """Not understood; one line that says what would be."""

    line: str


@frozen
class CommandTable:
    """The commands of one surface, by name."""

    commands: tuple[Command, ...]

    def parse(self, text: str) -> Say | Do | Refuse:
        """Return what a person's text asks for."""
        if text.startswith("//"):
            return Say(text[1:])
        found = _COMMAND.match(text)
        if found is None:
            return Say(text)
        name, argument = found[1].lower(), found[2] or ""
        command = self._by_name().get(name)
        if command is None:
            return Refuse(f"no command /{found[1]}; {self._nearest(name)}; // begins a message with a slash")
        if argument and not command.argument:
            return Refuse(f"/{name} takes nothing behind it")
        if not argument and command.argument and not command.argument.startswith("["):
            return Refuse(f"/{name} needs its argument: {command.usage}")
        return Do(command, argument)

    def help(self) -> Lines:
        """Return a line for each command."""
        width = max(len(command.usage) for command in self.commands)
        return tuple(f"{command.usage:<{width}}  {command.help}" for command in self.commands)

    def complete(self, text: str, values: Mapping[Values, Sequence[Choice]]) -> tuple[Choice, ...]:
        """Return what the last word of a command that is being typed may become; nothing for a message."""
        head, space, word = text.rpartition(" ")
        if not space:
            named = (Choice(f"/{command.name}", command.help) for command in self.commands)
            return tuple(one for one in named if one.text.startswith(text)) if text.startswith("/") else ()
        command = self._by_name().get(head.removeprefix("/").lower()) if head.startswith("/") else None
        if command is None or command.values is None:
            return ()
        return tuple(one for one in values.get(command.values, ()) if one.text.startswith(word))

    def _by_name(self) -> dict[str, Command]:
        return {command.name: command for command in self.commands}

    def _nearest(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._by_name(), n=1)
        return f"did you mean /{near[0]}?" if near else "/help lists them"


def session_line(session: SessionInfo, usage: Usage | None = None) -> str:
    """Return a session as lists show it, with the tokens that went in and came out where they were counted."""
    when = datetime.fromtimestamp(session.last_activity).strftime("%Y-%m-%d %H:%M")
    turns = f"{session.turns} turn{'' if session.turns == 1 else 's'}"
    spent = ""
    if usage is not None:
        spent = f"  {f'{_thousands(usage.input or 0)} in, {_thousands(usage.output or 0)} out':>22}"
        spent += f"  {'' if usage.cost is None else dollars(usage.cost):>9}"
    return f"{session.id}  {when}  {turns:>9}{spent}  {session.chatbot_id:<10} {session.title}".rstrip()


def _thousands(count: int) -> str:
    return f"{count / 1000:.1f}K"


async def _stop(surface: Surface, _: str) -> Lines:
    reply = await surface.stop()
    if isinstance(reply, NothingToStop) and surface.end_compaction():
        return ()  # its receipt says so
    return _nothing(reply, "nothing runs and nothing waits")


async def _force(surface: Surface, _: str) -> Lines:
    return _nothing(await surface.force(), "nothing was stopped that still runs; /stop comes first")


async def _clear(surface: Surface, _: str) -> Lines:
    if isinstance(await surface.clear(), Stop):
        return ("clearing: what runs ends first, /force ends it now; the next message begins a new session",)
    return ("cleared; the next message begins a new session",)


async def _compact(surface: Surface, _: str) -> Lines:
    return await surface.compact()


async def _status(surface: Surface, _: str) -> Lines:
    return await surface.status()


async def _sessions(surface: Surface, _: str) -> Lines:
    sessions = await surface.sessions()
    lines = tuple(f"{'*' if is_here else ' '} {session_line(session)}" for session, is_here in sessions)
    return (*lines, "/resume ID goes on with one") if lines else ("there are no sessions yet",)


async def _resume(surface: Surface, session_id: str) -> Lines:
    return await surface.resume(session_id)


async def _model(surface: Surface, name: str) -> Lines:
    if name:
        return (f"{await surface.choose_model(name)} answers from the next turn on",)
    signs = {True: "*", False: " "}
    return tuple(
        f"{signs[model.is_chosen]} {model.name}" + (f"  ({model.missing})" if model.missing else "")
        for model in await surface.models()
    )


async def _mode(surface: Surface, name: str) -> Lines:
    if not name:
        return (f"{(await surface.mode()).value}; there are {', '.join(mode.value for mode in BusyMode)}",)
    known = {mode.value: mode for mode in BusyMode}
    mode = known.get(name.lower())
    if mode is None:
        near = difflib.get_close_matches(name.lower(), known, n=1)
        choice = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise UsageError(f"no mode {name!r}; {choice}")
    return (f"a message that comes while a turn runs: {(await surface.set_mode(mode)).value}",)


async def _approve(surface: Surface, argument: str) -> Lines:
    name, decision = parse(argument)
    return (await surface.decide(pick(await surface.approvals(), name), decision),)


async def _deny(surface: Surface, name: str) -> Lines:
    return (await surface.decide(pick(await surface.approvals(), name), NO),)


async def _jobs(surface: Surface, argument: str) -> Lines:
    jobs = await surface.jobs()
    if not argument:
        return job_lines(jobs, surface.now())
    job = to_stop(jobs, argument)
    return (f"{job.id} was ended" if await surface.stop_job(job) else f"{job.id} does not run any more",)


async def _trace(surface: Surface, _: str) -> Lines:
    return (f"wrote {await surface.trace()}; open it in a browser",)


async def _leave(surface: Surface, _: str) -> Lines:
    surface.leave()
    return ()


async def _help(surface: Surface, _: str) -> Lines:
    return surface.commands.help()


def _nothing(reply: Stop | NothingToStop, line: str) -> Lines:
    return () if isinstance(reply, Stop) else (line,)


COMMANDS: Final = CommandTable(
    (
        Command(name="stop", run=_stop, help="Stop the turn and what waits; running tools end first."),
        Command(name="force", run=_force, help="End the running tools of a stopped turn."),
        Command(name="clear", run=_clear, help="Delete this session; the next message begins a new one."),
        Command(name="compact", run=_compact, help="Summarise the older part of this session, to make room."),
        Command(name="status", run=_status, help="Show session, model, mode, activity and tokens."),
        Command(name="sessions", run=_sessions, help="List the sessions, newest first."),
        Command(
            name="resume",
            run=_resume,
            argument="ID",
            values=Values.SESSION,
            help="Go on with another session; any part of its id that no other has will do.",
        ),
        Command(
            name="llm",
            run=_model,
            argument="[NAME]",
            values=Values.MODEL,
            help="Let another model answer in this session, or list them.",
        ),
        Command(
            name="mode",
            run=_mode,
            argument="[MODE]",
            values=Values.MODE,
            help="What a message does while a turn runs: interrupt, queue, collect, steer.",
        ),
        Command(
            name="approve",
            run=_approve,
            argument="[ID] [session]",
            values=Values.APPROVAL,
            help="Let a call run that waits for your yes; in this session always.",
        ),
        Command(name="deny", run=_deny, argument="[ID]", values=Values.APPROVAL, help="Let a call that waits not run."),
        Command(name="jobs", run=_jobs, argument="[stop JOB]", help="List background jobs, or end one."),
        Command(name="trace", run=_trace, help="Write what happened in this session as one HTML file."),
        Command(name="help", run=_help, help="Show this list."),
        Command(name="quit", run=_leave, help="Leave; what is not finished is taken up next time."),
    )
)
"""Every command there is."""
