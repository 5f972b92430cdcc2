"""`[tools]` and `[shell]`: what the model may do (T1, T2, T7). Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from attrs import field

from kesoku_actors.app.sections.rules import SHORT, Few, ModuleName, Pattern, Seconds, Text, VariableName, between
from kesoku_actors.values import frozen

Approve = Literal["never", "risky", "always"]


@frozen(kw_only=True)
class ToolSettings:
    """Tools in general."""

    modules: tuple[ModuleName, ...] = ()
    """Modules of your own, as paths of files or dotted names; their public functions become tools."""
    files: bool = True
    """Whether there are `read_file`, `write_file` and `edit_file`."""
    roots: tuple[Path, ...] = ()
    """Folders they may read and write beside the session's own."""
    read_only_roots: tuple[Path, ...] = ()
    """Folders they may only read; those of skills are among them."""
    approve: Approve = "never"
    """Which calls wait for a person's yes (T7)."""
    rules: dict[str, Approve] = field(factory=dict)
    """The same for single tools, by name: stands above `approve`, also above that of a channel."""
    approve_within_s: Seconds = 3_600.0
    """How long a call waits for that yes."""
    max_jobs: Few = 8
    """Commands that may run in the background of one session (I8)."""


@frozen(kw_only=True)
class Forbidden:
    """A pattern that refuses a command; a string alone is the pattern."""

    pattern: Pattern = field(metadata=SHORT)
    message: Text | None = None
    """What the model reads then, in place of the pattern."""


@frozen(kw_only=True)
class Shell:
    """The tool `run_shell_command`."""

    enabled: bool = True
    use_shell: bool = True
    """Ignored in mode `allowlist`, which never uses a shell."""
    mode: Literal["allowlist", "blocklist"] = "blocklist"
    allowlist_patterns: tuple[Pattern, ...] = (r"^(echo|ls|pwd|cat|git|uv|grep|find|python|sed|awk)(\s|$)",)
    blocklist_patterns: tuple[Pattern, ...] = (r"(\b|^)(rm|sudo|shutdown|reboot|mkfs|dd|chmod|chown)(\b|\s|$)",)
    forbidden_patterns: tuple[Forbidden, ...] = ()
    """Refused in both modes."""
    timeout_s: Seconds = 300.0
    """The deadline of a command (I8)."""
    output_chars: Annotated[int, between(200, 1_000_000)] = 16_000
    """What the model reads of an output: its head and tail; all of it is kept in a file."""
    env: tuple[VariableName, ...] = ()
    """Variables of this process that commands get besides PATH, HOME, LANG and the like."""
    sandbox: Literal["auto", "require", "off"] = "auto"
    """`auto`: where one was tried at start and held, else a warning; `require`: or the program does not start."""
    network: bool = False
    """Whether commands inside the sandbox reach the network."""
