"""Ids are time-ordered and unique; a seeded world repeats itself."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.clock import ID_LENGTH, Clock, IdSource, seeded_world


@given(st.lists(st.floats(min_value=0, max_value=2e9), min_size=1, max_size=50), st.integers())
def test_ids_grow_whatever_the_wall_clock_does(readings: list[float], seed: int) -> None:
    left = list(readings)
    clock = Clock(wall=lambda: left.pop(0) if len(left) > 1 else left[0])
    source = IdSource(clock=clock, rng=random.Random(seed))
    ids = [source() for _ in range(len(readings) + 5)]
    assert ids == sorted(set(ids))
    assert {len(one) for one in ids} == {ID_LENGTH}


def test_a_counter_that_is_full_moves_to_the_next_millisecond() -> None:
    class AllOnes(random.Random):
        def getrandbits(self, bits: int, /) -> int:
            return (1 << bits) - 1

    source = IdSource(clock=Clock(wall=lambda: 1.0), rng=AllOnes())
    source._last[0] = (1000, (1 << 22) - 2)
    ids = [source() for _ in range(4)]
    assert ids == sorted(set(ids))


def test_a_seed_repeats_its_ids() -> None:
    clock = Clock(wall=lambda: 1.0)
    first, second = seeded_world(7, clock), seeded_world(7, clock)
    assert [first.ids() for _ in range(3)] == [second.ids() for _ in range(3)]
