"""What people do in a soak: a few conversations a day in each room, at any hour between morning and evening.

Each room's session is cleared once a day, so that the load is steady and a session lives about a day.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from kesoku_actors.protocol import BusyMode
from tests.properties.daemon import commands, model
from tests.properties.daemon.script import (
    PAUSES,
    Action,
    Clear,
    File,
    Force,
    Mode,
    Notice,
    Race,
    Repeat,
    Say,
    Skew,
    Stop,
)
from tests.properties.daemon.soak_weather import EVENING_H, HOUR_S, MORNING_H

CONVERSATIONS: Final = 3
LONGEST: Final = 8
SKEWS_S: Final = (-3_600.0, -0.5, 0.0, 0.5, 3_600.0)

STOP: Final = Stop()
ACTIONS: Final[tuple[tuple[int, tuple[Action, ...]], ...]] = (
    (20, (Say(model.HELLO),)),
    (10, (Say(model.TALK),)),
    (10, (Say(model.WORK),)),
    (6, (Say(model.BOTH),)),
    (6, (Say(model.CHAIN),)),
    (5, (Say(model.RISKY),)),
    (5, (Say(model.THREAD),)),
    (4, (Say(model.LONG),)),
    (1, (Say(model.ENDLESS),)),
    (1, (Say(model.HANG),)),
    (4, (Say(commands.COUNT), Say(commands.FAIL), Say(commands.PAIR))),
    (3, (Say(commands.DEAF), Say(commands.CLAN), Say(commands.SERVE))),
    (2, (Say(commands.BUILD), Say(commands.BEHIND))),
    (5, tuple(map(Repeat, (1, 2, 3)))),
    (4, (Notice(wakes=True), Notice(wakes=False))),
    (4, (STOP,)),
    (3, (Force(0.0),)),
    (3, tuple(map(Mode, BusyMode))),
    (3, (Race((model.HELLO, model.TALK)),)),
    (3, tuple(File(model.HELLO, saved_after_s) for saved_after_s in (0.0, 2.0, 61.0, None))),
    (1, tuple(map(Skew, SKEWS_S))),
)
"""How often, and what; one object each, as the platform keeps what was done."""
CLEAR: Final = Clear()
_WEIGHTS: Final = tuple(weight for weight, _ in ACTIONS)


def day_of(rng: random.Random) -> Iterator[tuple[float, Action]]:
    """Yield what somebody does on one day, each with the seconds since midnight, in order."""
    begins = sorted(rng.uniform(MORNING_H, EVENING_H) * HOUR_S for _ in range(CONVERSATIONS))
    clears_behind = rng.randrange(CONVERSATIONS)
    at = 0.0
    for number, begin in enumerate(begins):
        at = max(at, begin)
        for _ in range(rng.randint(3, LONGEST)):
            [(_weight, kinds)] = rng.choices(ACTIONS, _WEIGHTS)
            action = rng.choice(kinds)
            if isinstance(action, Force):  # it is for the stop before it, and not too soon (I7)
                yield at, STOP
                at += 1.1
            yield at, action
            at += rng.choice(PAUSES)
        if number == clears_behind:
            yield at, CLEAR
