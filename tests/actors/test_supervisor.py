"""What holds in an ordered tree: starts, stops, restarts, escalation."""

import contextvars
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kesoku_actors.actors import (
    ActorStopped,
    Cell,
    ChildReturned,
    ChildSpec,
    Phase,
    Restart,
    StartTimeout,
    Strategy,
    SupervisorSpec,
    SystemFailed,
)
from kesoku_actors.actors.testing import Crash, Echo, Keep, MemoryLog, Probe, ProbeCrash, running

Trace = list[tuple[str, str]]


def _ups(trace: Trace) -> str:
    return "".join(name for what, name in trace if what == "up")


def _probes(names: str) -> tuple[Trace, list[Probe]]:
    trace: Trace = []
    return trace, [Probe(name, trace) for name in names]


async def test_children_start_in_order_and_stop_in_reverse() -> None:
    trace, probes = _probes("abc")
    async with running(*(probe.spec() for probe in probes)):
        assert _ups(trace) == "abc"
    assert [name for what, name in trace if what == "down"] == ["c", "b", "a"]


async def test_child_starts_only_when_those_before_it_are_ready(nursery: trio.Nursery) -> None:
    trace, (a, b) = _probes("ab")
    a.hold()
    inside = trio.Event()

    async def run() -> None:
        async with running(a.spec(), b.spec()):
            inside.set()

    nursery.start_soon(run)
    await wait_all_tasks_blocked()
    assert trace == [("up", "a")]
    a.release()
    await inside.wait()
    assert _ups(trace) == "ab"


async def test_next_child_stops_only_when_those_behind_it_are_down(autojump_clock: trio.testing.MockClock) -> None:
    trace, (a, b) = _probes("ab")
    b.lingers = True
    async with running(a.spec(), b.spec(shutdown_s=9)):
        pass
    assert trace[-2:] == [("down", "b"), ("down", "a")]
    assert trio.current_time() == 9


@pytest.mark.parametrize(
    ("strategy", "failing", "ups"),
    [
        (Strategy.ONE_FOR_ONE, "b", "abcd b"),
        (Strategy.REST_FOR_ONE, "b", "abcd bcd"),
        (Strategy.REST_FOR_ONE, "d", "abcd d"),
        (Strategy.ONE_FOR_ALL, "b", "abcd abcd"),
    ],
)
async def test_restart_takes_along_the_group_of_the_strategy(strategy: Strategy, failing: str, ups: str) -> None:
    trace, probes = _probes("abcd")
    async with running(*(probe.spec() for probe in probes), strategy=strategy):
        del trace[:0]
        await probes["abcd".index(failing)].crash()
        await wait_all_tasks_blocked()
        assert _ups(trace) == ups.replace(" ", "")
        assert all(probe.alive for probe in probes)


async def test_group_stops_in_reverse_before_anything_starts() -> None:
    trace, probes = _probes("abc")
    async with running(*(probe.spec() for probe in probes), strategy=Strategy.ONE_FOR_ALL):
        trace.clear()
        await probes[0].crash()
        await wait_all_tasks_blocked()
        assert trace == [("down", "a"), ("down", "c"), ("down", "b"), ("up", "a"), ("up", "b"), ("up", "c")]


@pytest.mark.parametrize(
    ("restart", "how", "lives"),
    [
        (Restart.PERMANENT, "crash", 2),
        (Restart.PERMANENT, "finish", 2),
        (Restart.TRANSIENT, "crash", 2),
        (Restart.TRANSIENT, "finish", 1),
        (Restart.TEMPORARY, "crash", 1),
        (Restart.TEMPORARY, "finish", 1),
    ],
)
async def test_restart_kind_decides_on_another_life(restart: Restart, how: str, lives: int) -> None:
    probe, bystander = Probe("probe"), Probe("bystander")
    async with running(probe.spec(restart=restart), bystander.spec(), strategy=Strategy.ONE_FOR_ONE):
        await (probe.crash() if how == "crash" else probe.finish())
        await wait_all_tasks_blocked()
        assert probe.lives == lives
        assert bystander.lives == 1


async def test_temporary_sibling_stops_with_its_group_and_stays_down() -> None:
    a, b, c = (Probe(name) for name in "abc")
    async with running(
        a.spec(), b.spec(restart=Restart.TEMPORARY), c.spec(restart=Restart.TRANSIENT), strategy=Strategy.ONE_FOR_ALL
    ):
        await c.finish()
        await a.crash()
        await wait_all_tasks_blocked()
        assert (a.lives, b.lives, c.lives) == (2, 1, 2)
        with pytest.raises(ActorStopped):
            b.ref.tell_nowait(Echo(1))


