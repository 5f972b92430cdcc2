"""Functions in threads: they run beside the loop, and one that cannot be ended is left behind and named (I8)."""

from __future__ import annotations

import threading

import pytest
import trio

from kesoku_actors.protocol import Outcome
from kesoku_actors.tools import Settled, Started, ToolOptions
from tests.tools.journals import bench, call


class Gate:
    """A tool that returns when the test says so."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.entered = threading.Semaphore(0)

    def wait_for_it(self) -> str:
        self.entered.release()
        if not self.opened.wait(30):
            raise TimeoutError("nobody opened the gate")
        return "opened"

    async def is_entered(self) -> None:
        assert await trio.to_thread.run_sync(self.entered.acquire, True, 30)


@pytest.fixture
def gate():
    built = Gate()
    yield built
    built.opened.set()


def count(to: int) -> int:
    return sum(range(to))


def raise_in_thread() -> None:
    raise LookupError("nothing there")


async def test_a_function_runs_in_a_thread_and_its_result_is_the_outcome(gate):
    async with bench([gate.wait_for_it, count, raise_in_thread]) as made:
        made.start(call("a", "wait_for_it"), call("b", "count", to=4), call("c", "raise_in_thread"))
        await made.heard(Settled, "b", "c")
        gate.opened.set()
        await made.heard(Settled, "a")
    assert made.outcome("a").content == "opened"
    assert made.outcome("b").content == "6"
    assert made.outcome("c").content == "LookupError: nothing there"


@pytest.mark.parametrize("how", ["force", "deadline"])
async def test_a_function_that_cannot_be_ended_is_unknown_and_keeps_its_slot(gate, how):
    options = ToolOptions(deadline_s=300.0 if how == "force" else 0.2)
    async with bench([gate.wait_for_it, count], options=options) as made:
        made.start(call("a", "wait_for_it"), call("b", "count", to=3), parallel=1)
        await gate.is_entered()
        if how == "force":
            made.tools.end(["a"])
        await made.heard(Settled, "a")
        assert made.tools.statistics().left_threads == ("a",)
        assert made.tools.statistics().queued == 1
        gate.opened.set()
        await made.heard(Settled, "b")
        assert made.tools.statistics().left_threads == ()
    assert made.outcome("a").outcome is Outcome.UNKNOWN
    assert "wait_for_it runs on in a thread" in made.outcome("a").content
    assert made.outcome("a").metadata["thread"] == "tool wait_for_it"
    assert made.outcome("b").outcome is Outcome.OK


async def test_an_interrupt_raised_in_a_thread_is_an_error_of_the_tool():
    def fail() -> None:
        raise KeyboardInterrupt

    async with bench([fail]) as made:
        made.start(call("a", "fail"))
        await made.heard(Settled, "a")
    assert made.outcome("a").outcome is Outcome.ERROR
    assert made.outcome("a").content == "KeyboardInterrupt"


async def test_shutdown_leaves_a_thread_behind_after_its_grace(gate):
    async with bench([gate.wait_for_it], options=ToolOptions(shutdown_grace_s=0.1)) as made:
        made.start(call("a", "wait_for_it"))
        await gate.is_entered()
    assert made.outcome("a").outcome is Outcome.UNKNOWN
    assert made.outcome("a").metadata["reason"] == "shutdown"


async def test_a_function_forced_before_a_thread_was_free_is_never_called(gate):
    called: list[str] = []

    def note() -> None:
        called.append("note")

    async with bench([gate.wait_for_it, note], options=ToolOptions(threads=1)) as made:
        made.start(call("a", "wait_for_it"))
        await gate.is_entered()
        made.start(call("b", "note"))
        await made.heard(Started, "b")
        made.tools.end(["b"])
        await made.heard(Settled, "b")
        gate.opened.set()
        await made.heard(Settled, "a")
    assert called == []
    assert made.outcome("b").outcome is Outcome.INTERRUPTED
