"""A day of the soak with few sessions, and its bounds; `scripts/soak` is the week."""

from __future__ import annotations

import pytest
from attrs import evolve

from tests.properties.daemon.soak_gauge import BOUNDED, Gauge, missed
from tests.properties.daemon.soak_week import soak

FLAT = Gauge(
    day=1,
    resident_mib=100.0,
    traced_mib=20.0,
    tasks=100,
    descriptors=20,
    workers=0,
    store_mib=1.0,
    lives=1,
    said=1,
    asked=1,
    failed=0,
    steps=1,
    seconds=1.0,
)


def test_after_a_day_of_failures_and_kills_every_message_has_ended_and_nobody_works():
    [gauge] = soak(days=1, sessions=5, seed=7, tell=lambda _gauge: None)
    assert gauge.said > 20
    assert gauge.failed > 0
    assert gauge.lives == 7
    assert gauge.workers == 0


@pytest.mark.parametrize("what", BOUNDED)
def test_what_grows_by_more_than_a_twentieth_since_the_second_day_is_named(what):
    days = [FLAT, FLAT, evolve(FLAT, **{what: getattr(FLAT, what) * 1.1})]
    assert [one.what for one in missed(days)] == [what]


def test_the_first_day_fills_caches_and_is_held_against_nothing():
    halves = {what: getattr(FLAT, what) / 2 for what in BOUNDED}
    assert list(missed([evolve(FLAT, **halves), FLAT, FLAT])) == []
    assert all(list(missed([FLAT] * count)) == [] for count in range(4))
