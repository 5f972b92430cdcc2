"""What failed, as a word that stays the same while a counterexample shrinks. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from traceback import extract_tb

from kesoku_actors.harness.errors import HarnessError, RunEnded

_LONGEST = 80


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


def _name(error: BaseException) -> str:
    kind = type(error).__name__
    if isinstance(error, HarnessError | RunEnded):
        return kind
    said = str(error).partition("\n")[0][:_LONGEST]
    if isinstance(error, AssertionError) and said:
        return f"{kind}: {said}"
    frames = extract_tb(error.__traceback__)
    return f"{kind} at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else kind