async def test_crash_of_a_child_never_touches_siblings_outside_the_strategy() -> None:
    crashing, bystander = Probe("crashing"), Probe("bystander")
    async with running(crashing.spec(), bystander.spec()):
        before = await bystander.ref.ask(Echo("well"))
        await crashing.crash()
        assert await bystander.ref.ask(Echo("well")) == before
        assert bystander.lives == 1


async def test_crashes_in_the_same_moment_share_one_restart_of_their_group() -> None:
    probes = [Probe(name) for name in "abc"]
    async with running(*(probe.spec() for probe in probes), strategy=Strategy.ONE_FOR_ALL, intensity=10) as system:
        for life in range(10):
            for probe in probes:
                probe.ref.tell_nowait(Crash(ProbeCrash("together")))
            await wait_all_tasks_blocked()
            assert [probe.lives for probe in probes] == [life + 2] * 3
        assert [child.restarts for child in system.statistics().children] == [10] * 3


async def test_more_restarts_than_the_intensity_end_the_system() -> None:
    probe = Probe("hopeless")

    async def live() -> None:
        async with running(probe.spec(), intensity=2):
            for _ in range(3):
                await probe.crash(ValueError("again"))
                await probe.wait_lives(probe.lives)
                await wait_all_tasks_blocked()
            await trio.sleep_forever()

    with pytest.raises(SystemFailed) as caught:
        await live()
    assert probe.lives == 3
    assert [str(leaf) for leaf in caught.value.leaves] == ["again"]
    assert "more than 2 restarts within 60 s" in repr(caught.value.__cause__)


async def test_restarts_long_ago_do_not_count(autojump_clock: trio.testing.MockClock) -> None:
    probe = Probe("sometimes")
    async with running(probe.spec(), intensity=1, period_s=10):
        for _ in range(20):
            await probe.crash()
            await trio.sleep(10)
        assert probe.lives == 21


async def test_permanent_child_that_keeps_returning_ends_the_system() -> None:
    async def returning(cell: Cell[object]) -> None:
        cell.started()

    with pytest.raises(SystemFailed) as caught:
        async with running(ChildSpec(id="returning", start=returning)):
            await trio.sleep_forever()
    assert [type(leaf) for leaf in caught.value.leaves] == [ChildReturned]


async def test_asks_queued_when_a_supervisor_gives_up_are_answered(nursery: trio.Nursery) -> None:
    probe = Probe("hopeless")
    outcomes: list[str] = []

    async def ask() -> None:
        try:
            await probe.ref.ask(Keep(), timeout_s=None)
        except ActorStopped:
            outcomes.append("told")

    async def crash(cell: Cell[object]) -> None:
        cell.started()
        await cell.inbox.__anext__()
        raise ValueError("with one in hand and others queued")

    for _ in range(6):
        nursery.start_soon(ask)
    await wait_all_tasks_blocked()
    with pytest.raises(SystemFailed):
        async with running(probe.spec(start=crash), intensity=1):
            await trio.sleep_forever()
    await wait_all_tasks_blocked()
    assert outcomes == ["told"] * 6


async def test_escalation_restarts_the_subtree_with_its_mailboxes() -> None:
    trace, (a, b) = _probes("ab")
    inner = SupervisorSpec(id="inner", children=(a.spec(), b.spec()), intensity=0)
    async with running(inner) as system:
        await b.crash()
        await b.wait_lives(2)
        assert await b.ref.ask(Echo("back")) == "back"
        assert await a.ref.ask(Echo("back too")) == "back too"
        assert trace == [("up", "a"), ("up", "b"), ("down", "b"), ("down", "a"), ("up", "a"), ("up", "b")]
        assert [child.restarts for child in system.statistics().children] == [1]


async def test_escalation_goes_on_up_to_the_root_and_keeps_the_leaves() -> None:
    probe = Probe("deep")
    tree = SupervisorSpec(id="level0", children=(probe.spec(),), intensity=0)
    for level in range(1, 3):
        tree = SupervisorSpec(id=f"level{level}", children=(tree,), intensity=0)

    async def live() -> None:
        async with running(tree, intensity=0):
            await probe.crash(ValueError("from far below"))
            await trio.sleep_forever()

    with pytest.raises(SystemFailed) as caught:
        await live()
    assert [str(leaf) for leaf in caught.value.leaves] == ["from far below"]
    assert probe.lives == 1


