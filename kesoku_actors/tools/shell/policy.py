"""Whether a command may run, and how. Pure (T2).

`allowlist`: the command is one simple command, written plainly (see `words`); as `name argument ...` it must match an
allowed pattern from its start, and so must every command that it runs in turn (see `readings`), unless a pattern speaks
of all its arguments. Exactly the words that were checked run, without a shell.

`blocklist`: guard rails, not a boundary. Every command that shows (see `readings`) is matched, and the text as a whole;
one match refuses it. What is run and cannot be known is refused too, unless a sandbox holds it. Whatever passes runs as
it was given.

`forbidden_patterns` refuse in both modes, before the others. Patterns match from the start, as with `re.match`; where
one refuses, the model reads the pattern's own message, if it has one.
"""

from __future__ import annotations

import os.path
import re
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from attrs import field

from kesoku_actors.tools.shell.patterns import Pattern, compile_patterns
from kesoku_actors.tools.shell.words import NotPlain, named, plain_words
from kesoku_actors.values import frozen

if TYPE_CHECKING:
    from kesoku_actors.tools.shell.readings import Readings

COMMAND_CHARS: Final = 65_536
"""A longer command is refused: matching is linear in it."""
DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_TOO_MUCH: Final = "it may run programs in more places than are looked at; make it shorter"
_ESCAPED: Final = re.compile(r"\\.")
_NAME: Final = re.compile(r"[A-Za-z0-9_+-]{2,}")


class Mode(StrEnum):
    """Which of the two lists decides."""

    ALLOWLIST = "allowlist"
    BLOCKLIST = "blocklist"


@frozen(kw_only=True)
class ShellPolicy:
    """The rules of one shell tool. Raises `PatternRefused` when a pattern cannot be used."""

    mode: Mode = field(default=Mode.BLOCKLIST, converter=Mode)
    use_shell: bool = True
    """Whether `/bin/sh` reads the command; an allowlist never uses it."""
    allowlist_patterns: tuple[Pattern, ...] = field(default=(), converter=compile_patterns)
    blocklist_patterns: tuple[Pattern, ...] = field(default=(), converter=compile_patterns)
    forbidden_patterns: tuple[Pattern, ...] = field(default=(), converter=compile_patterns)
    sandboxed: bool = False
    """Whether what may run runs in a sandbox, where a program that cannot be known before may run too."""
    search_path: tuple[str, ...] = tuple(DEFAULT_PATH.split(":"))
    """Folders from which a program may be named with its path in an allowlist; they are the child's PATH."""

    @property
    def runs_a_shell(self) -> bool:
        """Whether what may run is run by `/bin/sh`."""
        return self.use_shell and self.mode is Mode.BLOCKLIST


@frozen(kw_only=True)
class Run:
    """It may run: as these words."""

    argv: tuple[str, ...]


@frozen(kw_only=True)
class Refused:
    """It may not; the reason is for the model."""

    reason: str


def judge(policy: ShellPolicy, command: str) -> Run | Refused:
    """Decide on `command`."""
    if not command.strip():
        return Refused(reason="the command is empty")
    if "\0" in command:
        return Refused(reason="the command contains a NUL character")
    if any("\ud800" <= character <= "\udfff" for character in command):
        return Refused(reason="the command is not valid text")
    if len(command) > COMMAND_CHARS:
        return Refused(reason=f"the command has {len(command):,} characters, more than {COMMAND_CHARS:,}")
    match policy.mode:
        case Mode.ALLOWLIST:
            return _judge_allowed(policy, command)
        case Mode.BLOCKLIST:
            return _judge_blocked(policy, command)


