"""Clock, ids and randomness as injected values, so that every run can be replayed.

A component takes a `World` and never reads the wall clock, makes an id or draws a number by itself. `Clock.wall`
is UTC seconds (what people see, M1); `Clock.monotonic` is seconds of an arbitrary origin (durations, deadlines).
Ids are time-ordered and unique: 48 bits of milliseconds, then a counter and randomness, as 26 characters of
Crockford's base 32; two ids of one source compare in the order they were made, also within one millisecond and
when the wall clock steps back.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from attrs import field

from kesoku_actors.values import frozen

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_COUNTER_BITS: Final = 22
_RANDOM_BITS: Final = 60
ID_LENGTH: Final = 26
_PAIRS: Final = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_SHIFTS: Final = tuple(range(5 * (ID_LENGTH - 2), -1, -10))


@frozen(kw_only=True)
class Clock:
    """Two readings of time; both in seconds."""

    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic


@frozen(kw_only=True)
class IdSource:
    """Makes time-ordered unique ids. Not safe for concurrent use by several threads without a lock of their own.

    The last value given is kept in a one-element list: the source is a value that is passed on, its memory is
    its own.
    """

    clock: Clock
    rng: random.Random
    _last: list[tuple[int, int]] = field(factory=lambda: [(0, 0)], init=False, repr=False)

    def __call__(self) -> str:
        """Return the next id: 26 characters, larger than every id this source gave before."""
        millisecond = int(self.clock.wall() * 1000)
        last, count = self._last[0]
        if millisecond > last:
            last, count = millisecond, self.rng.getrandbits(_COUNTER_BITS - 1)
        else:
            count += 1
            if count >> _COUNTER_BITS:
                last, count = last + 1, 0
        self._last[0] = (last, count)
        number = (last << _COUNTER_BITS | count) << _RANDOM_BITS | self.rng.getrandbits(_RANDOM_BITS)
        return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])


@frozen(kw_only=True)
class World:
    """What a component may know of the world outside: time, ids, randomness."""

    clock: Clock
    ids: IdSource
    rng: random.Random


def real_world() -> World:
    """Return the machine's own clock and randomness."""
    clock, rng = Clock(), random.Random()
    return World(clock=clock, ids=IdSource(clock=clock, rng=rng), rng=rng)


def seeded_world(seed: int, clock: Clock | None = None) -> World:
    """Return a world whose ids and draws follow from `seed`; `clock` defaults to the machine's."""
    rng, clock = random.Random(seed), clock or Clock()
    return World(clock=clock, ids=IdSource(clock=clock, rng=rng), rng=rng)