async def test_fatal_error_anywhere_in_nested_groups_is_not_restarted() -> None:
    class DiskDead(Exception):
        pass

    probe = Probe("store")
    nested = ExceptionGroup("outer", [ValueError("noise"), ExceptionGroup("inner", [DiskDead("sector 0")])])

    async def live() -> None:
        async with running(probe.spec(fatal=(DiskDead,)), intensity=100):
            await probe.crash(nested)
            await trio.sleep_forever()

    with pytest.raises(SystemFailed) as caught:
        await live()
    assert [type(leaf) for leaf in caught.value.leaves] == [ValueError, DiskDead]
    assert probe.lives == 1


async def test_group_from_an_actors_own_nursery_is_an_ordinary_crash() -> None:
    lives: list[int] = []

    async def fail() -> None:
        raise OSError("in a task of the actor")

    async def actor(cell: Cell[object]) -> None:
        lives.append(1)
        async with trio.open_nursery() as own:
            cell.started()
            if len(lives) == 1:
                own.start_soon(fail)
            else:
                await cell.stopping.wait()

    async with running(ChildSpec(id="actor", start=actor)):
        await wait_all_tasks_blocked()
        assert len(lives) == 2


async def test_crash_before_readiness_fails_the_start_and_stops_those_before() -> None:
    trace, (a, b, c) = _probes("abc")
    b.fails_to_start = ProbeCrash("no port")
    with pytest.raises(SystemFailed, match="no port"):
        async with running(a.spec(), b.spec(), c.spec()):
            raise AssertionError("the block must not begin")
    assert trace == [("up", "a"), ("up", "b"), ("down", "b"), ("down", "a")]


async def test_start_failure_of_a_nested_supervisor_fails_the_start_above() -> None:
    trace, (a, b) = _probes("ab")
    b.fails_to_start = ProbeCrash("no port")
    with pytest.raises(SystemFailed, match="no port"):
        async with running(a.spec(), SupervisorSpec(id="inner", children=(b.spec(),))):
            raise AssertionError("the block must not begin")
    assert _ups(trace) == "ab"


async def test_crash_before_readiness_in_a_later_life_counts_as_a_restart() -> None:
    probe = Probe("flaky")

    async def live() -> None:
        async with running(probe.spec(), intensity=4):
            probe.fails_to_start = ProbeCrash("still broken")
            await probe.crash()
            await trio.sleep_forever()

    with pytest.raises(SystemFailed, match="still broken"):
        await live()
    assert probe.lives == 5


async def test_crash_of_an_early_child_while_a_later_one_starts_is_restarted(nursery: trio.Nursery) -> None:
    trace, (a, b, c) = _probes("abc")
    b.hold()
    inside = trio.Event()

    async def run() -> None:
        async with running(a.spec(), b.spec(), c.spec()):
            inside.set()
            await trio.sleep_forever()

    nursery.start_soon(run)
    await wait_all_tasks_blocked()
    await a.crash()
    await a.wait_lives(2)
    assert await a.ref.ask(Echo("back")) == "back"
    assert _ups(trace) == "aba"
    b.release()
    await inside.wait()
    assert _ups(trace) == "abac"
    nursery.cancel_scope.cancel()


async def test_child_that_is_never_ready_fails_the_start_in_time(autojump_clock: trio.testing.MockClock) -> None:
    probe = Probe("stuck")
    probe.hold()
    with pytest.raises(SystemFailed) as caught:
        async with running(probe.spec(), start_timeout_s=12):
            raise AssertionError("the block must not begin")
    assert [type(leaf) for leaf in caught.value.leaves] == [StartTimeout]
    assert trio.current_time() == 12


def _late(cells: list[Cell[object]], late: int) -> ChildSpec:
    """Cannot be interrupted while it starts; life number `late` is ready one second too late, those before it crash."""

    async def actor(cell: Cell[object]) -> None:
        cells.append(cell)
        with trio.CancelScope(shield=True):
            await trio.sleep(13 if len(cells) == late else 1)
        cell.started()
        if len(cells) < late:
            raise ValueError
        await cell.stopping.wait()

    return ChildSpec(id="late", start=actor, restart=Restart.TRANSIENT)


async def test_word_of_readiness_after_the_start_timeout_fails_the_start(
    autojump_clock: trio.testing.MockClock,
) -> None:
    with pytest.raises(SystemFailed) as caught:
        async with running(_late([], late=1), start_timeout_s=12):
            raise AssertionError("the block must not begin")
    assert [type(leaf) for leaf in caught.value.leaves] == [StartTimeout]


