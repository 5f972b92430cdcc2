"""What goes wrong in a soak, by the hour of the day: with the models, with the platform, with the program itself.

::

    09-10   the provider limits the rate          13-14   streams are cut
    11-12   the credentials are refused           15-16   streams stall
    17:00   the platform is away, twenty minutes  always  one inference, one send in fifty fails

By night nothing goes wrong.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

import trio
from attrs import define, field, frozen

from kesoku_actors.harness.world import World
from kesoku_actors.llm.classify import REMEDY
from kesoku_actors.llm.port import Emit, ProviderError, Reply, Request
from tests.properties.daemon.model import NotedModel
from tests.properties.daemon.platform import Platform
from tests.properties.daemon.script import End, How

HOUR_S: Final = 3_600.0
DAY_S: Final = 24 * HOUR_S
MORNING_H: Final = 8
EVENING_H: Final = 20
RARELY: Final = 0.02
AWAY_FROM_H: Final = 17.0
AWAY_UNTIL_H: Final = 17.0 + 1 / 3

KILLS_A_DAY: Final = 6
UNDISTURBED_DAYS: Final = 2
"""The first and the last days of a soak in which the program is not killed: one life has to last, for what only a long
one shows; and on the second day and on the last a life of the same age is measured, whose caches hold as much."""


@frozen
class Trouble:
    """How a provider fails for an hour."""

    kind: str
    rate: float
    retry_after_s: float | None = None
    is_late: bool = False
    """Behind the answer, whose stream is cut."""


ALWAYS: Final = Trouble("overloaded", RARELY)
TROUBLES: Final[Mapping[int, Trouble]] = {
    9: Trouble("rate_limit", 0.6, retry_after_s=20.0),
    11: Trouble("auth", 1.0),
    13: Trouble("cut", 0.4, is_late=True),
    15: Trouble("stall", 0.2),
}
"""By the hour."""


def hour_of(world: World) -> float:
    """Return the hour of the day, 0 to 24, of the clock that does not jump."""
    return (world.clock.now() % DAY_S) / HOUR_S


def is_day(world: World) -> bool:
    """Tell whether people are awake."""
    return MORNING_H <= hour_of(world) < EVENING_H


@define(eq=False)
class SoakModel(NotedModel):
    """The scripted model behind a provider that fails as the hour has it."""

    asked: int = field(default=0, init=False)
    failed: int = field(default=0, init=False)

    async def infer(self, request: Request, emit: Emit) -> Reply:
        """Play what the scenario has for the request, if the provider lets it. Raises `ProviderError`."""
        self.asked += 1
        trouble = TROUBLES.get(int(hour_of(self.world)), ALWAYS)
        happens = is_day(self.world) and self.world.fault(trouble.kind, trouble.rate)
        if happens and not trouble.is_late:
            await self._fail(trouble)
        reply = await super().infer(request, emit)
        if happens:
            await self._fail(trouble)
        return reply

    def forget(self) -> None:
        """Drop what it remembers of its requests."""
        self.requests.clear()
        self.cancelled.clear()

    async def _fail(self, trouble: Trouble) -> None:
        self.failed += 1
        if trouble.kind == "stall":
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()
        raise ProviderError(
            f"the provider says {trouble.kind}",
            remedy=REMEDY[trouble.kind],
            kind=trouble.kind,
            retry_after_s=trouble.retry_after_s,
        )


def weather_of(platform: Platform) -> None:
    """Let sends fail as the hour has it."""
    hour = hour_of(platform.world)
    is_away = AWAY_FROM_H <= hour < AWAY_UNTIL_H
    platform.fails = 1.0 if is_away else RARELY if is_day(platform.world) else 0.0


def ends_of(days: int, rng: random.Random) -> tuple[End, ...]:
    """Return when the program is killed and how: the seconds from the beginning of the soak, in order."""
    disturbed = range(UNDISTURBED_DAYS, days - UNDISTURBED_DAYS) or range(1)
    hours = (24 * day + rng.uniform(MORNING_H, EVENING_H) for day in disturbed for _ in range(KILLS_A_DAY))
    return tuple(End(rng.choice(list(How)), hour * HOUR_S) for hour in sorted(hours))
