"""What a program is called with beside its world, and how it comes to each run anew. Pure but for what is drawn.

Invariant: nothing that a run may change is seen by another one. Plain literals are copied for each run; whatever else
Hypothesis drew is drawn again, from the choices by which it came about the first time (`choices`), or copied where this
Hypothesis does not let that be done. Arguments that whoever calls has given are theirs, and are handed on as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import Error as CannotCopy
from copy import deepcopy
from math import isfinite
from typing import Any, Final

from attrs import field, frozen

from kesoku_actors.harness.errors import HarnessError

_PLAIN: Final = (str, bytes, int, float, bool, type(None))
_OF_HYPOTHESIS: Final = "hypothesis.errors"
_DRAWS: Final = ("Frozen", "InvalidState")
"""What Hypothesis raises when somebody draws from something that was drawn before."""
OTHER_STRATEGIES: Final = "the strategies that draw its inputs were changed since the token was written"

Chosen = bool | int | float | str | bytes
"""One choice of Hypothesis's."""


@frozen(kw_only=True)
class Draws:
    """How Hypothesis came to the drawn arguments of one input."""

    chosen: tuple[Chosen, ...]
    asked: str
    """A digest of what the strategies asked to have chosen: others that ask otherwise are not those."""
    value: str = ""
    """A digest of what came of it; empty where it is said in other words each time, as a default that is an id."""
    version: str = ""
    """Of Hypothesis."""


@frozen(kw_only=True)
class Inputs:
    """One set of arguments."""

    fixed: Mapping[str, Any] = field(factory=dict)
    """Given by whoever calls, as pytest's fixtures are."""
    drawn: Mapping[str, Any] = field(factory=dict)
    """Drawn by Hypothesis; told in reports, and no run is given these very objects if they can be drawn again."""
    draws: Draws | None = None
    """None: they are literals, or cannot be drawn again."""

    @property
    def named(self) -> dict[str, Any]:
        """All of them, by name."""
        return {**self.fixed, **self.drawn}

    def maker(self, strategies: Mapping[str, Any]) -> Callable[[], dict[str, Any]]:
        """Return what makes the arguments of one run. Raises `HarnessError` for values that cannot be had anew."""
        if self.draws is None or is_literal(self.drawn):
            return self._copied
        from kesoku_actors.harness.choices import drawn_again

        chosen = self.draws.chosen
        return lambda: {**self.fixed, **drawn_again(strategies, chosen).values}

    def _copied(self) -> dict[str, Any]:
        try:
            return {**self.fixed, **deepcopy(dict(self.drawn))}
        except (TypeError, CannotCopy) as error:
            raise HarnessError(f"drawn inputs can be had anew neither by Hypothesis nor as a copy: {error}") from error


def is_literal(value: Any) -> bool:
    """Return whether a value is made of plain literals alone, and comes out of its text as it was."""
    match value:
        case float() if not isfinite(value):
            return False
        case list() | tuple() | set():
            return type(value) in (list, tuple, set) and all(map(is_literal, value))
        case dict():
            return type(value) is dict and all(is_literal(key) and is_literal(one) for key, one in value.items())
        case _:
            return type(value) in _PLAIN


def draws_while_it_runs(error: BaseException) -> str:
    """Return what to say when a program fails as it draws from Hypothesis while it runs; else nothing."""
    if type(error).__module__ != _OF_HYPOTHESIS or type(error).__name__ not in _DRAWS:
        return ""
    return (
        "the program draws from Hypothesis while it runs, as with st.data(), st.functions() or st.randoms(): what is "
        "drawn there depends on the schedule. Draw a list of values before, and take them from it"
    )