async def test_word_of_readiness_too_late_in_a_later_life_is_a_crash(autojump_clock: trio.testing.MockClock) -> None:
    cells: list[Cell[object]] = []
    async with running(_late(cells, late=2), start_timeout_s=12) as system:
        await trio.sleep(100)
        [child] = system.statistics().children
        assert (len(cells), child.phase, child.restarts) == (3, Phase.RUNNING, 2)
        assert child.last_error.startswith("StartTimeout")


async def test_ready_child_is_no_longer_bound_by_the_start_timeout(autojump_clock: trio.testing.MockClock) -> None:
    probe = Probe("steady")
    async with running(probe.spec(), start_timeout_s=12):
        await trio.sleep(100)
        assert (probe.alive, probe.lives) == (True, 1)


async def test_word_of_readiness_from_a_past_life_says_nothing_about_the_next(nursery: trio.Nursery) -> None:
    cells: list[Cell[object]] = []
    behind, inside = Probe("behind"), trio.Event()

    async def actor(cell: Cell[object]) -> None:
        cells.append(cell)
        if len(cells) == 1:
            cell.started()
        if len(cells) < 3:
            async for _letter in cell.inbox:
                raise ValueError
        await cell.stopping.wait()

    probe = Probe("actor")

    async def run() -> None:
        async with running(probe.spec(start=actor), behind.spec(), strategy=Strategy.ONE_FOR_ALL):
            inside.set()
            await trio.sleep_forever()

    nursery.start_soon(run)
    await inside.wait()
    for _ in range(2):
        probe.ref.tell_nowait(Echo(1))
        await wait_all_tasks_blocked()
    cells[1].started()
    await wait_all_tasks_blocked()
    assert (len(cells), behind.lives) == (3, 1)
    cells[2].started()
    await wait_all_tasks_blocked()
    assert behind.lives == 2
    nursery.cancel_scope.cancel()


async def test_stop_while_a_child_starts_does_not_wait_for_its_readiness(
    autojump_clock: trio.testing.MockClock,
) -> None:
    trace, (a, b) = _probes("ab")
    b.hold()
    with trio.move_on_after(1) as scope:
        async with running(a.spec(), b.spec(shutdown_s=2), start_timeout_s=50):
            raise AssertionError("the block must not begin")
    assert scope.cancelled_caught
    assert trio.current_time() == 3
    assert trace[-2:] == [("down", "b"), ("down", "a")]


async def test_job_that_returns_without_a_word_counts_as_ready() -> None:
    async def migrate(_cell: Cell[object]) -> None:
        return

    probe = Probe("after")
    async with running(ChildSpec(id="migrate", start=migrate, restart=Restart.TRANSIENT), probe.spec()) as system:
        assert probe.alive
        assert [child.phase for child in system.statistics().children] == [Phase.GONE, Phase.RUNNING]


async def test_significant_child_ends_its_supervisor_normally() -> None:
    trace, (a, b) = _probes("ab")
    async with running(a.spec(), b.spec(restart=Restart.TRANSIENT, significant=True)) as system:
        await b.finish()
        await system.wait_stopped()
        assert trace[-2:] == [("down", "b"), ("down", "a")]


async def test_significant_child_that_crashes_is_restarted_first() -> None:
    probe = Probe("probe")
    async with running(probe.spec(restart=Restart.TRANSIENT, significant=True)) as system:
        await probe.crash()
        await probe.wait_lives(2)
        await probe.finish()
        await system.wait_stopped()


async def test_crash_while_stopping_is_reported_and_starts_nothing(autojump_clock: trio.testing.MockClock) -> None:
    async def bad_ending(cell: Cell[object]) -> None:
        cell.started()
        await cell.stopping.wait()
        raise ValueError("on the way out")

    log = MemoryLog()
    async with running(ChildSpec(id="bad", start=bad_ending), log=log):
        pass
    assert log.paths("child_crashed") == ["test/bad"]
    assert log.paths("child_restarted") == []


async def test_children_run_in_the_context_of_the_system_also_after_a_restart() -> None:
    setting = contextvars.ContextVar("setting", default="unset")
    seen: list[str] = []

    async def look(cell: Cell[object], label: str) -> None:
        seen.append(f"{label} {setting.get()}")
        cell.started()
        async for _letter in cell.inbox:
            raise ValueError

    probe = Probe("look")
    setting.set("composed")
    async with running(probe.spec(start=partial(look, label="life"))):
        setting.set("changed later")
        await probe.ref.tell(Echo(1))
        await wait_all_tasks_blocked()
    assert seen == ["life composed", "life composed"]
