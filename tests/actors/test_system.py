"""What a block around a tree may rely on."""

import signal
from collections.abc import Iterator

import pytest
import trio
from trio.lowlevel import currently_ki_protected, enable_ki_protection
from trio.testing import MockClock, wait_all_tasks_blocked

from kesoku_actors.actors import ActorStopped, Cell, ChildSpec, SupervisorSpec, SystemFailed, run_system
from kesoku_actors.actors.testing import Echo, Probe, running


async def test_error_of_the_block_comes_out_as_it_is_after_an_orderly_stop() -> None:
    probe = Probe("probe")
    with pytest.raises(LookupError, match="mine"):
        async with running(probe.spec()):
            raise LookupError("mine")
    assert probe.trace == [("up", "probe"), ("down", "probe")]


async def test_failed_system_cancels_the_block_and_keeps_its_error_too() -> None:
    probe = Probe("probe")
    cleaned: list[bool] = []

    async def live() -> None:
        async with running(probe.spec(), intensity=0):
            try:
                await probe.crash(ValueError("the cause"))
                await trio.sleep_forever()
            finally:
                cleaned.append(True)
                raise OSError("of the block")

    with pytest.raises(SystemFailed) as caught:
        await live()
    assert cleaned
    assert isinstance(caught.value.__cause__, ExceptionGroup)
    assert [type(leaf) for leaf in caught.value.leaves] == [ValueError]
    assert caught.value.__cause__.subgroup(OSError) is not None


async def test_failed_system_inside_a_cancelled_scope_still_says_so(autojump_clock: trio.testing.MockClock) -> None:
    async def bad_ending(cell: Cell[object]) -> None:
        cell.started()
        await cell.stopping.wait()
        raise KeyError("fatal on the way out")

    with pytest.raises(SystemFailed), trio.move_on_after(1):
        async with running(ChildSpec(id="bad", start=bad_ending, fatal=(KeyError,))):
            await trio.sleep_forever()


async def test_stop_from_the_block_waits_until_all_is_down() -> None:
    probe = Probe("probe")
    async with running(probe.spec()) as system:
        await system.stop()
        assert not probe.alive
        with pytest.raises(ActorStopped):
            await probe.ref.ask(Echo(1))
        await system.stop()


