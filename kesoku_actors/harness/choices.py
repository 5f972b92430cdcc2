"""Values that Hypothesis drew, drawn again from its choices: the one module that knows private parts of it.

Whatever strategies make, they make from a row of plain choices: numbers, texts, yes or no. From the same row they make
an equal value, in another process too, which nobody has seen before; so a row stands for a value that cannot be written
down, and each run has one of its own.

What is private is taken by name and tried out once (`why_not`); a Hypothesis without it still draws, and then only
literals go into tokens.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from typing import Any, Final

import hypothesis
from attrs import frozen
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException, StopTest

from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.inputs import OTHER_STRATEGIES, Chosen, Draws

TRIED: Final = ("6.150", "6.170")
"""The oldest and the newest Hypothesis that this was tried with."""
_PRIVATE: Final = (
    ("hypothesis.control", "BuildContext"),
    ("hypothesis.control", "current_build_context"),
    ("hypothesis.internal.conjecture.data", "ConjectureData"),
)
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]+")
_WORD: Final = re.compile(r"\w+|[^\w\s]")
_OF_A_STRATEGY: Final = (AssertionError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a strategy may raise that is given choices of another one."""


class CannotDraw(HarnessError):
    """The strategies make nothing of these choices: they are not those that the choices were made for."""


@frozen(kw_only=True)
class Again:
    """What was drawn again."""

    values: dict[str, Any]
    nodes: tuple[Any, ...]
    """What was asked, and what was chosen."""
    fits: bool
    """Whether each choice is one of those that were asked for, and none was left over."""

    @property
    def asked(self) -> str:
        """A digest of what was asked."""
        return _short(repr([(node.type, sorted(node.constraints.items())) for node in self.nodes]))


def recorded(strategies: Mapping[str, Any], drawn: Mapping[str, Any]) -> Draws | None:
    """Return how the test that runs came to its arguments; none when they cannot be drawn again."""
    if why_not():
        return None
    chosen = tuple(_private("current_build_context")().data.choices)
    try:
        again = drawn_again(strategies, chosen)
    except CannotDraw:
        return None
    if not again.fits:
        return None
    value = _digest(drawn)
    return Draws(
        chosen=chosen,
        asked=again.asked,
        value=value if value == _digest(again.values) else "",
        version=hypothesis.__version__,
    )


def drawn_again(strategies: Mapping[str, Any], chosen: Sequence[Chosen]) -> Again:
    """Draw from the strategies what these choices make of them. Raises `CannotDraw`."""
    data = _private("ConjectureData").for_choices(tuple(chosen))
    try:
        with _private("BuildContext")(data, wrapped_test=drawn_again):
            values = {name: data.draw(strategy) for name, strategy in strategies.items()}
        data.freeze()
    except (StopTest, HypothesisException, *_OF_A_STRATEGY) as error:
        raise CannotDraw(f"the strategies make nothing of these choices: {type(error).__name__}: {error}") from error
    nodes = data.nodes
    return Again(values=values, nodes=nodes, fits=data.misaligned_at is None and len(nodes) == len(chosen))


def doubt(draws: Draws, again: Again) -> str:
    """Return why what was drawn again is not what it was; empty when it is."""
    if again.fits and again.asked == draws.asked and draws.value in ("", _digest(again.values)):
        return ""
    said = OTHER_STRATEGIES
    if draws.version != hypothesis.__version__:
        said += f", or draw otherwise: it was written with Hypothesis {draws.version}, this is {hypothesis.__version__}"
    return said


@cache
def why_not() -> str:
    """Return why values cannot be drawn again with the installed Hypothesis; empty when they can."""
    known = f"this harness knows the choices of Hypothesis {TRIED[0]} to {TRIED[1]}; installed is"
    for module, name in _PRIVATE:
        if find_spec(module) is None or not hasattr(importlib.import_module(module), name):
            return f"{known} {hypothesis.__version__}, which has no `{module}.{name}`"
    chosen = (True, 3, "x")
    strategies = {"a": st.booleans(), "b": st.integers(0, 10), "c": st.text(max_size=2)}
    try:
        again = drawn_again(strategies, chosen)
        keeps_them = again.fits and tuple(again.values.values()) == chosen
    except (CannotDraw, AttributeError, TypeError) as error:
        return f"{known} {hypothesis.__version__}, which draws in another way ({error})"
    return "" if keeps_them else f"{known} {hypothesis.__version__}, which makes other values of the same choices"


@cache
def _private(name: str) -> Any:
    module = next(module for module, one in _PRIVATE if one == name)
    return getattr(importlib.import_module(module), name)


def _digest(values: Mapping[str, Any]) -> str:
    """Return a digest of values by the words of their text: where they stand in memory and in a set is no matter."""
    return _short(repr(sorted(_WORD.findall(_ADDRESS.sub("", repr(dict(values)))))))


def _short(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]