def _judge_allowed(policy: ShellPolicy, command: str) -> Run | Refused:
    try:
        words = plain_words(command)
    except NotPlain as problem:
        return Refused(reason=f"only one plain command is allowed here: {problem}")
    folder, name = os.path.split(words[0])
    # What is written as its last part must be what that name means: another folder may hold anything.
    if folder and folder not in policy.search_path:
        return Refused(reason=f"programs are named without a path here: {name}, not {words[0]}")
    read = _read(command)
    if read.is_too_much:
        return Refused(reason=_TOO_MUCH)
    written = " ".join((name, *words[1:]))
    inner = tuple(text for each in read.commands if (text := " ".join(each)) != written)
    if forbidden := first_match(policy.forbidden_patterns, (written, command, *inner)):
        return Refused(reason=_told(forbidden, f"it is forbidden by the pattern {forbidden.text}"))
    if (allowing := first_match(policy.allowlist_patterns, (written,))) is None:
        allowed = "  ".join(pattern.text for pattern in policy.allowlist_patterns) or "nothing"
        return Refused(reason=f"{name!r} so called is not in the allowlist; allowed is {allowed}")
    # A pattern that fits with one more argument too has not looked at all of them: what they run is asked for as well.
    if any(pattern.matches(written) and not pattern.matches(f"{written} x") for pattern in policy.allowlist_patterns):
        return Run(argv=words)
    if read.hidden:
        return Refused(reason=f"{allowing.text} allows it, but nobody can tell {read.hidden[0]}")
    for each in inner:
        if not first_match(policy.allowlist_patterns, (each,)):
            return Refused(reason=f"it runs {each!r}, which is not in the allowlist")
    return Run(argv=words)


def _judge_blocked(policy: ShellPolicy, command: str) -> Run | Refused:
    patterns = (*policy.forbidden_patterns, *policy.blocklist_patterns)
    if refused := _unseen(command, _read(command, _names_in(patterns)), policy):
        return refused
    if policy.runs_a_shell:
        return Run(argv=("/bin/sh", "-c", command))
    try:
        return Run(argv=plain_words(command))
    except NotPlain as problem:
        return Refused(reason=f"there is no shell here (use_shell is off): {problem}")


def _read(command: str, names: Iterable[str] = ()) -> Readings:
    # What reads commands is a fifth of this package: a run in which there are none does without.
    from kesoku_actors.tools.shell.readings import readings

    return readings(command, names)


def _unseen(command: str, read: Readings, policy: ShellPolicy) -> Refused | None:
    """Why a command is refused that no allowlist has to allow."""
    if read.is_too_much:
        return Refused(reason=_TOO_MUCH)
    for name, *_ in read.commands:
        if (character := next((each for each in name if _deceives(each)), None)) is not None:
            return Refused(reason=f"the program's name {name!r} has the character {named(character)}, which deceives")
    texts = (command.strip(), *(" ".join(each) for each in read.commands))
    if forbidden := first_match(policy.forbidden_patterns, texts):
        return Refused(reason=_told(forbidden, f"it is forbidden by the pattern {forbidden.text}"))
    if blocked := first_match(policy.blocklist_patterns, texts):
        return Refused(reason=_told(blocked, f"it is blocked by the pattern {blocked.text}"))
    if read.hidden and not policy.sandboxed and (policy.blocklist_patterns or policy.forbidden_patterns):
        return Refused(
            reason=f"nobody can tell {read.hidden[0]} before it runs, and there is no sandbox; write it out, as it is "
            "to be run"
        )
    return None


def _deceives(character: str) -> bool:
    """Whether it is not seen, or looks like a plain letter and is none."""
    if character.isascii():
        return not character.isprintable() and character not in "\n\t"
    return unicodedata.category(character)[0] in "CZ" or unicodedata.normalize("NFKC", character) != character


def _told(pattern: Pattern, otherwise: str) -> str:
    """What a person wants to be said where this pattern refuses."""
    return pattern.message or otherwise


def _names_in(patterns: tuple[Pattern, ...]) -> frozenset[str]:
    """The names that patterns spell out."""
    return frozenset(name for pattern in patterns for name in _NAME.findall(_ESCAPED.sub(" ", pattern.text)))


def first_match(patterns: tuple[Pattern, ...], texts: tuple[str, ...]) -> Pattern | None:
    """Return the first of `patterns` that fits one of `texts`."""
    return next((pattern for pattern in patterns if pattern.matches(*texts)), None)
