"""Every command that a script runs, as far as it shows without running it. Pure (T2).

The script is parsed; each simple command of it, wherever it stands, is read with its words expanded, and what it runs
in turn (`env`, `xargs`, `sh -c`, `eval`, a here-document fed to a shell ...) is read again, down to a bound. What a
text *prints* is nobody's command: `echo "a; rm b"` runs `echo` and nothing else.

Two things are told apart. A command is *found* when its name is known. Something is *hidden* when it is run and nobody
can know what it is: `$x`, what is fetched and fed to a shell, text that is decoded.

The grammar is that of Bash; `/bin/sh` may be another shell. Where that one would find a command in what is none for
Bash (`&>`, `[[ a && b ]]`, `((`), or where the grammar understands nothing, the text is read both ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from attrs import field

from kesoku_actors.tools.shell.expansion import MAY_SPLIT, ONE_PIECE, Fields, Scope, Values, combined, plain, values
from kesoku_actors.tools.shell.feeding import Feed, feed_of, is_verbatim, printed_by, stray_words, words_of
from kesoku_actors.tools.shell.foreign import commands_in
from kesoku_actors.tools.shell.grammar import all_nodes, parse, text_of
from kesoku_actors.tools.shell.loose import loose_commands
from kesoku_actors.tools.shell.programs import CODE, COMMAND_VARIABLES, RUNNERS, SHELLS
from kesoku_actors.tools.shell.scope import scope_of
from kesoku_actors.tools.shell.unwrapping import Fed, Hidden, Source, Words, source, unwrapped
from kesoku_actors.values import define, frozen

if TYPE_CHECKING:
    from tree_sitter import Node

READ_CHARS: Final = 262_144
"""All texts that are read for one command are together not longer; then it is refused."""
_DEEPEST: Final = 16
"""How often a command may stand behind another one."""
_CONTINUED: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_BACKTICKS: Final = re.compile(r"(?<!\\)`([^`]*)`")
_KEYWORDS: Final = frozenset({"!", "if", "then", "elif", "else", "while", "until", "do", "{", "}"})
"""Words of the shell behind which a command begins."""
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_MARK: Final = re.compile("\0[*?\\[]")


@frozen(kw_only=True)
class Readings:
    """What a script runs."""

    commands: tuple[tuple[str, ...], ...]
    """Each as its program's name, without the folder, and its arguments."""
    hidden: tuple[str, ...]
    """What is run and cannot be known, each for a sentence: "nobody can tell what program ... is"."""
    is_too_much: bool
    """Whether the bounds ended the reading."""


def readings(script: str, names: Iterable[str] = ()) -> Readings:
    """Read `script`; `names` are those for which a name with wildcards may stand."""
    reader = _Reader(names=tuple(names))
    reader.script(script, 0)
    return Readings(commands=tuple(reader.found), hidden=tuple(reader.hidden), is_too_much=reader.is_too_much)


