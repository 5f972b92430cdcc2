"""Sending to the store until it answers: a lost reply is *unknown*, so the same command is sent again (C10).

Only for commands that may be sent twice. Other faults are raised: damage ends the process (C8).
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import trio

from kesoku_actors.actors import ActorStopped, AskTimeout
from kesoku_actors.log import Logger
from kesoku_actors.store.port import StoreBusy

T = TypeVar("T")

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0


async def until_answered(send: Callable[[], Awaitable[T]], log: Logger, what: str, *, most_s: float = math.inf) -> T:
    """Return the store's answer, however often the store restarts or is busy meanwhile.

    Where it has none within `most_s` seconds, raises what the last try did.
    """
    pauses, latest = _pauses(), trio.current_time() + most_s
    while True:
        try:
            return await send()
        except (ActorStopped, AskTimeout, StoreBusy) as error:
            pause_s = next(pauses)
            if trio.current_time() + pause_s > latest:
                raise
            await _pause(pause_s, log, what, error)


async def until_known(send: Callable[[], Awaitable[T]], log: Logger, what: str) -> T:
    """Return the store's answer, however often the store restarts; for an asker who would rather hear that it is busy.

    Raises `StoreBusy`, and `ActorStopped` when the store is gone for good.
    """
    pauses: Iterator[float] | None = None
    while True:
        try:
            return await send()
        except (ActorStopped, AskTimeout) as error:
            if isinstance(error, ActorStopped) and error.for_good:
                raise
            pauses = pauses or _pauses()
            await _pause(next(pauses), log, what, error)


def _pauses() -> Iterator[float]:
    pause_s = FIRST_PAUSE_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


async def _pause(pause_s: float, log: Logger, what: str, error: Exception) -> None:
    log.info("the store did not answer, sending again", what=what, error=str(error))
    await trio.sleep(pause_s)
