"""Whatever reaches out of the simulated world, never comes to an end or goes round for ever is named at its line."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import trio

from kesoku_actors.harness.allow import Allow
from kesoku_actors.harness.control import Limits, canary, check_trio, control, runqueue
from kesoku_actors.harness.errors import Escape, Livelock, RunEnded, StepLimit, Stuck, UnsupportedTrio
from kesoku_actors.harness.failures import leaves
from kesoku_actors.harness.replay import Replay
from kesoku_actors.harness.strategies import PCT, Random, Strict
from kesoku_actors.harness.strategy import Strategy

from .programs import Program, pause
from .test_control import run, told

HERE = Path(__file__).name


def ending(program: Program, strategy: Strategy | None = None, **options: Any) -> BaseException | None:
    """Return the one error that a run ended with, or none."""
    result = run(program, strategy or Random(), **options)
    if result.error is None:
        return None
    kinds = {type(leaf): leaf for leaf in leaves(result.error)}
    assert len(kinds) == 1, kinds
    return next(iter(kinds.values()))


def real_process() -> bytes:
    return subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, check=True).stdout


def read_this_file() -> str:
    return Path(__file__).read_text()


def uses_asyncio() -> None:
    coroutine = asyncio.sleep(0)
    try:
        asyncio.run(coroutine)
    finally:
        coroutine.close()


def uses_a_pool() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int)


OUT: dict[str, Callable[[], object]] = {
    "`time.time`": lambda: time.time(),
    "`time.monotonic`": lambda: time.monotonic(),
    "`time.perf_counter`": lambda: time.perf_counter(),
    "`time.sleep`": lambda: time.sleep(0),
    "`os.urandom`": lambda: os.urandom(4),
    "`uuid.uuid4`": lambda: uuid.uuid4(),
    "`random.random`": lambda: random.random(),
    "`random.choice`": lambda: random.choice("ab"),
    "`random.Random.seed`": lambda: random.Random(),
    "`random._urandom`": lambda: random.SystemRandom().random(),
    "`random.seed`": lambda: random.seed(1),
    "`threading.Thread.start`": lambda: threading.Thread(target=int).start(),
    "`threading.Thread.start` is": uses_a_pool,
    "a real socket": lambda: socket.socket(),
    "`socket.getaddrinfo": lambda: socket.getaddrinfo("localhost", 80),
    "a real process": lambda: subprocess.run([sys.executable, "-c", ""]),
    "`os.system": lambda: os.system("true"),
    "`asyncio.events.new_event_loop`": uses_asyncio,
    "`asyncio.new_event_loop`": lambda: asyncio.new_event_loop(),
    "writing the real file": lambda: Path("never-written").write_text("x"),
    "writing the real file '/never-written'": lambda: os.open("/never-written", os.O_CREAT | os.O_WRONLY),
    "`os.mkdir": lambda: os.mkdir("never-made"),
    "`os.remove": lambda: os.remove("never-there"),
}


@pytest.mark.parametrize("what", OUT)
def test_what_reaches_out_is_refused_and_named_with_its_line(what: str) -> None:
    call = OUT[what]

    async def main() -> None:
        await pause()
        call()

    error = ending(main)
    assert isinstance(error, Escape)
    assert what in str(error)
    line = call.__code__.co_firstlineno
    assert any(f"{HERE}:{line + more} in " in str(error) for more in range(4)), str(error)
    assert "Allow(" in str(error)
    del error


def test_trio_threads_and_processes_outside_of_a_world_are_refused_at_the_line_of_the_program() -> None:
    async def threads() -> None:
        await trio.to_thread.run_sync(int)

    async def processes() -> None:
        await trio.run_process(["true"])

    async def sockets() -> None:
        await trio.open_tcp_stream("127.0.0.1", 9)

    for program, called in ((threads, "to_thread_run_sync"), (processes, "run_process"), (sockets, "open_tcp_stream")):
        error = ending(program)
        assert isinstance(error, Escape)
        assert called in str(error)
        assert f"{HERE}:{program.__code__.co_firstlineno + 1} in {program.__name__}" in str(error)


def test_an_escape_that_the_program_swallows_is_told_all_the_same() -> None:
    async def main() -> None:
        try:
            time.time()
        except Exception:
            await pause()

    assert isinstance(ending(main), Escape)


async def nothing() -> None:
    """End at once."""


def test_what_is_allowed_is_real(tmp_path: Path) -> None:
    async def main() -> None:
        assert time.time() > 1e9
        assert len(os.urandom(4)) == 4
        (tmp_path / "written").write_text("x")
        assert real_process() == b"1\n"
        socket.socket().close()
        worker = threading.Thread(target=int)
        worker.start()
        worker.join()
        if "trio_asyncio" not in sys.modules:  # once imported, it forbids other loops beside trio for good
            asyncio.run(nothing())

    everything = Allow(
        threads=True, asyncio=True, sockets=True, processes=True, files=True, clock=True, randomness=True
    )
    assert ending(main, allow=everything) is None
    assert (tmp_path / "written").read_text() == "x"


def test_reading_files_importing_modules_and_logging_are_no_escape(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "fresh_module_of_this_test.py").write_text("value = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    async def main() -> None:
        import logging

        from fresh_module_of_this_test import value

        assert value == 7
        assert read_this_file()
        logging.getLogger("x").warning("a record has the time in it")
        await pause()

    assert ending(main) is None
    assert list((tmp_path / "__pycache__").iterdir())


def test_after_a_run_everything_is_real_again() -> None:
    before = time.time, random.random, os.urandom, uuid.uuid4
    ending(BUGLESS)
    assert (time.time, random.random, os.urandom, uuid.uuid4) == before
    assert time.time() > 0
    socket.socket().close()


async def BUGLESS() -> None:
    await pause(3)


def test_a_strategy_may_use_what_a_program_may_not() -> None:
    class Unseeded:
        def begin(self, run: Any) -> None:
            pass

        def choose(self, ready: Any, *, may_tick: bool, step: int) -> int:
            return int(random.random() * len(ready) + time.time() * 0)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pause, 3)
            nursery.start_soon(pause, 3)

    assert ending(main, Unseeded()) is None


async def counts_for_ever() -> None:
    number = 0
    await pause()
    while True:
        number += 1


async def waits_for_a_lock() -> None:
    await pause()
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


async def hears_nothing_for_a_while() -> None:
    for _ in range(3):
        try:
            while True:
                pass
        except BaseException:
            continue


@pytest.mark.parametrize("main", [counts_for_ever, waits_for_a_lock, hears_nothing_for_a_while])
def test_a_step_that_never_ends_is_ended_and_its_line_named(main: Program) -> None:
    error = ending(main, limits=Limits(stuck_s=0.1))
    assert isinstance(error, Stuck)
    assert f"`{main.__name__}`" in str(error)  # type: ignore[attr-defined]
    first = main.__code__.co_firstlineno  # type: ignore[attr-defined]
    line = int(re.search(rf"{HERE}:(\d+) in", str(error)).group(1))  # type: ignore[union-attr]
    assert first < line <= first + 8


def test_a_step_that_never_ends_is_ended_in_another_thread_too() -> None:
    found: list[BaseException | None] = []
    worker = threading.Thread(target=lambda: found.append(ending(counts_for_ever, limits=Limits(stuck_s=0.1))))
    worker.start()
    worker.join()
    assert isinstance(found[0], Stuck)


def test_what_no_error_can_end_ends_the_process_and_says_why() -> None:
    script = (
        "import tests.harness.test_traps as t\n"
        "async def deaf():\n"
        "    sum(iter(int, 1))\n"
        "print(t.ending(deaf, limits=t.Limits(stuck_s=0.05)))\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True)
    assert done.returncode == 1
    assert "line 3 in deaf" in done.stderr


def two_that_give_way() -> Program:
    """Each waits as long as the other one wants to go first."""

    async def main() -> None:
        wants = [True, True]

        async def polite(mine: int) -> None:
            while wants[1 - mine]:
                wants[mine] = False
                await pause()
                wants[mine] = True
                await pause()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(polite, 0)
            nursery.start_soon(polite, 1)

    return main


async def polls_for_ever() -> None:
    while True:  # noqa: ASYNC110
        await trio.sleep(0.1)


async def starts_a_task_each_time() -> None:
    async with trio.open_nursery() as nursery:
        while True:
            nursery.start_soon(pause)
            await pause(3)


async def retries_for_ever() -> None:
    class Failed(Exception):
        pass

    async def request() -> None:
        await trio.sleep(1)
        raise Failed

    while True:
        try:
            await request()
        except Failed:
            await trio.sleep(2)


ROUNDS = [two_that_give_way(), polls_for_ever, starts_a_task_each_time, retries_for_ever]


@pytest.mark.parametrize("main", ROUNDS)
@pytest.mark.parametrize("strategy", [Random, Strict, PCT])
def test_a_program_that_goes_round_for_ever_is_told_with_its_cycle(main: Program, strategy: Any) -> None:
    error = ending(main, strategy(), limits=Limits(steps=300))
    assert isinstance(error, Livelock)
    assert any(re.search(r"` at (test_traps|programs)\.py:\d+ in ", place) for place in error.cycle)
    assert all(".py:" in place or place.endswith(("pass", "more")) for place in error.cycle)


@pytest.mark.parametrize("main", ROUNDS)
@pytest.mark.parametrize("strategy", [Random, Strict])
def test_it_is_told_long_before_the_step_limit_and_a_replay_tells_the_same(main: Program, strategy: Any) -> None:
    first = run(main, strategy(), trace=True)
    assert first.steps < 5_000
    assert told(run(main, Replay(first.schedule), trace=True)) == told(first)


def polls_until(turns: int, *, how: str) -> Program:
    """A program that takes long and comes to its end."""

    async def main() -> None:
        done = trio.Event()

        async def works() -> None:
            match how:
                case "counts":
                    for _ in range(turns):
                        await pause()
                case "iterates":
                    hidden = iter([None] * turns)
                    while next(hidden, 1) is None:
                        await pause()
                case "waits":
                    await trio.sleep(turns)
                case "asks the time":
                    until = trio.current_time() + turns
                    while trio.current_time() < until:  # noqa: ASYNC110
                        await trio.sleep(1)
                case "asks how long":
                    since = trio.current_time()
                    while trio.current_time() - since < turns:  # noqa: ASYNC110
                        await trio.sleep(1)
                case _:
                    for _ in range(turns):
                        await trio.lowlevel.checkpoint()
            done.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(works)
            while not done.is_set():  # noqa: ASYNC110
                await trio.sleep(1 if how in ("waits", "asks the time", "asks how long") else 0.01)

    return main


@pytest.mark.parametrize("how", ["counts", "iterates", "waits", "asks the time", "asks how long", "loops"])
def test_a_poller_that_comes_to_its_end_is_no_livelock(how: str) -> None:
    assert ending(polls_until(400, how=how), limits=Limits(steps=20_000)) is None
    error = ending(polls_until(3000, how=how), limits=Limits(steps=100))
    assert error is None or isinstance(error, StepLimit)


def test_steps_that_come_again_with_other_values_are_a_step_limit_that_names_them() -> None:
    async def main() -> None:
        number = 0
        while True:
            number += 1
            await pause()

    error = ending(main, limits=Limits(steps=300))
    assert isinstance(error, StepLimit)
    assert "with other values" in str(error)
    assert "`main` at programs.py:" in str(error)


async def hears_nothing_at_all() -> None:
    with trio.move_on_after(5):
        while True:
            try:
                await trio.sleep(1)
            except BaseException:
                continue


def test_what_goes_on_whatever_is_thrown_into_it_is_a_livelock_and_does_not_go_on_when_it_is_thrown_away() -> None:
    error = ending(hears_nothing_at_all)
    assert isinstance(error, Livelock)
    assert any(f"{HERE}:" in place for place in error.cycle)
    del error
    gc.collect()


def test_an_unknown_trio_is_refused(monkeypatch: Any) -> None:
    for version in ("0.30.0", "0.99.0", "1.0.0"):
        monkeypatch.setattr(trio, "__version__", version)
        with pytest.raises(UnsupportedTrio, match=re.escape(version)):
            check_trio()


def test_a_trio_that_takes_its_batches_in_another_way_is_refused(monkeypatch: Any) -> None:
    def takes_two(things: Any) -> Any:
        if not isinstance(things, runqueue.RunQueue):
            return list(things)
        return [things.pop() for _ in range(2) if things]

    control._broken_promise.cache_clear()
    monkeypatch.setattr(runqueue, "_taken", takes_two)
    try:
        with pytest.raises(UnsupportedTrio, match="relies on"):
            run(BUGLESS, Random())
    finally:
        control._broken_promise.cache_clear()


def test_the_installed_trio_keeps_its_promises() -> None:
    check_trio()
    assert control._broken_promise() is None
    assert canary.TRIED[0] < canary.TRIED[1]
    assert issubclass(Stuck, RunEnded)
