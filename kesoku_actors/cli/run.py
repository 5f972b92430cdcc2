"""Runs one command and turns whatever it raises into one line on standard error and an exit code.

Invariants: a person never sees a traceback unless KESOKU_TRACEBACK=1 asks for one; nothing else in the program turns
an error into an exit code; a surprise among the leaves of an exception group is never hidden by an error of a kind
that is expected.
"""

from __future__ import annotations

import difflib
import io
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module

import click
from click.exceptions import Exit
from click.shell_completion import shell_complete

from kesoku_actors import __version__
from kesoku_actors.cli.collector import collect_rarely
from kesoku_actors.cli.exit_codes import BROKEN_PIPE, BUG, STOPPED, UNWRITABLE, USAGE
from kesoku_actors.cli.table import COMMANDS, help_text
from kesoku_actors.errors import KesokuError
from kesoku_actors.invocation import program_name

_PROGRAM = "kesoku-actors"
_COMPLETION = "_KESOKU_ACTORS_COMPLETE"
_CONTEXT = {"help_option_names": ["-h", "--help"]}


class _Commands(click.Group):
    """The table as a click group: a command is imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        try:
            module, _ = COMMANDS[cmd_name]
        except KeyError:
            near = difflib.get_close_matches(cmd_name, COMMANDS, n=1)
            choice = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(COMMANDS)}"
            raise click.UsageError(f"no command {cmd_name!r}; {choice}", ctx) from None
        command = import_module(module).command
        assert isinstance(command, click.Command)
        return command

    def get_help(self, ctx: click.Context) -> str:
        return help_text(ctx.command_path)


def run(arguments: Sequence[str]) -> int:
    """Run the command that `arguments` name and return the exit code of the process."""
    collect_rarely()
    _fill_standard_descriptors()
    code = _code_of(arguments)
    _give_up_errors()
    return code


def _code_of(arguments: Sequence[str]) -> int:
    if sys.stdout is None:
        return _complain("standard output is closed; open it, or send it to a file or /dev/null", USAGE)
    _buffer_output()
    group = click.version_option(__version__, "--version", "-V", message=f"{_PROGRAM} %(version)s")(
        _Commands(_PROGRAM, context_settings=_CONTEXT, no_args_is_help=False)
    )
    if wanted := os.environ.get(_COMPLETION):
        return shell_complete(group, {}, _PROGRAM, _COMPLETION, wanted)
    try:
        # Not `main()`: it swallows a broken pipe.
        with group.make_context(program_name(os.environ), list(arguments)) as context:
            code = group.invoke(context)
    except Exit as leaving:
        code = leaving.exit_code
    except BaseException as error:
        code = _report(error)
    broken = _output_error()
    if broken is not None:
        return output_failed(broken)
    return code if isinstance(code, int) else 0


def output_failed(error: OSError) -> int:
    """Return the exit code of a process whose standard output takes no more; quiet when its reader went away."""
    _point_at_nothing(1)
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    return _complain(f"standard output cannot be written: {error.strerror}", UNWRITABLE)


def _output_error() -> OSError | None:
    """Write out what standard output still holds; return why it takes no more, if so."""
    try:
        sys.stdout.flush()
    except OSError as error:
        return error
    return None


def _give_up_errors() -> None:
    """Let go of what standard error still holds when it cannot be written."""
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except OSError:
        _point_at_nothing(2)


def _point_at_nothing(descriptor: int) -> None:
    """Send the rest of an output away: Python flushes once more when it ends, and would complain then."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def _buffer_output() -> None:
    """Give standard output a buffer also under PYTHONUNBUFFERED: a text that could not be written stays in it, which
    tells the failure of an output from any other."""
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        stream = sys.stdout
        sys.stdout = open(  # noqa: SIM115  it lives as long as the process
            stream.fileno(),
            "w",
            encoding=stream.encoding,
            errors=stream.errors,
            buffering=1 if stream.isatty() else -1,
            closefd=False,
        )


def _fill_standard_descriptors() -> None:
    """Open what was closed of 0, 1 and 2: else the next file opened, the database say, would get its number and
    everything printed would be written into it."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _report(error: BaseException) -> int:
    leaves = list(_leaves(error))
    if any(isinstance(leaf, OSError) for leaf in leaves) and (broken := _output_error()) is not None:
        return output_failed(broken)
    surprises = [leaf for leaf in leaves if not isinstance(leaf, _EXPECTED)]
    if surprises or os.environ.get("KESOKU_TRACEBACK") == "1":
        return _surprise(error, surprises[0] if surprises else leaves[0])
    # A failure explains more than the interruption that came with it.
    leaf = min(leaves, key=lambda found: next(place for place, kind in enumerate(_EXPECTED) if isinstance(found, kind)))
    match leaf:
        case KesokuError():
            return _complain(str(leaf) or type(leaf).__name__, leaf.exit_code)
        case click.UsageError():
            where = leaf.ctx.command_path if leaf.ctx else program_name(os.environ)
            return _complain(f"{leaf.format_message().rstrip('.')}{_choices(leaf)} (see {where} --help)", USAGE)
        case click.ClickException():
            return _complain(leaf.format_message(), leaf.exit_code)
        case BrokenPipeError():
            return output_failed(leaf)
        case _:
            return STOPPED


def _choices(error: click.UsageError) -> str:
    """Return what could have been typed where a command of a group is missing."""
    group = error.ctx.command if error.ctx is not None else None
    if not isinstance(group, click.Group) or not error.message.startswith("Missing command"):
        return ""
    return f": {', '.join(group.commands)}"


_EXPECTED: tuple[type[BaseException], ...] = (
    KesokuError,
    click.ClickException,
    BrokenPipeError,
    KeyboardInterrupt,
    click.Abort,
)
"""What is no bug of ours, the most telling first."""


def _surprise(error: BaseException, leaf: BaseException) -> int:
    if os.environ.get("KESOKU_TRACEBACK") == "1":
        return _complain("".join(traceback.format_exception(error)).rstrip(), _code(leaf))
    what = " ".join(f"{type(leaf).__name__}: {leaf}".split())
    return _complain(f"{what[:300]}; this is a bug, run again with KESOKU_TRACEBACK=1 to see where", BUG)


def _code(leaf: BaseException) -> int:
    return leaf.exit_code if isinstance(leaf, KesokuError | click.ClickException) else BUG


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _complain(text: str, code: int) -> int:
    tell("error", text)
    return code


def tell(kind: str, text: str) -> None:
    """Write each line of `text` to standard error, if there is one, behind the program's name and `kind`."""
    if sys.stderr is None:
        return
    for line in text.splitlines():
        shown = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line)
        with suppress(OSError):  # what nobody can read changes no exit code
            sys.stderr.write(f"{_PROGRAM}: {kind}: {shown}\n")
