"""Classifies an error by its leaves, however deep exception groups nest them. Pure.

A nursery wraps what its tasks raise, one group for each nursery on the way, so the type of the outermost error says
nothing. Every decision about an error looks at the leaves, in the order a traceback prints them.
"""

from __future__ import annotations


def leaves(error: BaseException) -> tuple[BaseException, ...]:
    """Return the errors that are not groups, left to right; an error that is no group is its own leaf."""
    if not isinstance(error, BaseExceptionGroup):
        return (error,)
    return tuple(leaf for part in error.exceptions for leaf in leaves(part))


def has_leaf(error: BaseException, types: tuple[type[BaseException], ...]) -> bool:
    """Tell whether any leaf is an instance of one of `types`."""
    return any(isinstance(leaf, types) for leaf in leaves(error))


def is_ordinary(error: BaseException) -> bool:
    """Tell whether every leaf is an `Exception`.

    The others (KeyboardInterrupt, SystemExit, a stray Cancelled) are addressed to the program: no supervisor may
    answer one with a restart.
    """
    return all(isinstance(leaf, Exception) for leaf in leaves(error))
