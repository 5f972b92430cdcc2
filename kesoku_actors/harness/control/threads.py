"""Threads of trio's, simulated: each call runs inline, in one step of a task of its own.

That is `trio.to_thread.run_sync`, and `trio.lowlevel.start_thread_soon` below it.

So the strategy decides when it runs and what runs before its result arrives, and limiters, cancellation and abandoned
calls are trio's own. But a call is atomic: races inside real threads are not seen here, and none is claimed. A call
that waits for another task blocks the run; the watchdog ends it. `trio.from_thread` is refused.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import outcome
import trio

from kesoku_actors.harness.allow import Reach
from kesoku_actors.harness.control.current import Controlled
from kesoku_actors.harness.control.places import Call, call_of
from kesoku_actors.harness.control.privates import threads
from kesoku_actors.harness.control.traps import guard
from kesoku_actors.harness.errors import Escape


def simulate_threads(run: Controlled) -> None:
    """Run what is given to trio's threads inline until the run ends."""
    started: Counter[str] = Counter()

    def start(work: Callable[[], Any], deliver: Callable[[Any], object], name: str | None = None) -> None:
        caller = run.last.label if run.last is not None else "the program"
        lane = f"{caller}/thread"
        started[lane] += 1
        trio.lowlevel.spawn_system_task(
            work_in_a_thread,
            work,
            deliver,
            call_of(sys._getframe(1)),
            name=lane if started[lane] == 1 else f"{lane}#{started[lane]}",
        )

    places = (vars(threads), "start_thread_soon", start), (vars(threads), "_send_message_to_trio", _refuse)
    for names, name, stand_in in (*places, (vars(trio.lowlevel), "start_thread_soon", start)):
        run.events.undo.append(partial(names.__setitem__, name, names[name]))
        names[name] = stand_in


async def work_in_a_thread(work: Callable[[], Any], deliver: Callable[[Any], object], asked: Call | None) -> None:
    """Do the work in one step; `asked` is whose call it is, for what reaches out from in here."""
    deliver(outcome.capture(work))


def _refuse(*_arguments: object) -> None:
    raise guard().remember(
        Escape(
            f"`trio.from_thread` is used in a simulated thread, which runs within one step and cannot wait "
            f"({Reach.THREADS.value} are atomic in here)"
        )
    )
