"""What a program under control may reach of the real world: nothing, unless it is allowed. Pure."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen


class Reach(StrEnum):
    """One way out of the simulated world."""

    THREADS = "threads"
    ASYNCIO = "asyncio"
    SOCKETS = "sockets"
    PROCESSES = "processes"
    FILES = "files"
    CLOCK = "clock"
    RANDOMNESS = "randomness"


@frozen(kw_only=True)
class Allow:
    """The ways out that are open. What a program gets there is not decided by the schedule: replays may differ."""

    threads: bool = False
    """Threads that never speak to trio; `trio.to_thread` has its place in a world."""
    asyncio: bool = False
    """Loops of asyncio, for code that makes one and runs it to its end; they need `sockets` too."""
    sockets: bool = False
    processes: bool = False
    files: bool = False
    """Changing real files. Reading them is always allowed."""
    clock: bool = False
    randomness: bool = False

    def allows(self, reach: Reach) -> bool:
        """Tell whether a way out is open."""
        return bool(getattr(self, reach.value))


INSTEAD = {
    Reach.THREADS: "run it with a world, whose `trio.to_thread.run_sync` is simulated",
    Reach.ASYNCIO: "the harness explores trio programs alone",
    Reach.SOCKETS: "use `world.net`",
    Reach.PROCESSES: "run it with a world and give the program a script in `world.procs`",
    Reach.FILES: "use `world.disk`",
    Reach.CLOCK: "use `trio.current_time()`, `trio.sleep()` or `world.clock`",
    Reach.RANDOMNESS: "use `world.rng`, `world.ids` or a `random.Random` with a seed",
}
"""What to do in place of reaching out."""
