"""What failed, as a word that stays the same while a counterexample shrinks, and in every process.

An assertion without a message is named by the line where it begins: with pytest, which writes assertions anew, it says
its values and is raised at another line than without.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from dis import opmap
from functools import cache
from pathlib import PurePath
from traceback import extract_tb

from kesoku_actors.harness.errors import HarnessError, RunEnded

_LONGEST = 80
_BY_PYTEST = "assert "
"""So begins what pytest says for an assertion without a message: the values, which only a process under it knows."""
_RAISE = opmap["RAISE_VARARGS"]


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions in a group, or the exception itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    elif type(error).__name__ == "TrioInternalError" and error.__cause__ is not None:
        yield from leaves(error.__cause__)
    else:
        yield error


def failure_of(error: BaseException) -> str:
    """Return the name of a failure: the types of its leaves, with where each was raised or what it says."""
    return " + ".join(sorted({_name(leaf) for leaf in leaves(error)}))


def was_raised(error: BaseException) -> bool:
    """Return whether a line of the program raises it, as with `raise KeyboardInterrupt`; else it came from outside."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return False
    code = last.tb_frame.f_code
    return code.co_code[last.tb_lasti] == _RAISE and "trio" not in PurePath(code.co_filename).parts


def _name(error: BaseException) -> str:
    kind = type(error).__name__
    if isinstance(error, HarnessError | RunEnded | RecursionError):
        return kind  # where the stack is full depends on who watches
    said = str(error).partition("\n")[0][:_LONGEST]
    if isinstance(error, AssertionError) and said and not said.startswith(_BY_PYTEST):
        return f"{kind}: {said}"
    frames = extract_tb(error.__traceback__)
    if not frames:
        return kind
    file, line = frames[-1].filename, frames[-1].lineno or 0
    if isinstance(error, AssertionError):
        line = next((begin for begin, end in _assertions(file) if begin <= line <= end), line)
    return f"{kind} at {PurePath(file).name}:{line}"


@cache
def _assertions(file: str) -> tuple[tuple[int, int], ...]:
    """Return the first and the last line of each assertion in a file; none where there is no source of it."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ()
    found = [one for one in ast.walk(tree) if isinstance(one, ast.Assert)]
    return tuple((one.lineno, one.end_lineno or one.lineno) for one in found)
