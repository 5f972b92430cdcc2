"""What holds for children that come and go at run time."""

import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kesoku_actors.actors import (
    ActorStopped,
    Cell,
    ChildExit,
    ChildSpec,
    Dynamic,
    DynamicSpec,
    NameTaken,
    Restart,
    StartFailed,
    System,
    SystemFailed,
)
from kesoku_actors.actors.testing import Echo, Probe, ProbeCrash, running


@asynccontextmanager
async def _crew(**changes: Any) -> AsyncIterator[tuple[Dynamic, list[ChildExit], System]]:
    exits: list[ChildExit] = []
    dynamic = Dynamic("crew", on_exit=exits.append, shutdown_s=changes.pop("shutdown_s", 60))
    async with running(DynamicSpec(id="crew", dynamic=dynamic, **changes)) as system:
        yield dynamic, exits, system


def _told(exits: list[ChildExit]) -> list[tuple[str, str, bool]]:
    return [(exit.id, exit.reason, exit.restarting) for exit in exits]


async def test_start_returns_when_the_child_is_ready(nursery: trio.Nursery) -> None:
    async with _crew() as (dynamic, _exits, _system):
        probe = Probe("worker")
        probe.hold()
        ready = trio.Event()

        async def start() -> None:
            await dynamic.start(probe.spec())
            ready.set()

        nursery.start_soon(start)
        await wait_all_tasks_blocked()
        assert not ready.is_set()
        probe.release()
        await ready.wait()
        assert await probe.ref.ask(Echo(1)) == 1


async def test_ends_of_children_are_told_with_their_reason() -> None:
    async with _crew() as (dynamic, exits, _system):
        probes = [Probe(name) for name in ("normal", "crashed", "stopped", "restarted")]
        for probe in probes[:3]:
            await dynamic.start(probe.spec(restart=Restart.TEMPORARY))
        await dynamic.start(probes[3].spec(restart=Restart.TRANSIENT))
        await probes[0].finish()
        await probes[1].crash()
        await dynamic.stop("stopped")
        await probes[3].crash()
        await probes[3].wait_lives(2)
        assert _told(exits) == [
            ("normal", "normal", False),
            ("crashed", "crashed", False),
            ("stopped", "stopped", False),
            ("restarted", "crashed", True),
        ]
        assert isinstance(exits[1].error, ProbeCrash)
        assert [child.id for child in dynamic.children()] == ["restarted"]
    assert _told(exits)[-1] == ("restarted", "stopped", False)


async def test_crash_leaves_the_other_children_alone() -> None:
    async with _crew() as (dynamic, _exits, _system):
        a, b = Probe("a"), Probe("b")
        await dynamic.start(a.spec())
        await dynamic.start(b.spec())
        await a.crash()
        await a.wait_lives(2)
        assert (a.lives, b.lives) == (2, 1)


async def test_id_in_use_is_refused_and_free_again_after_the_end() -> None:
    async with _crew() as (dynamic, _exits, _system):
        probe = Probe("call")
        await dynamic.start(probe.spec(restart=Restart.TEMPORARY))
        with pytest.raises(NameTaken, match="call"):
            dynamic.start_nowait(Probe("call").spec())
        await dynamic.stop("call")
        await dynamic.start(probe.spec(restart=Restart.TEMPORARY))
        assert await probe.ref.ask(Echo("second")) == "second"


async def test_failed_start_is_raised_and_not_restarted() -> None:
    async with _crew(intensity=5) as (dynamic, exits, _system):
        probe = Probe("broken")
        probe.fails_to_start = ProbeCrash("no luck")
        with pytest.raises(StartFailed, match="broken") as caught:
            await dynamic.start(probe.spec())
        assert caught.value.__cause__ is probe.fails_to_start
        assert probe.lives == 1
        assert _told(exits) == [("broken", "crashed", False)]
        assert dynamic.children() == ()


async def test_start_that_is_cancelled_takes_the_child_back(autojump_clock: trio.testing.MockClock) -> None:
    async with _crew() as (dynamic, exits, _system):
        probe = Probe("slow")
        probe.hold()
        with trio.move_on_after(1):
            await dynamic.start(probe.spec())
        await probe.wait_down()
        await wait_all_tasks_blocked()
        assert dynamic.children() == ()
        assert _told(exits) == [("slow", "stopped", False)]


