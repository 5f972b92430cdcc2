"""What a program runs of what its arguments name. Pure.

`unwrapped` takes the fields of one command and yields what is run behind it: the fields of another command, a text for
a shell, or why nobody can know. The tables are in `programs`, the code of other languages in `foreign`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kesoku_actors.tools.shell import programs
from kesoku_actors.tools.shell.expansion import MAY_SPLIT, ONE_PIECE, Fields, plain
from kesoku_actors.tools.shell.foreign import commands_in, commands_in_editor, commands_in_sed, sed_scripts
from kesoku_actors.tools.shell.programs import Wrapper
from kesoku_actors.values import frozen

_BACKTICKED: Final = ("perl", "ruby", "php")
_INPUT: Final = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
_OPEN: Final = Wrapper(open_ended=True)
_DOUBTS: Final = 16
"""How many options of one program are read in both ways."""


@frozen
class Words:
    """The fields of a command."""

    fields: Fields


@frozen
class Source:
    """A text that a shell reads."""

    text: str


@frozen
class Fed:
    """A shell that reads what it is fed."""


@frozen
class Hidden:
    """Something is run, and nobody can know what; `why` completes "nobody can tell ..."."""

    why: str


Inner = Words | Source | Fed | Hidden


def source(fields: Fields) -> Source:
    """Return fields as the text that a shell gets; what is not known stays a variable in it."""
    return Source(plain(" ".join(fields).replace(MAY_SPLIT, "$_").replace(ONE_PIECE, "$_")))


def unwrapped(name: str, arguments: Fields) -> Iterator[Inner]:
    """Yield what `name` runs, once called with `arguments`; `name` is without its folder."""
    if name in programs.SHELLS:
        yield from _of_a_shell(arguments)
    elif name in programs.JOINING:
        yield from _joined(name, arguments)
    elif name == "xargs":
        yield from _of_xargs(arguments)
    elif name in (".", "source"):
        if arguments[:1] and arguments[0] in _INPUT:
            yield Fed()
    elif name == "alias":
        yield from (source((word.partition("=")[2],)) for word in arguments if "=" in word)
    elif programs.LOADER.fullmatch(name):
        yield from (Words(arguments[at:]) for at in _starts(arguments, _OPEN))
    elif (wrapper := programs.WRAPPERS.get(name)) is not None:
        yield from _wrapped(name, arguments, wrapper)
    elif programs.CODE.fullmatch(name):
        for word in arguments:
            yield from map(Source, commands_in(plain(word), backticks=name.startswith(_BACKTICKED)))
    elif name in programs.SED:
        for script in sed_scripts(arguments):
            for found in commands_in_sed(plain(script)):
                yield Hidden("what sed makes of its input and runs") if found is None else Source(found)
    elif name in programs.EDITORS:
        yield from map(Source, commands_in_editor(tuple(map(plain, arguments))))
    yield from _behind(name, arguments)
    if name == "git":
        yield from _of_git(arguments)
    yield from (Words((same,)) for (who, how), same in programs.SAME.items() if who == name and how in arguments)


def _starts(arguments: Fields, wrapper: Wrapper) -> Iterator[int]:
    """Where the command may begin; what stands before it is options, assignments and words to skip.

    Behind an option that is not listed there are two ways to go on: the next word is its value, or is not.
    """
    at, skipped, doubts = 0, 0, 0
    is_doubtful = False
    while at < len(arguments):
        word = arguments[at]
        if word == "--":
            at += 1 + wrapper.skip - skipped
            while wrapper.assigns and at < len(arguments) and "=" in arguments[at]:
                at += 1
            break
        if word.startswith("-") and len(word) > 1:
            taken, is_known = _option(word, wrapper)
            at += 1 + taken
            is_doubtful = not is_known
            continue
        if not (wrapper.assigns and "=" in word):
            if is_doubtful and doubts < _DOUBTS:
                yield at
                doubts += 1
            elif skipped < wrapper.skip:
                skipped += 1
            else:
                break
        is_doubtful = False
        at += 1
    yield at


def _option(word: str, wrapper: Wrapper) -> tuple[int, bool]:
    """How many words behind this one belong to it, and whether that is certain."""
    if word.startswith("--"):
        if "=" in word:
            return 0, True
        takes = any(name == word or (len(word) > 4 and name.startswith(word)) for name in wrapper.long)
        return int(takes), takes or not wrapper.open_ended
    for place, letter in enumerate(word[1:], start=1):
        if letter in wrapper.valued or letter == wrapper.script:
            return int(place == len(word) - 1), True
        if letter not in wrapper.flags:
            return 0, False
    return 0, True


def _wrapped(name: str, arguments: Fields, wrapper: Wrapper) -> Iterator[Inner]:
    if name == "command" and arguments[:1] in (("-v",), ("-V",)):
        return  # it only tells what a name stands for
    if name == "coproc":  # it may have a name of its own
        yield Words(arguments[1:])
    if wrapper.script:
        yield from _scripts(arguments, wrapper.script)
    for word in arguments:
        if wrapper.open_ended and re.match(r"--[\w-]+=", word):
            yield source((word.partition("=")[2],))
    yield from (Words(arguments[at:]) for at in _starts(arguments, wrapper))


def _scripts(arguments: Fields, letter: str) -> Iterator[Inner]:
    """The values of an option that a shell reads: `-c text`, `-ctext`, `--command=text`."""
    for at, word in enumerate(arguments):
        if re.fullmatch(rf"-\w*{letter}|--(?:command|session-command|split-string)", word):
            yield source(arguments[at + 1 : at + 2])
        elif (found := re.match(rf"-\w*?{letter}(?=.)|--(?:command|session-command|split-string)=", word)) is not None:
            yield source((word[found.end() :],))


def _of_a_shell(arguments: Fields) -> Iterator[Inner]:
    at, reads_text = 0, False
    while at < len(arguments) and (word := arguments[at])[:1] in ("-", "+") and word not in ("-", "--"):
        reads_text = reads_text or (not word.startswith("--") and "c" in word)
        at += 2 if word in programs.SHELL_OPTIONS_WITH_VALUE else 1
        if word.startswith("-") and "s" in word and not word.startswith("--"):
            yield Fed()
    if at < len(arguments) and arguments[at] in ("-", "--"):
        at += 1
    if reads_text:
        if at == len(arguments):
            return
        yield source(arguments[at : at + 1])
    elif at == len(arguments) or arguments[at] in _INPUT:
        yield Fed()


def _joined(name: str, arguments: Fields) -> Iterator[Inner]:
    words, lists = arguments, tuple[str, ...]()
    if name in ("parallel", "sem"):
        cut = next((at for at, word in enumerate(arguments) if re.fullmatch(r":::\+?|::::", word)), len(arguments))
        words, lists = arguments[:cut], arguments[cut + 1 :]
        words = tuple(word.replace("\0{\0}", MAY_SPLIT).replace("{}", MAY_SPLIT) for word in words)
    for at in _starts(words, programs.JOINING[name]):
        if name == "trap":
            yield source(words[at : at + 1]) if words[at : at + 1] != ("-",) else source(())
        elif words[at:]:
            yield source(words[at:])
        elif name in ("parallel", "sem"):
            yield from (source((word,)) for word in lists)
            if not lists:
                yield Fed()


def _of_xargs(arguments: Fields) -> Iterator[Inner]:
    replaced: str | None = None
    for at, word in enumerate(arguments):
        if word == "-I" and at + 1 < len(arguments):
            replaced = plain(arguments[at + 1])
        elif (found := re.match(r"-I(?=.)|--replace=", word)) is not None:
            replaced = plain(word[found.end() :])
        elif word in ("-i", "--replace"):
            replaced = "{}"
    for at in _starts(arguments, programs.WRAPPERS["xargs"]):
        words = arguments[at:]
        if not words:
            continue
        if replaced is None:
            yield Words((*words, MAY_SPLIT))
        else:
            yield Words(tuple(_with_a_piece(word, replaced) for word in words))


def _with_a_piece(word: str, place: str) -> str:
    """A word in which `place` stands for what is not known yet."""
    written = plain(word)
    return written.replace(place, ONE_PIECE) if place in written else word


def _behind(name: str, arguments: Fields) -> Iterator[Inner]:
    """The words, or the value, behind a mark."""
    words, values = programs.BEHIND.get(name), programs.VALUES.get(name)
    for at, word in enumerate(arguments):
        if words is not None and words.match(plain(word)):
            behind = arguments[at + 1 :]
            if name == "find":
                end = next((index for index, each in enumerate(behind) if each in (";", "+")), len(behind))
                yield Words(tuple(_with_a_piece(each, "{}") for each in behind[:end]))
            elif name != "git" or "bisect" in arguments[:at]:
                yield from (Words(behind[start:]) for start in _starts(behind, _OPEN))
        if values is None or (found := values.match(word)) is None:
            continue
        if name == "git" and word == "-x" and not {"rebase", "difftool"} & set(arguments):
            continue
        if found.end() < len(word):
            yield source((word[found.end() :],))
        elif word == "foreach":
            yield from (source(arguments[at + 1 :][start:]) for start in _starts(arguments[at + 1 :], _OPEN))
        else:
            yield source(arguments[at + 1 : at + 2])


def _of_git(arguments: Fields) -> Iterator[Inner]:
    """Settings that hold a command, given with `-c` or stored with `git config`."""
    for at, word in enumerate(arguments):
        key, equals, value = word.partition("=")
        if not equals and "config" in arguments[:at]:
            value = arguments[at + 1] if at + 1 < len(arguments) else ""
        key = re.sub(r"^-c", "", plain(key))
        if value.startswith("!"):
            yield source((value[1:],))
        elif programs.GIT_KEYS.fullmatch(key):
            yield source((value,))
