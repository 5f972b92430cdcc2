"""State machines of Hypothesis whose rules post to a program that lives on between them, under control.

    class Shop(StateMachine):
        async def start(self) -> None:                      # what lives as long as the machine does
            self.stock, self.sold = 1, []

        async def buy(self, who: str) -> None:
            if self.stock > 0:
                await trio.lowlevel.checkpoint()
                self.stock -= 1
                self.sold.append(who)

        @rule(who=st.sampled_from(["ann", "bob"]))
        def comes(self, who: str) -> None:
            self.start_soon(self.buy, who)                  # goes on beside the rules that follow

        @rule()
        def all_have_gone(self) -> None:
            self.settle()                                   # until nobody can run

        @invariant()
        def nothing_is_sold_twice(self) -> None:
            assert len(self.sold) <= 1

    TestShop = Shop.TestCase

Rules, bundles, preconditions, invariants and settings are Hypothesis's own. A rule never waits: with `do` it has a
function run to its end in the program, with `start_soon` it leaves one there, with `settle` it lets everybody run. Each
time the program goes on, Hypothesis draws in which order, from a plain one and a few events that disturb it: hold
whoever would be next, let time pass early, let a fault of `world` happen. So a failing machine shrinks to few rules and
few events, and the events are told in words above the rule in which they happened.

Time is virtual. It passes while something is waited for with `do`, and in `settle(within_s=...)`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, ClassVar, Final, TypeVar

from attrs import define, field, frozen
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.control import current_build_context
from hypothesis.stateful import RuleBasedStateMachine

from kesoku_actors.harness.allow import Allow
from kesoku_actors.harness.control import Limits
from kesoku_actors.harness.control.sitting import Sitting
from kesoku_actors.harness.faults import Fire
from kesoku_actors.harness.hold import Base, Hold
from kesoku_actors.harness.lanes import Lane, Ready
from kesoku_actors.harness.strategy import RunInfo
from kesoku_actors.harness.world import World

T = TypeVar("T")

_FURTHEST: Final = 40
"""Decisions of a piece at which an event may come."""
_NEAR: Final = 4
"""The first of them, at which every other event comes: most pieces are short."""
_MOST: Final = 2
"""Events of a piece."""
_STAYING: Final = "the task that ran last goes on until it waits"


class Kind(StrEnum):
    """What disturbs the plain order."""

    HOLD = "hold"
    TICK = "tick"
    FAULT = "fault"


@frozen
class Disturbance:
    """An event, before it is known whom it befalls."""

    at: int
    """At which decision of the piece; for a fault, the how-manieth time one is asked for; from 0."""
    kind: Kind


@frozen
class Piece:
    """How the program goes on, until it rests again."""

    base: Base = Base.FIFO
    disturbances: frozenset[Disturbance] = frozenset()


_EVENTS: Final = st.lists(
    st.integers(0, len(Kind) * _NEAR - 1) | st.integers(0, len(Kind) * _FURTHEST - 1), max_size=_MOST
)
_STAYS: Final = st.booleans()


def drawn_piece(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Piece:
    """Draw how a program goes on, in few and plain draws; they shrink to the plain order that nothing disturbs."""
    base = Base.STAY if draw(_STAYS) else Base.FIFO
    kinds = tuple(Kind)
    disturbances = (Disturbance(number // len(kinds), kinds[number % len(kinds)]) for number in draw(_EVENTS))
    return Piece(base, frozenset(disturbances))


@define(eq=False)
class Drawn:
    """The strategy that does as a piece says."""

    piece: Piece = field(factory=Piece)
    said: list[str] = field(factory=list)
    """The events that happened in this piece, in words."""
    _decisions: int = 0
    _asked: int = 0
    _held: dict[Lane, int] = field(factory=dict)
    """Who is held, and behind which step; the one that is held longest first."""
    _last: Lane | None = None

    sees_all = True

    def begin(self, run: RunInfo) -> None:
        """There is nothing to prepare."""

    def go_on(self, piece: Piece) -> None:
        """Begin another piece. Who is held stays so."""
        self.piece, self.said, self._decisions, self._asked = piece, [], 0, 0

    def choose(self, ready: Ready, *, may_tick: bool, step: int) -> int:
        """Return the first in order that is not held, or that was held longest when all are."""
        free = [lane for lane in self._in_order(ready) if self._held.get(lane) != lane.steps]
        if len(ready) > 1 or may_tick:
            number, self._decisions = self._decisions, self._decisions + 1
            if may_tick and self._is_disturbed(number, Kind.TICK):
                self.said.append("let time pass early")
                return len(ready)
            if len(free) > 1 and self._is_disturbed(number, Kind.HOLD):
                lane = free.pop(0)
                self._held[lane] = lane.steps
                self.said.append(str(Hold(lane.label, lane.steps)))
        self._last = free[0] if free else next(lane for lane in self._held if lane in ready)
        self._held.pop(self._last, None)
        return ready.index(self._last)

    def fires(self, fault: Fire) -> bool:
        """Tell whether a fault happens."""
        number, self._asked = self._asked, self._asked + 1
        happens = self._is_disturbed(number, Kind.FAULT)
        if happens:
            self.said.append(str(fault))
        return happens

    def _in_order(self, ready: Ready) -> list[Lane]:
        last = self._last
        if self.piece.base is Base.STAY and last is not None and last in ready:
            if ready[0] is not last and _STAYING not in self.said:
                self.said.append(_STAYING)
            return [last, *(lane for lane in ready if lane is not last)]
        return list(ready)

    def _is_disturbed(self, number: int, kind: Kind) -> bool:
        return Disturbance(number, kind) in self.piece.disturbances


class StateMachine(RuleBasedStateMachine):
    """A state machine with a program, which begins before anything is checked or done."""

    limits: ClassVar[Limits] = Limits()
    allow: ClassVar[Allow] = Allow()
    world: World
    """The world of the program, made before `start`."""

    def __init__(self) -> None:
        super().__init__()
        self._drawn = Drawn()
        self._sitting = Sitting(self._drawn, self.limits, self.allow)

    async def start(self) -> None:
        """Begin what lives as long as the machine does, in the nursery; to be overridden."""

    def start_soon(self, function: Callable[..., Awaitable[object]], *arguments: object, name: str = "") -> None:
        """Start a task beside the rules. It runs when the program goes on; an error of its own ends the machine."""
        self._begin()
        self._sitting.nursery.start_soon(function, *arguments, name=name or None)

    def do(self, function: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """Let everybody run until this function has ended, and return what it returns. Raises what it raises.

        Raises `Deadlock` when it can never end, and what a task raised that was started before.
        """
        self._begin()
        found: T = self._go_on(lambda: self._sitting.do(function, *arguments))
        return found

    def settle(self, within_s: float = 0.0) -> None:
        """Let everybody run until nobody can; meanwhile so many seconds pass. Raises what a task raised."""
        self._begin()
        self._go_on(lambda: self._sitting.settle(within_s))

    def check_invariants(self, *arguments: Any, **named: Any) -> None:
        """Begin the program, if it has not begun: invariants are checked before the first rule, too."""
        self._begin()
        super().check_invariants(*arguments, **named)

    def teardown(self) -> None:
        """End the program. Raises what it raises at its end."""
        self._sitting.end()

    def _begin(self) -> None:
        if not self._sitting.has_begun:
            self._go_on(lambda: self._sitting.begin(self._start))

    async def _start(self) -> None:
        self.world = World()
        await self.start()

    def _go_on(self, turn: Callable[[], T]) -> T:
        """Go on in an order that Hypothesis draws; tell what disturbed it."""
        self._drawn.go_on(drawn_piece(current_build_context().data.draw))
        try:
            return turn()
        finally:
            for said in self._drawn.said:
                note(f"# {said}")
