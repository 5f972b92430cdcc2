"""The prompt of a one-shot chat: an argument, or all of standard input.

What cannot be a prompt is a `UsageError` before anything is opened or written: none at all, a blank one, bytes that
are not UTF-8, more than `LARGEST_PROMPT` bytes.
"""

from __future__ import annotations

import sys
from typing import Final

from kesoku_actors.errors import UsageError

LARGEST_PROMPT: Final = 8 << 20
"""Bytes. A book has about one million."""
_HOW: Final = 'give it as an argument, {} chat "...", or pipe it in'


def read_prompt(argument: str | None, program: str) -> str:
    """Return the prompt of `argument`, or of standard input when it is absent or `-`, without its last line end.

    `program` is how its reader calls us, for what to do instead.
    """
    how = _HOW.format(program)
    if argument is None or argument == "-":
        content = _standard_input(how, asked_for=argument == "-")
        text = _decoded(content, "standard input").removesuffix("\n").removesuffix("\r")
    else:
        # What the shell passed on without being UTF-8 arrives as lone surrogates.
        content = argument.encode("utf-8", "surrogateescape")
        text = _decoded(content, "the prompt")
    if len(content) > LARGEST_PROMPT:
        raise UsageError(f"the prompt is longer than {LARGEST_PROMPT >> 20} MiB; put it into a file and name the file")
    if not text.strip():
        raise UsageError(f"the prompt is empty; {how}")
    return text


def _standard_input(how: str, *, asked_for: bool) -> bytes:
    if sys.stdin is None:
        raise UsageError(f"no prompt, and standard input is closed; {how}")
    if sys.stdin.isatty() and not asked_for:
        raise UsageError(f"no prompt; {how}")
    try:
        return sys.stdin.buffer.read(LARGEST_PROMPT + 1)
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error.strerror}; {how}") from None


def _decoded(content: bytes, what: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(content) > LARGEST_PROMPT:  # cut inside a character; its length is what is wrong with it
            return ""
        wrong = content[error.start]
        raise UsageError(f"{what} is not UTF-8: byte 0x{wrong:02x} at {error.start}; convert it first") from None
