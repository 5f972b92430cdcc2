"""Tokens: any schedule goes into one and comes out again; what is none is told."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.harness.schedule import BadToken, Choice, Schedule, fingerprint_of, schedule_of

CHOICES = st.integers(1, 5_000).flatmap(lambda ways: st.builds(Choice, st.integers(0, ways - 1), st.just(ways)))
SCHEDULES = st.builds(Schedule, st.lists(CHOICES, max_size=200).map(tuple))


@given(SCHEDULES, st.text(max_size=20))
def test_a_schedule_comes_out_of_its_token(schedule: Schedule, source: str) -> None:
    token = schedule.token(fingerprint_of(source))
    assert token.startswith("ka1.")
    assert all(char.isalnum() or char in "-_." for char in token)
    assert schedule_of(f" {token}\n") == (fingerprint_of(source), schedule)


@pytest.mark.parametrize("text", ["", "ka1", "ka1.x", "ka1.x.!!", "ka1.x.AAAA", "ka9.x.eJwDAAAAAAE", "a.b.c.d"])
def test_what_is_no_token_is_told(text: str) -> None:
    with pytest.raises(BadToken):
        schedule_of(text)


@given(st.text(max_size=40))
def test_any_text_is_a_token_or_told(text: str) -> None:
    with suppress(BadToken):
        schedule_of(text)