async def test_actor_may_request_the_stop_of_its_own_system() -> None:
    stop: list[str] = []

    async def quitter(cell: Cell[object]) -> None:
        cell.started()
        async for _letter in cell.inbox:
            system.request_stop()
            stop.append("requested")

    probe = Probe("quitter")
    async with running(probe.spec(start=quitter)) as system:
        await probe.ref.tell(Echo(1))
        await system.wait_stopped()
    assert stop == ["requested"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
async def test_errors_addressed_to_the_program_are_not_restarted_nor_swallowed(error: type[BaseException]) -> None:
    probe, other = Probe("probe"), Probe("other")

    async def live() -> None:
        async with running(SupervisorSpec(id="inner", children=(probe.spec(), other.spec())), intensity=100):
            await probe.crash(error("stop the program"))
            await trio.sleep_forever()

    with pytest.raises(BaseExceptionGroup) as caught:
        await live()
    assert caught.value.subgroup(error) is not None
    assert (probe.lives, other.alive) == (1, False)


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """Python's own handler, also where the tests run with the signal ignored, as a shell's background job does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@enable_ki_protection
def _press_ctrl_c() -> None:
    """Like a Ctrl-C that arrives while the loop is idle: trio hands it to the main task."""
    signal.raise_signal(signal.SIGINT)


async def test_cancel_ends_the_block_and_the_tree_at_once(autojump_clock: trio.testing.MockClock) -> None:
    probe = Probe("lingering")
    probe.lingers = True
    async with running(probe.spec(shutdown_s=1000)) as system:
        system.cancel()
        await trio.sleep_forever()
    assert trio.current_time() == 0
    assert not probe.alive


async def test_cancel_while_it_stops_waits_for_no_grace(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    probe = Probe("lingering")
    probe.lingers = True
    async with running(probe.spec(shutdown_s=1000)) as system:

        async def cancel() -> None:
            await trio.sleep(3)
            system.cancel()

        nursery.start_soon(cancel)
    assert trio.current_time() == 3
    assert not probe.alive


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_second_ctrl_c_while_stopping_cancels_the_tree_at_once() -> None:
    probe = Probe("lingering")
    probe.lingers = True
    times: list[float] = []

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(interrupt)
            try:
                async with running(probe.spec(shutdown_s=1000)):
                    await trio.sleep_forever()
            finally:
                times.append(trio.current_time())

    async def interrupt() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
            _press_ctrl_c()
            await trio.sleep(2)
            assert probe.alive
            _press_ctrl_c()

    with pytest.raises(BaseExceptionGroup) as caught:
        trio.run(main, clock=MockClock(autojump_threshold=0))
    assert caught.value.subgroup(KeyboardInterrupt) is not None
    assert times == [3]
    assert not probe.alive


def test_ctrl_c_lands_in_an_actor_never_in_the_kernel() -> None:
    protected: list[bool] = []

    async def actor(cell: Cell[object]) -> None:
        protected.append(currently_ki_protected())
        cell.started()
        await cell.stopping.wait()

    def log(_event: str, /, **_fields: object) -> None:
        protected.append(currently_ki_protected())

    async def main() -> None:
        async with running(ChildSpec(id="actor", start=actor), log=log):
            await wait_all_tasks_blocked()

    async def crash(cell: Cell[object]) -> None:
        cell.started()
        raise ValueError

    async def crashing() -> None:
        with pytest.raises(SystemFailed):
            async with running(ChildSpec(id="crash", start=crash), intensity=0, log=log):
                await trio.sleep_forever()

    trio.run(main)
    assert protected == [False]
    protected.clear()
    trio.run(crashing)
    assert protected == [True]


async def test_root_has_a_budget_of_its_own(autojump_clock: trio.testing.MockClock) -> None:
    probes = [Probe(name) for name in "abc"]
    for probe in probes:
        probe.lingers = True
    tree = SupervisorSpec(id="root", children=tuple(probe.spec(shutdown_s=100) for probe in probes), shutdown_s=5)
    async with run_system(tree):
        pass
    assert trio.current_time() == 5
    assert not any(probe.alive for probe in probes)


async def test_nested_supervisor_over_its_budget_takes_its_children_with_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    inner = [Probe(name) for name in "abc"]
    for probe in inner:
        probe.lingers = True
    children = tuple(probe.spec(shutdown_s=100) for probe in inner)
    async with running(SupervisorSpec(id="inner", children=children, shutdown_s=4)):
        pass
    assert trio.current_time() == 4
    assert not any(probe.alive for probe in inner)


async def test_system_can_be_left_and_entered_again_with_the_same_mailboxes() -> None:
    probe = Probe("probe")
    for life in range(3):
        async with running(probe.spec()):
            assert await probe.ref.ask(Echo(life)) == life


async def test_statistics_show_the_tree_with_its_queues(autojump_clock: trio.testing.MockClock) -> None:
    async def deaf(cell: Cell[object]) -> None:
        cell.started()
        await cell.stopping.wait()

    probe = Probe("deaf")
    async with running(SupervisorSpec(id="inner", children=(probe.spec(start=deaf),))) as system:
        await trio.sleep(1)
        probe.ref.tell_nowait(Echo(1))
        await trio.sleep(2)
        probe.ref.tell_nowait(Echo(2))
        await trio.sleep(3)
        tree = system.statistics()
        assert [child.path for child in tree.walk()] == ["test", "test/inner", "test/inner/deaf"]
        [inner] = tree.children
        [child] = inner.children
        assert (inner.kind.value, inner.phase.value, inner.mailbox) == ("supervisor", "running", None)
        assert (child.id, child.kind.value, child.restarts, child.age_s) == ("deaf", "actor", 0, 6)
        assert child.mailbox is not None
        assert (child.mailbox.waiting, child.mailbox.oldest_waiting_s, child.mailbox.capacity) == (2, 5, 256)


async def test_statistics_tell_of_crashes() -> None:
    probe = Probe("probe")
    async with running(probe.spec()) as system:
        await probe.crash(ValueError("once"))
        await wait_all_tasks_blocked()
        [child] = system.statistics().children
        assert (child.restarts, child.last_error) == (1, "ValueError: once")
