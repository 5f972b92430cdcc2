"""The inlet of a worker: what happens to its session becomes events in one queue. It decides nothing.

What comes in other tasks' time is only queued there; it becomes an event in the worker's own, when it is taken.

The clock of the turn (B4) is a cancel scope that the worker listens in: `next` is called within `alarm`, and when that
was cancelled `rang` says what it means. A scope for every wait would cost more than what is heard.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import trio
from attrs import field

from kesoku_actors.protocol import (
    BusyMode,
    Stop,
    Waiting,
)
from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.arrivals import Bell
from kesoku_actors.tools import AwaitingApproval, Settled, Started, ToolEvent
from kesoku_actors.values import define


@define(eq=False)
class _Streamed:
    """Pieces of one inference that came in a row, and become one event when it is taken."""

    ticket: int
    pieces: list[str]

    def __call__(self) -> v.Event:
        return v.ModelDelta(self.ticket, "".join(self.pieces))


Later = Callable[[], "v.Event | None"]
"""Makes an event of what was queued, or none when it leads to nothing yet."""


@define(eq=False)
class Inlet:
    """The worker's face toward the gateway (its latch) and the tools (its sink): one queue, one wake-up."""

    events: list[v.Event | Later] = field(factory=list)
    """In order; a deque would take more room than the rest of an idle worker's inlet, for the few that ever wait."""
    wake: trio.Event = field(factory=trio.Event)
    files: Bell = field(factory=Bell)
    look_again: Callable[[], None] = lambda: None
    """Lets the tools look at what was said about waiting calls (T7)."""
    alarm: trio.CancelScope = field(factory=trio.CancelScope)
    """Cancelled when the running turn's time is over; each is entered once."""
    budget: tuple[float, v.Event] | None = None
    """When the running turn's time is over, in trio's time, and the event that says so (B4)."""

    held: tuple[float, v.Event] | None = None
    """Its seconds left and that event, while the clock stands still."""

    def set_budget(self, seconds: float, spent: v.Event) -> None:
        """Start the clock of a turn anew."""
        deadline = trio.current_time() + seconds
        self.budget, self.held, self.alarm.deadline = (deadline, spent), None, deadline

    def hold_budget(self) -> None:
        """Let it stand still."""
        if self.budget is not None:
            deadline, spent = self.budget
            self.budget, self.held = None, (deadline - trio.current_time(), spent)
            self.alarm.deadline = math.inf

    def resume_budget(self) -> None:
        """Let it go on where it stood."""
        if self.held is not None:
            self.set_budget(*self.held)

    def put(self, event: v.Event | Later) -> None:
        """Queue an event, or what makes one when it is taken; never blocks."""
        self.events.append(event)
        self.wake.set()

    def stream(self, ticket: int, text: str) -> None:
        """Queue a piece of an answer; what nobody has taken of it yet stays one event, however many words it has."""
        last = self.events[-1] if self.events else None
        if isinstance(last, _Streamed) and last.ticket == ticket:
            last.pieces.append(text)
        else:
            self.events.append(_Streamed(ticket, [text]))
            self.wake.set()

    async def next(self) -> v.Event:
        """Wait for the next event. To be called within `alarm`."""
        while True:
            if not self.events:
                self.wake = trio.Event()
                await self.wake.wait()
            taken = self.events.pop(0)
            event = taken() if callable(taken) else taken
            if event is not None:
                return event

    def rang(self) -> v.Event | None:
        """Take note that `alarm` was cancelled, and set the next one; the event is none when the time was set anew."""
        self.alarm = trio.CancelScope()
        if self.budget is None:
            return None
        deadline, spent = self.budget
        if trio.current_time() < deadline:
            self.alarm.deadline = deadline
            return None
        self.budget = None
        return spent

    def message_waits(self, message: Waiting) -> None:
        self.put(v.PersonSpoke(message) if message.is_person else v.NoticeArrived(message))

    def message_withdrawn(self, message_id: str) -> None:
        self.put(v.MessageWithdrawn(message_id))

    def attachments_changed(self, message_id: str) -> None:
        self.files.ring()

    def stop_stored(self, stop: Stop) -> None:
        self.put(v.StopRequested(stop))
        if stop.forced and not stop.done:
            self.put(v.ForceRequested())

    def mode_set(self, mode: BusyMode) -> None:
        self.put(v.ModeSwitched(mode))

    def approvals_changed(self) -> None:
        self.look_again()

    def tool(self, event: ToolEvent) -> None:
        match event:
            case Started(call_id=call_id):
                self.put(v.ToolStarted(call_id))
            case AwaitingApproval(call_id=call_id):
                self.put(v.ToolWaiting(call_id))
            case Settled(call_id=call_id, outcome=outcome):
                self.put(v.ToolSettled(call_id, outcome))
