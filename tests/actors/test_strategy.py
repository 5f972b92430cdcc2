"""The pure decisions: groups of a restart, the window of the intensity, the order of steps."""

from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.actors import Phase, Restart, Strategy
from kesoku_actors.actors.order import Rest, Standing, Start, Stop, Wanted, next_step
from kesoku_actors.actors.strategy import STARTS_AGAIN, Ending, Member, plan, restarts_in_period

_kinds = st.lists(st.tuples(st.sampled_from(Restart), st.booleans()), min_size=1, max_size=6)


@given(_kinds, st.data(), st.sampled_from(Strategy))
def test_group_is_stopped_in_reverse_and_started_in_order(
    kinds: list[tuple[Restart, bool]], data: st.DataObject, strategy: Strategy
) -> None:
    failed = data.draw(st.integers(0, len(kinds) - 1))
    children = [Member(str(n), restart, alive and n != failed) for n, (restart, alive) in enumerate(kinds)]
    made = plan(strategy, children, str(failed))
    first = {Strategy.ONE_FOR_ONE: failed, Strategy.ONE_FOR_ALL: 0, Strategy.REST_FOR_ONE: failed}[strategy]
    last = failed + 1 if strategy is Strategy.ONE_FOR_ONE else len(kinds)
    assert [int(id) for id in made.stop] == [n for n in reversed(range(first, last)) if children[n].alive]
    assert [int(id) for id in made.start] == [n for n in range(first, last) if kinds[n][0] is not Restart.TEMPORARY]


def test_every_kind_has_a_rule_for_every_end_of_its_own() -> None:
    assert set(STARTS_AGAIN) == {(kind, end) for kind in Restart for end in (Ending.NORMAL, Ending.CRASHED)}


@given(st.lists(st.floats(0, 100), min_size=1).map(sorted), st.floats(0, 50))
def test_window_counts_the_restarts_of_the_last_period(times: list[float], period_s: float) -> None:
    counted: tuple[float, ...] = ()
    for number, now in enumerate(times):
        counted = restarts_in_period(counted, now, period_s)
        assert len(counted) == 1 + sum(time > now - period_s for time in times[:number])


_standings = st.lists(st.tuples(st.sampled_from(Phase), st.sampled_from(Wanted)), max_size=6).map(
    lambda rows: [Standing(str(n), phase, wanted) for n, (phase, wanted) in enumerate(rows)]
)


@given(_standings)
def test_nothing_starts_while_a_child_has_to_stop(children: list[Standing]) -> None:
    step = next_step(children)
    unwanted = [child for child in children if child.phase.alive and child.wanted is not Wanted.UP]
    if unwanted:
        expected = Rest.WAITING if unwanted[-1].phase is Phase.STOPPING else Stop(unwanted[-1].id)
        assert step == expected
    else:
        assert not isinstance(step, Stop)


@given(_standings)
def test_child_starts_only_when_every_wanted_child_before_it_is_ready(children: list[Standing]) -> None:
    step = next_step(children)
    if isinstance(step, Start):
        place = int(step.id)
        assert not children[place].phase.alive
        assert all(c.phase is Phase.RUNNING or c.wanted is Wanted.DOWN for c in children[:place])


@given(_standings)
def test_settled_means_that_every_child_is_where_it_shall_be(children: list[Standing]) -> None:
    if next_step(children) is Rest.SETTLED:
        for child in children:
            if child.wanted is Wanted.DOWN:
                assert not child.phase.alive
            else:
                assert child.phase is Phase.RUNNING
