"""A strategy by its name, as on a command line: one of ours, or one of a person's own file or module.

`FILE.py:NAME` and `package.module:NAME` stand for a class or a function without arguments that makes a strategy: an
object with the methods `begin` and `choose`, as `strategy` tells. A name means the same in every process.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.origin import load
from kesoku_actors.harness.portfolio import DEEPEST, Portfolio, default_members
from kesoku_actors.harness.strategies import PCT, POS, SURW, Random, Shuffle, Strict
from kesoku_actors.harness.strategy import Strategy
from kesoku_actors.harness.systematic import HoldBound

NAMES: Final[dict[str, Callable[[], Strategy]]] = {
    "portfolio": Portfolio,
    "strict": Strict,
    "shuffle": Shuffle,
    "random": Random,
    "pct": PCT,
    "pos": POS,
    "surw": SURW,
    "hold": HoldBound,
}
"""What a strategy is called on a command line; `pct`, `hold` and `portfolio` may carry a number: `pct5`, `hold2`."""

_NUMBERED: Final = re.compile(r"(pct|hold|portfolio)([1-9])")


def strategy_named(name: str, *, shard: tuple[int, int] = (0, 1), holds: HoldBound | None = None) -> Strategy:
    """Return a fresh strategy of this name; `holds` is to be its member that leaves nothing out, if it has one.

    Raises `HarnessError` for a name that is none.
    """
    numbered = _NUMBERED.fullmatch(name)
    if ":" in name:
        return _own(name)
    if name == "portfolio":
        return Portfolio(default_members(holds or HoldBound(DEEPEST, shard=shard)))
    if numbered is not None and numbered[1] == "pct":
        return PCT(int(numbered[2]))
    if numbered is not None and numbered[1] == "portfolio":
        return Portfolio(default_members(HoldBound(int(numbered[2]), shard=shard)))
    if name == "hold" or numbered is not None:
        return HoldBound(int(numbered[2]) if numbered is not None else 1, shard=shard)
    if name in NAMES:
        return NAMES[name]()
    raise HarnessError(
        f"there is no strategy {name!r}; there are {', '.join(NAMES)}, pct2 to pct9, hold2, ..., and FILE.py:NAME"
    )


def _own(name: str) -> Strategy:
    """Return a fresh strategy of a person's own. Raises `HarnessError` for what is none."""
    where, _, what = name.rpartition(":")
    make: Any = getattr(load(where), what, None)
    if not callable(make):
        raise HarnessError(f"{where} has no class and no function {what!r} that would make a strategy")
    try:
        made: Any = make()
    except TypeError as error:
        raise HarnessError(f"{name} makes no strategy when it is called without arguments: {error}") from error
    missing = [method for method in ("begin", "choose") if not callable(getattr(made, method, None))]
    if missing:
        raise HarnessError(f"what {name} makes is no strategy: it has no method {' and no '.join(missing)}")
    strategy: Strategy = made
    return strategy
