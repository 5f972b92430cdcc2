"""What foreign code raised, in words. Pure.

An error of a tool, of a module or of a class is foreign code too: asked for its text it may raise another one.
"""

from __future__ import annotations


def said_by(error: BaseException) -> str:
    """Return the text of an error; nothing when it has none, or cannot tell it."""
    try:
        return str(error)
    except BaseException as problem:
        if not isinstance(problem, Exception):
            raise
        return ""