@define
class _Reader:
    names: tuple[str, ...]
    found: dict[tuple[str, ...], None] = field(factory=dict)
    hidden: dict[str, None] = field(factory=dict)
    is_too_much: bool = False
    _seen: set[str] = field(factory=set)
    _chars: int = 0
    _is_doubtful: bool = False
    """While another shell's reading is tried: what is hidden there is hidden nowhere else."""

    def script(self, text: str, depth: int) -> None:
        """Read a text as a shell would."""
        if text in self._seen or not text.strip():
            return
        self._seen.add(text)
        self._chars += len(text)
        if depth > _DEEPEST or self._chars > READ_CHARS:
            self.is_too_much = True
            return
        root = parse(text)
        nodes = list(all_nodes(root))
        scope = scope_of(nodes)
        for node in nodes:
            match node.type:
                case "command":
                    self._command(node, scope, depth)
                case "declaration_command":
                    self._record(tuple(text_of(node).split()))
                case "variable_assignment":
                    self._assignment(node, scope, depth)
                case "file_redirect" if stray := stray_words(node):
                    for fields in combined(_word_values(stray, scope)):
                        self._fields(fields, depth, None)
                case "word" if "`" in text_of(node):
                    for inner in _BACKTICKS.findall(text_of(node)):  # the grammar leaves some of them as text
                        self._doubtfully(inner, depth)
                case "heredoc_redirect" if not is_verbatim(node):
                    for inner in _BACKTICKS.findall(text_of(node)):
                        self._doubtfully(inner, depth)
                case "command_substitution" if "\\`" in text_of(node):  # one in the other, which backslashes keep apart
                    self.script(text_of(node)[1:-1].replace("\\`", "`"), depth + 1)
                case "test_command" | "compound_statement" if text_of(node).startswith(("[[", "((")):
                    self._doubtfully(text_of(node)[2:-2], depth)
                case _:
                    pass
        if root.has_error:
            for fields in loose_commands(text):
                self._doubtful_fields(fields, depth)
        if "&>" in text:
            self._doubtfully(text.replace("&>", "& >"), depth)
        if "\\\n" in text:  # for the grammar it parts two words, for a shell it joins them
            self._doubtfully(_CONTINUED.sub(r"\1", text), depth)
        if "\r" in text:
            self._doubtfully(text.replace("\r", "\n"), depth)

    def _doubtfully(self, text: str, depth: int) -> None:
        before, self._is_doubtful = self._is_doubtful, True
        self.script(text, depth + 1)
        self._is_doubtful = before

    def _doubtful_fields(self, fields: Fields, depth: int) -> None:
        before, self._is_doubtful = self._is_doubtful, True
        self._fields(fields, depth, None)
        self._is_doubtful = before

    def _hide(self, why: str) -> None:
        if not self._is_doubtful:
            self.hidden[why] = None

    def _command(self, node: Node, scope: Scope, depth: int) -> None:
        words = words_of(node)
        for fields in combined(_word_values(words, scope)):
            self._fields(tuple(each for each in fields if each), depth, (node, scope))
        if not words:
            return
        name = text_of(words[0]).rpartition("/")[2]
        if name in SHELLS or name in (".", "source"):
            for word in words[1:]:
                if word.type == "process_substitution":
                    self._fed(_known(printed_by(word, scope)), depth, name)

    def _assignment(self, node: Node, scope: Scope, depth: int) -> None:
        """A variable that programs take a command from."""
        if text_of(node.children[0]) in COMMAND_VARIABLES and len(node.children) > 2:
            for fields in values(node.children[-1], scope):
                self.script(source(fields).text, depth + 1)

    def _fields(self, fields: Fields, depth: int, at: tuple[Node, Scope] | None) -> None:
        if depth > _DEEPEST:
            self.is_too_much = True
            return
        if not fields:
            return
        name, arguments = fields[0].rpartition("/")[2] or fields[0], fields[1:]
        if plain(fields[0]) in _KEYWORDS or _ASSIGNMENT.match(fields[0]):  # where the grammar has it for a program
            self._fields(arguments, depth + 1, at)
            return
        if MAY_SPLIT in fields[0] or ONE_PIECE in name:
            self._hide(f"what program {plain(fields[0])!r} is")
            if fields[0] == MAY_SPLIT:
                self._fields(arguments, depth + 1, at)  # it may be nothing
            return
        self._record((plain(name), *map(plain, arguments)))
        for known in self._meant(name):
            self._fields((known, *arguments), depth + 1, at)
        for inner in unwrapped(plain(name), arguments):
            match inner:
                case Words(behind):
                    self._fields(behind, depth + 1, at)
                case Source(text):
                    self.script(text, depth + 1)
                case Hidden(why):
                    self._hide(why)
                case Fed():
                    self._fed(feed_of(*at) if at is not None else None, depth, plain(name))
        if CODE.fullmatch(plain(name)) and at is not None and (code := feed_of(*at)):
            for text in commands_in(code):
                self.script(text, depth + 1)

    def _fed(self, feed: Feed, depth: int, name: str) -> None:
        if feed is False:
            self._hide(f"what {name} is given to run")
        elif feed:
            self.script(feed, depth + 1)

    def _record(self, command: tuple[str, ...]) -> None:
        self._chars += sum(map(len, command))
        if self._chars > READ_CHARS:
            self.is_too_much = True
        else:
            self.found[command] = None

    def _meant(self, name: str) -> list[str]:
        """The names that wildcards may stand for; a `*` alone is hardly ever a program."""
        if not _MARK.search(name):
            return []
        pattern = "".join(_literally(part) for part in re.split("(\0.)", name)).replace("[^", "[!")
        candidates = {*self.names, *RUNNERS} if _MARK.sub("", name).strip("]") else self.names
        return [known for known in candidates if fnmatchcase(known, pattern)]


def _literally(part: str) -> str:
    """A piece of a name as `fnmatch` reads it."""
    return part[1] if part.startswith("\0") else re.sub(r"[*?\[]", lambda found: f"[{found[0]}]", part)


def _word_values(words: list[Node], scope: Scope) -> list[Values]:
    return [values(word, scope) for word in words]


def _known(text: str | None) -> Feed:
    return False if text is None else text
