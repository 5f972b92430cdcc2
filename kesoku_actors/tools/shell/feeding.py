"""What a command prints and what a command is fed, as far as that is written in the script. Pure.

`echo rm x | sh`, `sh <<EOF`, `cat <<< 'rm x' | bash`, `$(printf rm) x`: of such the text is known. Of everything else
it is not, and then whoever runs it has to be told so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from kesoku_actors.tools.shell.expansion import MAY_SPLIT, ONE_PIECE, Scope, ansi_decoded, combined, plain, values
from kesoku_actors.tools.shell.grammar import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

Feed = str | Literal[False] | None
"""A text that is known, `False` for one that is not, none where nothing is fed."""

_DEEPEST: Final = 12
_GROUPS: Final = frozenset({"subshell", "compound_statement", "list", "command_substitution", "process_substitution"})
_LASTS: Final = frozenset({"list", "negated_command", "pipeline"})
_ENDS: Final = frozenset({"command_substitution", "program", "heredoc_redirect"})
_REDIRECTIONS: Final = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_ESCAPED: Final = re.compile(r"\\([$`\\])")


def words_of(command: Node) -> list[Node]:
    """Return the words of a simple command, its name first: also those that stand behind a redirection."""
    found = [
        child
        for child, before in zip(command.children, (None, *command.children), strict=False)
        if child.type not in ("variable_assignment", *_REDIRECTIONS) and not _goes_on(before, child)
    ]
    for holder in (command, _redirected_statement(command)):
        for redirection in holder.children if holder is not None else ():
            if redirection.type == "file_redirect":
                found += _behind_target(redirection)
            elif redirection.type == "heredoc_redirect":
                found += [word for word in redirection.children_by_field_name("argument") if word not in found]
    return found


def stray_words(redirection: Node) -> list[Node]:
    """Return the words behind a redirection that belongs to no command: in `A=1 > f rm` they are one."""
    owner = redirection.parent
    while owner is not None and owner.type in ("redirected_statement", *_LASTS):
        bodies = [child for child in owner.children if child.is_named and child.type not in _REDIRECTIONS]
        if not bodies:
            break
        owner = bodies[-1]
    return [] if owner is not None and owner.type == "command" else _behind_target(redirection)


def _goes_on(before: Node | None, word: Node) -> bool:
    """Whether `word` is the rest of a redirection's target: `>$x.txt rm` runs `rm`."""
    return before is not None and before.type == "file_redirect" and before.end_byte == word.start_byte


def _redirected_statement(command: Node) -> Node | None:
    """The statement whose redirections are those of `command`: of several it is the last."""
    here = command
    while (parent := here.parent) is not None and parent.type in _LASTS and parent.children[-1] == here:
        here = parent
    return parent if parent is not None and parent.type == "redirected_statement" else None


def _behind_target(redirection: Node) -> list[Node]:
    words = [child for child in redirection.children if child.is_named and child.type != "file_descriptor"]
    closes = any(text_of(child) in (">&-", "<&-") for child in redirection.children)
    return words if closes else words[1:]


def printed_by(node: Node, scope: Scope, depth: int = 0) -> str | None:
    """Return what `node` prints, or none when that is not known."""
    if depth > _DEEPEST:
        return None
    if node.type == "command":
        return _printed_by_command(node, scope, depth)
    if node.type == "redirected_statement":
        return printed_by(node.children[0], scope, depth + 1)
    if node.type in _GROUPS:
        parts = [printed_by(child, scope, depth + 1) for child in node.children if child.is_named]
        return None if None in parts else "".join(part for part in parts if part)
    if node.type == "pipeline":
        last = [child for child in node.children if child.is_named][-1]
        return printed_by(last, scope, depth + 1)
    return None


def _printed_by_command(node: Node, scope: Scope, depth: int) -> str | None:
    choices = combined(values(word, scope) for word in words_of(node))
    if len(choices) != 1 or not choices[0]:
        return None
    name, *arguments = choices[0]
    if any(MAY_SPLIT in word or ONE_PIECE in word for word in arguments):
        return None
    match name.rpartition("/")[2], [plain(word) for word in arguments]:
        case "echo", [*words]:
            while words and re.fullmatch(r"-[neE]+", words[0]):
                words = words[1:]
            text = " ".join(words)
            return f"{ansi_decoded(text)}\n"
        case "printf", ["%s" | "%s\\n" | "%b" | "%b\\n" | "--", *words]:
            return "".join(f"{ansi_decoded(word)}\n" for word in words)
        case "printf", [text] if "%" not in text:
            return ansi_decoded(text)
        case (("cat" | "tee"), [*words]) if name == "tee" or not words or words == ["-"]:
            return feed_of(node, scope, depth + 1) or None
        case "which", [word]:
            return word
        case "command", ["-v", word]:
            return word
        case _:
            return None


def feed_of(node: Node, scope: Scope, depth: int = 0) -> Feed:
    """Return what stands on the input of `node`."""
    if depth > _DEEPEST:
        return False
    for holder in (node, _redirected_statement(node)):
        for child in holder.children if holder is not None else ():
            if (fed := _redirected(child, scope, depth)) is not None:
                return fed
    here = node
    while (parent := here.parent) is not None:
        if parent.type == "redirected_statement" and parent.children[0] == here:
            for child in parent.children[1:]:
                if (fed := _redirected(child, scope, depth)) is not None:
                    return fed
        elif parent.type == "pipeline":
            elements = [child for child in parent.children if child.is_named]
            at = elements.index(here)
            owner = parent.parent.parent if parent.parent is not None else None
            if at > 0:
                return _known(printed_by(elements[at - 1], scope, depth + 1))
            if parent.parent is not None and parent.parent.type == "heredoc_redirect" and owner is not None:
                return _known(printed_by(owner, scope, depth + 1))
        elif parent.type in ("function_definition", "process_substitution"):
            return False
        if parent.type in _ENDS:
            return None
        here = parent
    return None


def _known(text: str | None) -> Feed:
    return False if text is None else text


def _redirected(redirection: Node, scope: Scope, depth: int) -> Feed:
    match redirection.type:
        case "heredoc_redirect":
            return heredoc_text(redirection)
        case "herestring_redirect":
            choices = combined([values(redirection.children[-1], scope)])
            text = " ".join(choices[0]) if len(choices) == 1 else MAY_SPLIT
            return False if MAY_SPLIT in text or ONE_PIECE in text else f"{plain(text)}\n"
        case "file_redirect" if any(text_of(child) == "<" for child in redirection.children):
            target = redirection.children[-1]
            if target.type == "process_substitution":
                return _known(printed_by(target, scope, depth + 1))
            return ""  # a file, which is a script as good as one that is named
        case _:
            return None


def heredoc_text(redirection: Node) -> str:
    """Return the body of a here-document as the command reads it, but for its expansions."""
    body = next((text_of(child) for child in redirection.children if child.type == "heredoc_body"), "")
    if text_of(redirection).startswith("<<-"):
        body = re.sub(r"^\t+", "", body, flags=re.M)
    return body if is_verbatim(redirection) else _ESCAPED.sub(r"\1", body)


def is_verbatim(redirection: Node) -> bool:
    """Whether nothing is expanded in the here-document, because the word at its start is quoted."""
    return any(
        child.type == "heredoc_start" and re.search(r"['\"\\]", text_of(child)) for child in redirection.children
    )
