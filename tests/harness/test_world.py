"""What a world gives a program: a disk, a network, children and threads that fail where the schedule lets them."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio
import trio.testing

from kesoku_actors.harness.control import Limits, Run
from kesoku_actors.harness.control.lives import NeverAtRest
from kesoku_actors.harness.control.procs import Copy, Err, Exit, Ignore, Out, Sleep
from kesoku_actors.harness.disk import Fault
from kesoku_actors.harness.errors import Escape, HarnessError
from kesoku_actors.harness.failures import failure_of, leaves
from kesoku_actors.harness.faults import Fire, Tally
from kesoku_actors.harness.hold import Event, Form, Holding
from kesoku_actors.harness.image import EVERYTHING, NOTHING
from kesoku_actors.harness.reduce import reduce
from kesoku_actors.harness.replay import Replay
from kesoku_actors.harness.strategies import PCT, POS, Random, Shuffle
from kesoku_actors.harness.strategy import Strategy
from kesoku_actors.harness.token import Token, token_of
from kesoku_actors.harness.world import World, fault, note

from .programs import pause
from .test_control import run, told

Test = Callable[[World], Awaitable[object]]


def play(test: Test, strategy: Strategy | None = None, number: int = 0, *, seed: int = 0, **options: Any) -> Run:
    async def main() -> None:
        await test(World(seed))

    return run(main, strategy or Random(), number, **options)


def passes(test: Test, *, runs: int = 20, **options: Any) -> list[Run]:
    """Run a test under several strategies; each run must pass."""
    done = []
    for strategy in (Random, PCT, POS, Shuffle):
        for number in range(runs // 4):
            result = play(test, strategy(), number, **options)
            if result.error is not None:
                raise result.error
            done.append(result)
    return done


def failures(test: Test, *, runs: int = 40, **options: Any) -> Counter[str]:
    found: Counter[str] = Counter()
    for number in range(runs):
        error = play(test, Random(), number, **options).error
        found["passes" if error is None else failure_of(error)] += 1
    return found


def test_a_world_belongs_to_a_run_under_control() -> None:
    with pytest.raises(HarnessError, match="run under control"):
        World()


async def test_in_production_no_fault_happens_and_nothing_is_noted() -> None:
    assert not any(fault("lost", rate=1.0) for _ in range(10))
    assert note("sent", number=1) is None


def test_clocks_are_virtual_and_may_be_wrong() -> None:
    async def test(world: World) -> None:
        began = world.clock.wall()
        await trio.sleep(3600)
        assert world.clock.now() == trio.current_time() == 3600
        assert world.clock.wall() - began == timedelta(hours=1)
        world.clock.skew_s = -7200
        assert world.clock.wall() - began == -timedelta(hours=1)
        other = world.net.host("b").clock
        other.skew_s = 5
        assert other.time() - world.clock.time() == 7205

    passes(test, runs=4)


def test_ids_and_randomness_are_those_of_the_seed() -> None:
    def drawn(seed: int) -> list[Any]:
        seen: list[Any] = []

        async def test(world: World) -> None:
            seen.extend([world.ids.next("turn"), world.ids.next("turn"), world.ids.uuid(), world.rng.random()])

        play(test, seed=seed)
        return seen

    assert drawn(1) == drawn(1)
    assert drawn(1)[:2] == ["turn-1", "turn-2"]
    assert drawn(1)[2:] != drawn(2)[2:]


def test_a_note_says_who_noted_it_when_and_at_which_line() -> None:
    async def test(world: World) -> None:
        async def worker() -> None:
            await trio.sleep(2)
            world.note("did", what="it")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(worker)

    [noted] = play(test).notes
    assert (noted.kind, noted["what"], noted.time) == ("did", "it", 2.0)
    assert noted.lane == "main/worker"
    assert noted.site is not None
    assert noted.site.line == test.__code__.co_firstlineno + 3


def lossy() -> Test:
    async def test(world: World) -> None:
        for _ in range(4):
            await pause()
            assert not fault("lost", rate=0.2), "it was lost"

    return test


def test_faults_are_choices_of_the_schedule_and_come_again_in_a_replay() -> None:
    seen = set()
    for number in range(40):
        first = play(lossy(), Random(), number)
        again = play(lossy(), Replay(first.schedule))
        assert (again.fired, told(again)) == (first.fired, told(first))
        seen.add(first.fired)
    assert () in seen
    assert len(seen) > 2
    assert failures(lossy())["passes"] not in (0, 40)


def test_the_faults_of_a_failing_run_shrink_with_its_schedule_and_stand_in_its_token() -> None:
    async def test(world: World) -> None:
        async def hop(name: str) -> None:
            for _ in range(4):
                await pause()
                if world.fault(name):
                    world.note("lost", name=name)

        async with trio.open_nursery() as nursery:
            for name in "abc":
                nursery.start_soon(hop, name)
        assert not any(one["name"] == "b" for one in world.notes), "b was lost"

    def fails(form: Form) -> frozenset[Event] | None:
        holding = Holding(form)
        error = play(test, holding).error
        return frozenset(holding.fired) if error is not None else None

    failing = next(one for number in range(9) if (one := play(test, Random(), number, trace=True)).error is not None)
    assert len(failing.fired) > 1
    small = reduce(failing.trace, fails)
    assert small is not None
    assert small.is_minimal
    [event] = small.form.events
    assert isinstance(event, Fire)
    assert event.name == "b"
    assert token_of(str(Token(fingerprint="x", play=small.form, inputs={}))).play == small.form


def test_a_fault_that_never_fired_is_known() -> None:
    async def test(world: World) -> None:
        world.fault("often", rate=1.0)
        world.fault("never", rate=0.0)

    tally = Tally()
    for result in passes(test):
        tally.add(result.asked, result.fired)
    assert tally.never_fired == ("never",)
    assert tally.fired["often"] == tally.asked["often"] == 20
    assert "`often` happen the 2nd time" in str(Fire("often", 2))


def test_threads_run_inline_each_call_in_one_step() -> None:
    async def test(world: World) -> None:
        seen: list[str] = []
        both = lambda name: seen.extend([f"{name} begins", f"{name} ends"])  # noqa: E731

        async with trio.open_nursery() as nursery:
            for name in "ab":
                nursery.start_soon(trio.to_thread.run_sync, both, name)
        assert seen in [[f"{name} {what}" for name in order for what in ("begins", "ends")] for order in ("ab", "ba")]
        seen.clear()
        with trio.move_on_after(1) as scope:
            await trio.to_thread.run_sync(both, "c")
        assert seen
        assert not scope.cancelled_caught
        with pytest.raises(ZeroDivisionError):
            await trio.to_thread.run_sync(lambda: 1 / 0)

    orders = {tuple(str(step.lane and step.lane.label) for step in one.trace) for one in passes(test, trace=True)}
    assert len(orders) > 5


def test_an_abandoned_thread_still_does_its_work_and_only_then_gives_its_place_back() -> None:
    async def test(world: World) -> None:
        done: list[int] = []
        limiter = trio.CapacityLimiter(1)
        with trio.CancelScope() as scope:
            scope.cancel()
            await trio.to_thread.run_sync(done.append, 1, abandon_on_cancel=True, limiter=limiter)
        async with trio.open_nursery() as nursery:

            async def abandons() -> None:
                with trio.CancelScope() as inner:
                    nursery.start_soon(cancel, inner)
                    await trio.to_thread.run_sync(done.append, 2, abandon_on_cancel=True, limiter=limiter)

            async def cancel(inner: trio.CancelScope) -> None:
                inner.cancel()

            nursery.start_soon(abandons)
        await trio.testing.wait_all_tasks_blocked()
        assert done in ([], [2])
        assert limiter.borrowed_tokens == 0

    passes(test)


def test_what_reaches_out_from_a_simulated_thread_is_named_at_the_line_that_asked_for_it(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        async with await trio.open_file(tmp_path / "never written", "w"):
            pass

    error = play(test).error
    assert isinstance(error, Escape)
    assert f"test_world.py:{test.__code__.co_firstlineno + 1} in test" in str(error)
    assert not list(tmp_path.iterdir())


def test_coming_back_from_a_simulated_thread_is_refused() -> None:
    async def test(world: World) -> None:
        await trio.to_thread.run_sync(lambda: trio.from_thread.run_sync(int))

    error = play(test).error
    assert error is not None
    assert {type(leaf) for leaf in leaves(error)} <= {Escape, RuntimeError}
    assert any(isinstance(leaf, Escape) for leaf in leaves(error))


def test_children_follow_their_script_in_virtual_time() -> None:
    async def test(world: World) -> None:
        world.procs["git"] = [Out(b"cloning"), Sleep(30), Err(b"no room"), Exit(3)]
        done = await trio.run_process(["/usr/bin/git", "clone"], capture_stdout=True, capture_stderr=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (3, b"cloning", b"no room")
        assert trio.current_time() == 30
        with pytest.raises(subprocess.CalledProcessError):
            await trio.run_process("git fetch", shell=True)

    passes(test)


@pytest.mark.filterwarnings("ignore:process .* ignored SIGTERM")
def test_a_child_that_ignores_sigterm_is_killed_after_trios_patience() -> None:
    async def test(world: World) -> None:
        world.procs["deaf"] = [Ignore(), Sleep(1000)]
        world.procs["meek"] = [Sleep(1000)]
        for name, patience in (("meek", 0), ("deaf", 5)):
            began = trio.current_time()
            with trio.move_on_after(1):
                await trio.run_process([name])
            assert trio.current_time() - began == 1 + patience
        assert [child.returncode for child in world.children.started] == [-signal.SIGTERM, -signal.SIGKILL]

    for number in range(10):
        result = play(test, Random(), number, may_tick=False)
        assert result.error is None, result.error


def test_a_child_reads_what_is_written_to_it() -> None:
    async def test(world: World) -> None:
        world.procs["cat"] = [Copy()]
        done = await trio.run_process(["cat"], stdin=b"hello", capture_stdout=True)
        assert done.stdout == b"hello"

    passes(test)


def test_a_child_without_a_script_is_named() -> None:
    async def test(world: World) -> None:
        await trio.run_process(["rm", "-rf", "/"])

    error = play(test).error
    assert isinstance(error, Escape)
    assert "world.procs['rm']" in str(error)


async def answer(world: World, text: bytes = b"hello") -> bytes:
    """Send a text to an echo at another host; return what comes back, all of it."""
    received = b""
    async with trio.open_nursery() as nursery:
        listener = await world.net.host("b").listen(7)

        async def echo() -> None:
            stream = await listener.accept()
            while data := await stream.receive_some(2):
                await stream.send_all(data)
            await stream.aclose()

        nursery.start_soon(echo)
        stream = await world.net.host("a").connect("b", 7)
        await stream.send_all(text)
        await stream.send_eof()
        while data := await stream.receive_some():
            received += data
        await listener.aclose()
    return received


def test_a_connection_keeps_the_order_of_its_bytes_and_takes_its_time() -> None:
    async def test(world: World) -> None:
        world.net.delay_s = (0.5, 2.0)
        assert await answer(world) == b"hello"
        assert trio.current_time() >= 1.5

    passes(test)


def test_a_partition_holds_everything_back_until_it_heals() -> None:
    async def test(world: World) -> None:
        world.net.partition("a", "b")
        with trio.move_on_after(100) as scope:
            await world.net.host("a").connect("b", 7)
        assert scope.cancelled_caught

        async with trio.open_nursery() as nursery:

            async def heals() -> None:
                await trio.sleep(50)
                world.net.heal()

            nursery.start_soon(heals)
            assert await answer(world) == b"hello"
        assert trio.current_time() >= 150

    passes(test, limits=Limits(longest_tick_s=0))


def test_nothing_that_listens_refuses_and_a_reset_breaks_both_ends() -> None:
    async def test(world: World) -> None:
        host = world.net.host("a")
        with pytest.raises(ConnectionRefusedError):
            await host.connect("b", 7)
        listener = await world.net.host("b").listen(7)
        with pytest.raises(OSError, match="open already"):
            await world.net.host("b").listen(7)
        ours = await host.connect("b", 7)
        theirs = await listener.accept()
        world.net.reset("b", "a")
        with pytest.raises(trio.BrokenResourceError):
            await ours.receive_some()
        with pytest.raises(trio.BrokenResourceError):
            await theirs.send_all(b"x")
        await theirs.aclose()
        with pytest.raises(trio.ClosedResourceError):
            await theirs.send_all(b"x")

    passes(test)


def test_the_streams_keep_trios_promises() -> None:
    async def test(world: World) -> None:
        async def pair() -> tuple[Any, Any]:
            port = len(world.net.ways)
            listener = await world.net.host("b").listen(port)
            ours = await world.net.host("a").connect("b", port)
            return ours, await listener.accept()

        await trio.testing.check_half_closeable_stream(pair, None)

    result = play(test, Random(), may_tick=False)
    if result.error is not None:
        raise result.error


def open_store(world: World, *, synchronous: str) -> apsw.Connection:
    connection = world.disk.connect("store.db")
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", synchronous)
    connection.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY)")
    return connection


def keeps(synchronous: str, survival: Any = NOTHING, *, cut_at: int | None = None) -> Test:
    """A store that says what it committed, and crashes."""

    async def test(world: World) -> None:
        committed: set[int] = set()
        torn_down: list[str] = []

        async def app() -> None:
            store = open_store(world, synchronous=synchronous)
            there = {number for (number,) in store.execute("SELECT id FROM t")}
            assert committed <= there, "a committed row was lost"
            try:
                for number in range(len(there), 6):
                    store.execute("INSERT INTO t VALUES (?)", (number,))
                    committed.add(number)
                    await pause()
            finally:
                torn_down.append("app")
                if world.disk.is_dead:
                    with pytest.raises(apsw.IOError):
                        store.execute("INSERT INTO t VALUES (99)")

        async def crashes() -> None:
            await pause(3)
            if world.crashes == 0:
                world.crash(survival)

        async with trio.open_nursery() as nursery:
            if cut_at is None:
                nursery.start_soon(crashes)
            else:
                world.disk.cut_at = cut_at
            while not await world.life(app):
                await pause()
        assert committed == set(range(6))
        assert 1 <= len(torn_down) <= world.crashes + 1

    return test


def test_after_a_crash_a_program_begins_anew_on_what_survived() -> None:
    passes(keeps("full"))
    passes(keeps("off", EVERYTHING))
    assert failures(keeps("off"))["AssertionError: a committed row was lost"] > 0


@pytest.mark.parametrize("change", range(1, 25, 3))
def test_the_power_may_go_between_two_changes_of_one_step(change: int) -> None:
    passes(keeps("full", cut_at=change), runs=4)


def test_the_schedule_may_crash_a_life_at_any_step_and_a_replay_crashes_it_there_again() -> None:
    async def test(world: World) -> None:
        steps = 0

        async def app() -> None:
            nonlocal steps
            for _ in range(6):
                await pause()
                steps += 1

        while not await world.life(app, may_crash=world.crashes == 0):
            pass
        world.note("ended", steps=steps)

    seen = set()
    for number in range(40):
        first = play(test, Random(), number)
        assert first.notes == play(test, Replay(first.schedule)).notes
        seen.add(first.notes[0]["steps"])
    assert len(seen) >= 3


def test_a_crash_hides_no_error_of_a_life_that_had_not_crashed() -> None:
    async def test(world: World) -> None:
        async def app() -> None:
            await pause()
            raise KeyError("its own")

        await world.life(app)

    assert set(failures(test, runs=5)) == {next(iter(failures(test, runs=1)))}
    assert "KeyError" in next(iter(failures(test, runs=1)))


async def tears_down() -> None:
    try:
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)


async def violates() -> None:
    await pause()
    raise AssertionError("before the crash")


async def violates_and_cleans_up() -> None:
    try:
        await violates()
    finally:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)


async def raises_when_torn_down() -> None:
    try:
        await trio.sleep_forever()
    finally:
        raise AssertionError("torn down")


@pytest.mark.parametrize("violating", [violates, violates_and_cleans_up])
@pytest.mark.parametrize("beside", [tears_down, raises_when_torn_down])
def test_a_crash_hides_no_error_that_was_raised_before_it(
    violating: Callable[[], Awaitable[None]], beside: Callable[[], Awaitable[None]]
) -> None:
    async def test(world: World) -> None:
        async def app() -> None:
            async with trio.open_nursery() as nursery:
                for one in (violating, beside, tears_down):
                    nursery.start_soon(one)

        async def crashes() -> None:
            await trio.sleep(0.5)
            world.crash(EVERYTHING)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(crashes)
            assert not await world.life(app)

    found = failures(test, runs=10, may_tick=False)
    assert found["passes"] == 0
    assert all("AssertionError: before the crash" in failure for failure in found)


async def lets_its_end_wait() -> None:
    """Wait behind shields: one that is there, then one that is put up on the way out, and in a task below it."""
    try:
        with trio.CancelScope(shield=True):
            await trio.sleep(100)
    finally:
        try:
            with trio.move_on_after(50) as late:
                late.shield = True
                await trio.sleep(60)
        finally:
            async with trio.open_nursery() as nursery:
                nursery.cancel_scope.shield = True
                nursery.start_soon(trio.sleep, 70)


def test_no_shield_holds_off_a_crash() -> None:
    async def test(world: World) -> None:
        async def life() -> None:
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(lets_its_end_wait)
                await trio.sleep(1)
                world.crash(EVERYTHING)

        assert not await world.life(life)
        assert trio.current_time() < 10

    passes(test, may_tick=False)


def test_behind_a_crash_shields_hold_again_and_before_it_elsewhere() -> None:
    async def test(world: World) -> None:
        async def shielded(seconds: float) -> None:
            with trio.move_on_after(1), trio.CancelScope(shield=True):
                await trio.sleep(seconds)

        async def life() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lets_its_end_wait)
                await pause(3)
                world.crash(EVERYTHING)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(shielded, 20)
            assert not await world.life(life)
        assert trio.current_time() == 20

        async def next_life() -> None:
            await shielded(5)

        assert await world.life(next_life)
        assert trio.current_time() == 25

    passes(test, may_tick=False)


def test_what_a_crash_tears_down_is_no_finding() -> None:
    async def test(world: World) -> None:
        async def app() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(raises_when_torn_down)
                nursery.start_soon(tears_down)

        async def crashes() -> None:
            await trio.sleep(0.5)
            world.crash(EVERYTHING)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(crashes)
            assert not await world.life(app)

    passes(test)


@pytest.mark.parametrize(
    ("kind", "error"),
    [(Fault.FULL, apsw.FullError), (Fault.BUSY, apsw.BusyError), (Fault.ERROR, apsw.IOError)],
)
def test_the_disk_fails_in_the_ways_it_was_told_and_heals(kind: Fault, error: type[Exception]) -> None:
    seen: list[BaseException] = []

    async def test(world: World) -> None:
        world.disk.fails(kind, rate=0.3)
        try:
            store = open_store(world, synchronous="full")
            for number in range(5):
                store.execute("INSERT INTO t VALUES (?)", (number,))
                await pause()
        except apsw.Error as failed:
            seen.append(failed)
        world.crash()
        world.disk.power_on()
        world.heal()
        open_store(world, synchronous="full").execute("INSERT INTO t VALUES (100)")

    results = passes(test)
    assert any(isinstance(one, error) for one in seen)
    tally = Tally()
    for result in results:
        tally.add(result.asked, result.fired)
    assert not tally.never_fired


def test_a_crash_when_nothing_lives_leaves_trio_as_it_was() -> None:
    before = vars(trio.CancelScope)["__enter__"], vars(trio.CancelScope)["shield"]

    async def test(world: World) -> None:
        world.crash()

    passes(test)
    assert (vars(trio.CancelScope)["__enter__"], vars(trio.CancelScope)["shield"]) == before


def test_a_disk_that_lies_loses_what_was_synced() -> None:
    async def test(world: World) -> None:
        store = open_store(world, synchronous="full")
        world.disk.fails(Fault.LIE, rate=0.5)
        store.execute("INSERT INTO t VALUES (1)")
        world.crash(NOTHING)
        world.disk.power_on(NOTHING)
        world.heal()
        [(count,)] = open_store(world, synchronous="full").execute("SELECT count(*) FROM t")
        assert count == 1, "a synced row was lost"

    found = failures(test)
    assert found["AssertionError: a synced row was lost"] > 0
    assert found["passes"] > 0


def test_at_rest_faults_are_over_and_everybody_runs_in_turn() -> None:
    async def test(world: World) -> None:
        done: list[int] = []

        async def sends(number: int) -> None:
            while world.fault("lost", rate=0.9):  # noqa: ASYNC110
                await trio.sleep(1)
            done.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(sends, number)
            await world.rest()
            assert sorted(done) == [0, 1, 2]
            assert not world.fault("lost", rate=1.0)

    passes(test)


def test_a_program_with_a_heartbeat_is_at_rest_when_what_was_asked_for_holds() -> None:
    async def test(world: World) -> None:
        beats: list[float] = []

        async def heart() -> None:
            while True:
                await trio.sleep(1)
                beats.append(trio.current_time())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(heart)
            await world.rest(lambda: len(beats) >= 3)
            nursery.cancel_scope.cancel()

    passes(test)


def test_a_program_that_never_comes_to_rest_is_told_with_who_is_awake() -> None:
    async def test(world: World) -> None:
        async def polls() -> None:
            while True:  # noqa: ASYNC110
                await trio.sleep(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(polls)
            await world.rest(within_s=20)

    error = play(test).error
    assert error is not None
    [found] = [leaf for leaf in leaves(error) if isinstance(leaf, NeverAtRest)]
    assert "`main/polls`" in str(found)


def test_a_world_leaves_nothing_behind() -> None:
    folders = []

    async def test(world: World) -> None:
        open_store(world, synchronous="full")
        folders.append(world.disk.folder)

    before = trio.lowlevel.open_process
    play(test)
    assert trio.lowlevel.open_process is before
    assert not folders[0].exists()

    async def real() -> tuple[bytes, str]:
        done = await trio.run_process(["echo", "real"], capture_stdout=True)
        return done.stdout, await trio.to_thread.run_sync(lambda: "a thread")

    assert trio.run(real) == (b"real\n", "a thread")
