"""The circuit breaker, pure: whatever the server does, it is asked seldom while it is down (R13)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.llm.breaker import LONGEST_PAUSE_S, Breaker, Policy

POLICY = Policy(failures=3, probe_every_s=30.0, concurrency=8)


def opened(now: float = 0.0) -> Breaker:
    breaker = Breaker()
    for _ in range(POLICY.failures):
        breaker = breaker.failed(POLICY, now, None)
    return breaker


def test_it_opens_after_failures_in_a_row_and_not_before() -> None:
    breaker = Breaker().failed(POLICY, 0.0, None).failed(POLICY, 0.0, None)
    assert breaker.may_begin(POLICY, 0, 0.0)
    assert breaker.succeeded(POLICY).failed(POLICY, 0.0, None).may_begin(POLICY, 0, 0.0)
    assert not breaker.failed(POLICY, 0.0, None).may_begin(POLICY, 0, 0.0)


def test_open_lets_one_probe_through_each_thirty_seconds() -> None:
    breaker = opened()
    assert not breaker.may_begin(POLICY, 0, 29.9)
    assert breaker.may_begin(POLICY, 0, 30.0)
    probing = breaker.begun(POLICY, 30.0)
    assert not probing.may_begin(POLICY, 0, 59.9)
    assert probing.failed(POLICY, 31.0, None).may_begin(POLICY, 0, 60.0)


def test_after_a_success_the_number_at_once_doubles_until_it_is_full() -> None:
    breaker = opened().succeeded(POLICY)
    widths = []
    for _ in range(5):
        widths.append(max(running + 1 for running in range(8) if breaker.may_begin(POLICY, running, 0.0)))
        breaker = breaker.succeeded(POLICY)
    assert widths == [1, 2, 4, 8, 8]


def test_one_failure_while_ramping_opens_it_again() -> None:
    assert not opened().succeeded(POLICY).failed(POLICY, 0.0, None).may_begin(POLICY, 0, 29.0)


def test_a_retry_after_pauses_everything_and_is_capped() -> None:
    breaker = Breaker().failed(POLICY, 100.0, 5.0)
    assert not breaker.may_begin(POLICY, 0, 104.9)
    assert breaker.may_begin(POLICY, 0, 105.0)
    assert breaker.next_look(100.0) == 105.0
    assert Breaker().failed(POLICY, 0.0, 1e9).may_begin(POLICY, 0, LONGEST_PAUSE_S)


@given(
    st.lists(
        st.tuples(st.floats(0.0, 40.0), st.sampled_from(["begin", "succeed", "fail", "wait"]), st.floats(0.0, 90.0)),
        max_size=60,
    )
)
def test_never_more_at_once_than_allowed_nor_more_than_a_probe_each_period(
    events: list[tuple[float, str, float]],
) -> None:
    breaker, now, running = Breaker(), 0.0, 0
    probes: list[float] = []
    for passed, event, asked in events:
        now += passed
        if event == "succeed" and running:
            running, breaker = running - 1, breaker.succeeded(POLICY)
            probes.clear()
        elif event == "fail" and running:
            running, breaker = running - 1, breaker.failed(POLICY, now, asked)
        elif event == "begin" and breaker.may_begin(POLICY, running, now):
            if breaker.next_probe is not None:
                assert not probes or now - probes[-1] >= POLICY.probe_every_s
                probes.append(now)
            running, breaker = running + 1, breaker.begun(POLICY, now)
        assert 0 <= running <= POLICY.concurrency
        look = breaker.next_look(now)
        if running < POLICY.concurrency and not breaker.may_begin(POLICY, running, now) and look < float("inf"):
            assert breaker.may_begin(POLICY, 0, look)