async def test_start_of_a_child_stopped_before_it_is_ready_says_so(nursery: trio.Nursery) -> None:
    async with _crew() as (dynamic, _exits, _system):
        probe = Probe("slow")
        probe.hold()
        told = trio.Event()

        async def start() -> None:
            with pytest.raises(ActorStopped):
                await dynamic.start(probe.spec())
            told.set()

        nursery.start_soon(start)
        await wait_all_tasks_blocked()
        nursery.start_soon(dynamic.stop, "slow")
        await wait_all_tasks_blocked()
        probe.release()
        await told.wait()


async def test_stop_gives_the_grace_and_then_cancels(autojump_clock: trio.testing.MockClock) -> None:
    async with _crew() as (dynamic, _exits, _system):
        probe = Probe("lingering")
        probe.lingers = True
        await dynamic.start(probe.spec(shutdown_s=3))
        await dynamic.stop("lingering")
        assert trio.current_time() == 3
        assert not probe.alive


async def test_asking_to_stop_begins_the_grace_and_does_not_wait(autojump_clock: trio.testing.MockClock) -> None:
    async with _crew() as (dynamic, exits, _system):
        probe = Probe("lingering")
        probe.lingers = True
        await dynamic.start(probe.spec(shutdown_s=3))
        dynamic.request_stop("lingering")
        dynamic.request_stop("nobody")
        await trio.sleep(1)
        dynamic.request_stop("lingering")
        await probe.wait_down()
        assert trio.current_time() == 3
    assert _told(exits) == [("lingering", "stopped", False)]


async def test_stop_goes_on_when_its_caller_is_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    async with _crew() as (dynamic, _exits, _system):
        probe = Probe("lingering")
        probe.lingers = True
        await dynamic.start(probe.spec(shutdown_s=3))
        with trio.move_on_after(1):
            await dynamic.stop("lingering")
        assert probe.alive
        await probe.wait_down()
        assert trio.current_time() == 3


async def test_child_that_crashes_just_before_it_is_asked_to_stop_is_not_restarted(nursery: trio.Nursery) -> None:
    async with _crew(intensity=100) as (dynamic, _exits, _system):
        for number in range(20):  # trio may run the stop before or after the supervisor hears of the crash
            name = f"worker{number}"
            probe, stopped = Probe(name), trio.Event()

            async def stop(name: str = name, stopped: trio.Event = stopped) -> None:
                await dynamic.stop(name)
                stopped.set()

            async def crash(cell: Cell[object], stop: Callable[[], Awaitable[None]] = stop) -> None:
                cell.started()
                async for _letter in cell.inbox:
                    nursery.start_soon(stop)
                    raise ValueError

            await dynamic.start(probe.spec(start=crash))
            probe.ref.tell_nowait(Echo(1))
            await stopped.wait()
            assert dynamic.children() == ()


async def test_stop_of_nobody_returns_at_once() -> None:
    async with _crew() as (dynamic, _exits, _system):
        await dynamic.stop("nobody")
    await dynamic.stop("nobody")


async def test_all_children_stop_at_the_same_time(autojump_clock: trio.testing.MockClock) -> None:
    async with _crew() as (dynamic, exits, _system):
        for number in range(20):
            probe = Probe(f"tool{number}")
            probe.lingers = True
            await dynamic.start(probe.spec(shutdown_s=7))
    assert trio.current_time() == 7
    assert len(exits) == 20


async def test_tool_with_a_long_grace_is_not_cut_off(autojump_clock: trio.testing.MockClock) -> None:
    done: list[str] = []

    async def tool(_cell: Cell[object]) -> None:
        await trio.sleep(50)
        done.append("whole")

    async with _crew() as (dynamic, exits, _system):
        dynamic.start_nowait(ChildSpec(id="tool", start=tool, restart=Restart.TEMPORARY, shutdown_s=100))
        await trio.sleep(1)
    assert done == ["whole"]
    assert _told(exits) == [("tool", "stopped", False)]


