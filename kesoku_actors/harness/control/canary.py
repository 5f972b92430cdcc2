"""The promises of trio's loop that control relies on, tried out once per process before anything is explored.

trio's run queue is private: another version may take its batches in another way, and every exploration with it would
be worth nothing. So small programs are run whose outcomes show each promise: a pass of the loop takes what the queue
yields and nothing else; wake-ups go to the end of it; the clock is asked when nothing is runnable; a deadline that is
reached early fires; and nothing runnable without a deadline is told as a deadlock.
"""

from __future__ import annotations

import gc
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any, Final

import trio

from kesoku_actors.harness.errors import Deadlock
from kesoku_actors.harness.failures import leaves
from kesoku_actors.harness.lanes import Ready
from kesoku_actors.harness.strategy import RunInfo, Strategy

TRIED: Final = ((0, 31), (0, 36))
"""The oldest and the newest trio that this was tried with."""


class _Chosen:
    """Chooses by a rule; ticks when it can, if it should."""

    sees_all = True

    def __init__(self, rule: Callable[[int], int], *, ticks: bool = False) -> None:
        self.rule, self.ticks = rule, ticks

    def begin(self, run: RunInfo) -> None: ...

    def choose(self, ready: Ready, *, may_tick: bool, step: int) -> int:
        return len(ready) if may_tick and self.ticks else self.rule(len(ready))


def _first(_count: int) -> int:
    return 0


def _last(count: int) -> int:
    return count - 1


async def _three(seen: list[str]) -> None:
    async def child(name: str) -> None:
        for number in range(2):
            seen.append(f"{name}{number}")
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        for name in "abc":
            nursery.start_soon(child, name)


async def _asleep(seen: list[str]) -> None:
    async def works() -> None:
        for _ in range(8):
            await trio.lowlevel.checkpoint()
        seen.append("worked")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(works)
        await trio.sleep(5)
        seen.append(f"slept {trio.current_time():g}")


async def _for_ever(_seen: list[str]) -> None:
    await trio.Event().wait()


_PROMISES: Final[tuple[tuple[str, Callable[[list[str]], Any], Strategy, list[str], type | None], ...]] = (
    ("tasks run in the order of the queue", _three, _Chosen(_first), ["a0", "b0", "c0", "a1", "b1", "c1"], None),
    ("the task that is chosen runs, alone", _three, _Chosen(_last), ["c0", "c1", "b0", "b1", "a0", "a1"], None),
    ("time passes when nothing is runnable", _asleep, _Chosen(_first), ["worked", "slept 5"], None),
    ("time passes early when it is chosen", _asleep, _Chosen(_first, ticks=True), ["slept 5", "worked"], None),
    ("a deadlock is noticed", _for_ever, _Chosen(_first), [], Deadlock),
)


Play = Callable[[Callable[[], Any], Strategy], Any]
"""Runs a program, and returns its `Run`."""


def broken_promise(play: Play) -> str | None:
    """Return the first promise that the installed trio does not keep."""
    promise = _first_broken(play)
    if promise is not None:
        _clear_away()
    return promise


def _clear_away() -> None:
    """Forget the tasks of a loop that broke down, unheard: what they say would hide the one line to be read."""
    heard = sys.unraisablehook
    sys.unraisablehook = lambda _unraisable: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()
    finally:
        sys.unraisablehook = heard


def _first_broken(play: Play) -> str | None:
    for promise, program, strategy, expected, ending in _PROMISES:
        seen: list[str] = []
        strategy.begin(RunInfo(number=0, rng=random.Random(0), length=10))
        try:
            error = play(lambda program=program, seen=seen: program(seen), strategy).error  # type: ignore[misc]  # defaults bind them
        except (AttributeError, TypeError, KeyError) as missing:
            return f"{promise} ({missing})"
        ended_with = {type(leaf) for leaf in leaves(error)} if error is not None else set()
        if seen != expected or ended_with != ({ending} if ending is not None else set()):
            return promise
    return None
