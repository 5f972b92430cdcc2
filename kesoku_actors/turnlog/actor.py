"""The turn log: every inference as a file in its session's folder, written off the path of events (P4).

A worker hands over what it noted (`TurnLog.record`) and goes on; an actor of its own writes it in a thread. The log is
for people: whatever goes wrong with it, the turn completes.

Invariants: `record` neither waits nor raises. What waits is bounded, in inferences and in their messages; what comes
while it is full is dropped. Trouble is told once a session, and again only after something could be written. An orderly
stop writes what waits, as far as the actor's grace allows. The folder of a session is made when something is recorded,
never later: one that is gone by then was cleared away, and no log may bring it back.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import trio
from attrs import field

from kesoku_actors.actors import ActorStopped, Cell, ChildSpec
from kesoku_actors.errors import NotFound
from kesoku_actors.log import Logger, Mask
from kesoku_actors.store import StoreFault
from kesoku_actors.turnlog.document import without_data
from kesoku_actors.turnlog.inference import Inference
from kesoku_actors.turnlog.shelf import Shelf
from kesoku_actors.values import define, frozen

CAPACITY: Final = 64
MOST_MESSAGES: Final = 100_000
"""Of all histories that wait: what they refer to stays in memory until it is written."""
MOST_SHELVES: Final = 256
KEEP_BYTES: Final = 64 << 20
GRACE_S: Final = 5.0

Run = Callable[[Callable[[], None]], Awaitable[None]]


async def in_thread(call: Callable[[], None]) -> None:
    """Run what waits for a disk in a thread; one that hangs is left behind when the actor's grace is over."""
    await trio.to_thread.run_sync(call, abandon_on_cancel=True)


@frozen(kw_only=True)
class TurnLogOptions:
    """How a turn log is kept."""

    mask: Mask = field(repr=False)
    """Hides known secrets (T6)."""
    keep: int = 200
    """Files that are kept of a session; the oldest go first."""
    keep_bytes: int = KEEP_BYTES
    """Bytes that are kept of a session."""
    capacity: int = CAPACITY
    run: Run = in_thread


@frozen(kw_only=True)
class TurnLogStatistics:
    """A reading."""

    waiting: int
    written: int
    dropped: int
    """Not written: there were too many at once."""
    failed: int
    """Not written: the disk refused."""


@define(eq=False, kw_only=True)
class TurnLog:
    """The face; outlives the lives of its actor."""

    options: TurnLogOptions
    workspace_for: Callable[[str], Path]
    """The session's folder, made if need be."""
    count_steps: Callable[[str, str], Awaitable[int]]
    """How many inferences the store knows of a session, apart from the one with this id."""
    log: Logger
    _waiting: deque[tuple[Path, Inference]] = field(factory=deque, init=False)
    _messages: int = field(default=0, init=False)
    """In the histories that wait."""
    _wake: trio.Event = field(factory=trio.Event, init=False)
    _shelves: OrderedDict[str, Shelf] = field(factory=OrderedDict, init=False)
    _troubled: set[str] = field(factory=set, init=False)
    """Sessions whose trouble was told."""
    _written: int = field(default=0, init=False)
    _dropped: int = field(default=0, init=False)
    _failed: int = field(default=0, init=False)

    def record(self, inference: Inference) -> None:
        """Have an inference written soon."""
        session_id = inference.request.session_id
        if len(self._waiting) >= self.options.capacity or self._messages + inference.messages > MOST_MESSAGES:
            self._dropped += 1
            self._tell(session_id, "the turn log cannot keep up: inferences are not logged until it does")
            return
        try:
            folder = self.workspace_for(session_id)
        except (OSError, NotFound) as error:
            self._failed += 1
            self._tell(session_id, "the folder of the turn log cannot be made", error=str(error))
            return
        self._waiting.append((folder, inference))
        self._messages += inference.messages
        self._wake.set()

    def statistics(self) -> TurnLogStatistics:
        """Return a reading."""
        return TurnLogStatistics(
            waiting=len(self._waiting), written=self._written, dropped=self._dropped, failed=self._failed
        )

    def spec(self) -> ChildSpec:
        """Return the child spec of its actor. It stands before whoever records: it is then stopped after them."""
        return ChildSpec(id="turn-log", start=self._live, shutdown_s=GRACE_S)

    async def _live(self, cell: Cell[None]) -> None:
        cell.on_stop = self._ring
        cell.started()
        while self._waiting or not cell.stopping.is_set():
            if self._waiting:
                folder, inference = self._waiting.popleft()
                self._messages -= inference.messages
                await self._write(folder, inference)
            else:
                self._wake = trio.Event()
                await self._wake.wait()

    def _ring(self) -> None:
        self._wake.set()

    async def _write(self, folder: Path, inference: Inference) -> None:
        session_id = inference.request.session_id
        shelf = await self._shelf(folder, inference)
        refused: list[OSError] = []

        def write() -> None:
            try:
                shelf.write(inference)
            except OSError as error:
                refused.append(error)

        await self.options.run(write)
        if shelf.strange:
            self.log.warning(
                "turn log files with impossible numbers are passed over", session=session_id, files=shelf.strange
            )
            shelf.strange = 0
        if refused:
            self._failed += 1
            self._tell(session_id, "the turn log cannot be written", error=str(refused[0]))
        else:
            self._written += 1
            self._troubled.discard(session_id)

    async def _shelf(self, folder: Path, inference: Inference) -> Shelf:
        session_id = inference.request.session_id
        if session_id not in self._shelves:
            try:
                known = await self.count_steps(session_id, inference.request.inference_id)
            except (StoreFault, ActorStopped):
                known = 0  # the files there are tell the rest
            self._shelves[session_id] = Shelf(
                folder=folder,
                keep=self.options.keep,
                keep_bytes=self.options.keep_bytes,
                edit=without_data(self.options.mask),
                last=known,
            )
        self._shelves.move_to_end(session_id)
        while len(self._shelves) > MOST_SHELVES:
            self._shelves.popitem(last=False)
        return self._shelves[session_id]

    def _tell(self, session_id: str, event: str, **fields: str) -> None:
        if session_id in self._troubled:
            return
        if len(self._troubled) >= MOST_SHELVES:
            self._troubled.clear()
        self._troubled.add(session_id)
        self.log.bind(**fields).warning(event, session=session_id)