async def test_budget_of_the_whole_crew_ends_even_long_graces(autojump_clock: trio.testing.MockClock) -> None:
    async with _crew(shutdown_s=5) as (dynamic, exits, _system):
        probe = Probe("lingering")
        probe.lingers = True
        await dynamic.start(probe.spec(shutdown_s=100))
    assert trio.current_time() == 5
    assert _told(exits) == [("lingering", "stopped", False)]


async def test_start_outside_of_a_running_supervisor_is_refused() -> None:
    dynamic = Dynamic("crew")
    with pytest.raises(ActorStopped):
        dynamic.start_nowait(Probe("early").spec())
    async with running(DynamicSpec(id="crew", dynamic=dynamic)) as system:
        await system.stop()
        with pytest.raises(ActorStopped):
            await dynamic.start(Probe("late").spec())
    assert dynamic.children() == ()


async def test_intensity_is_shared_and_its_excess_escalates() -> None:
    async def live() -> None:
        async with _crew(restart=Restart.TRANSIENT, fatal=(ProbeCrash,), intensity=1) as (dynamic, _exits, _system):
            a, b = Probe("a"), Probe("b")
            await dynamic.start(a.spec())
            await dynamic.start(b.spec())
            await a.crash(ProbeCrash("the first"))
            await a.wait_lives(2)
            await b.crash(ProbeCrash("the last straw"))
            await trio.sleep_forever()

    with pytest.raises(SystemFailed, match="the last straw"):
        await live()


async def test_face_survives_the_restart_of_its_supervisor() -> None:
    async with _crew(intensity=0) as (dynamic, exits, _system):
        a, b = Probe("a"), Probe("b")
        await dynamic.start(a.spec())
        await dynamic.start(b.spec())
        await a.crash()
        await b.wait_down()
        await wait_all_tasks_blocked()
        assert dynamic.children() == ()
        assert _told(exits) == [("a", "crashed", False), ("b", "stopped", False)]
        await dynamic.start(a.spec())
        assert await a.ref.ask(Echo("new epoch")) == "new epoch"


async def test_asks_to_a_child_that_went_for_good_are_answered() -> None:
    async with _crew() as (dynamic, _exits, _system):
        probe = Probe("worker")
        await dynamic.start(probe.spec(restart=Restart.TRANSIENT))
        await probe.finish()
        await wait_all_tasks_blocked()
        with pytest.raises(ActorStopped):
            await probe.ref.ask(Echo(1))


async def test_error_in_on_exit_is_a_crash_of_the_supervisor() -> None:
    def broken(_exit: ChildExit) -> None:
        raise LookupError("in the hook")

    dynamic, probe = Dynamic("crew", on_exit=broken), Probe("worker")

    async def live() -> None:
        async with running(DynamicSpec(id="crew", dynamic=dynamic), intensity=0):
            await dynamic.start(probe.spec(restart=Restart.TEMPORARY))
            await probe.finish()
            await trio.sleep_forever()

    with pytest.raises(SystemFailed, match="in the hook"):
        await live()


async def test_child_runs_in_the_context_of_its_supervisor_whoever_starts_it() -> None:
    setting = contextvars.ContextVar("setting", default="unset")
    seen: list[str] = []

    async def look(_cell: Cell[object]) -> None:
        seen.append(setting.get())

    setting.set("composed")
    async with _crew() as (dynamic, _exits, _system):
        setting.set("of the caller")
        await dynamic.start(ChildSpec(id="look", start=look, restart=Restart.TEMPORARY))
    assert seen == ["composed"]


async def test_face_of_two_supervisors_is_refused() -> None:
    dynamic = Dynamic("shared")
    with pytest.raises(SystemFailed, match="face of a dynamic supervisor already"):
        async with running(DynamicSpec(id="one", dynamic=dynamic), DynamicSpec(id="two", dynamic=dynamic)):
            pass


async def test_significant_child_is_refused() -> None:
    async with _crew() as (dynamic, _exits, _system):
        with pytest.raises(ValueError, match="significant"):
            dynamic.start_nowait(Probe("worker").spec(restart=Restart.TRANSIENT, significant=True))
