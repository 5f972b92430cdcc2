"""The time to stop is divided, never exceeded (C7)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.app.graces import STOP_S, divide


def test_started_tools_have_three_minutes_by_default() -> None:
    assert divide(STOP_S).tools_s == 180.0


@given(st.floats(min_value=0.0, max_value=1e6))
def test_everybody_has_ended_before_the_time_is_over(stop_s: float) -> None:
    graces = divide(stop_s)
    assert stop_s / 2 <= graces.tools_s <= graces.tools_s + graces.ending_s <= graces.workers_s <= stop_s
