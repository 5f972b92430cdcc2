"""The store's face: one client function per command. Callers never see letters.

Each raises a `StoreFault` (the store could not), a `NotFound` or `InvalidMessage` (the command is at fault), or
`ActorStopped` when the store ended with the command in hand: then whether it took effect is unknown, and a command
that carries an id may be sent again (C10). There is no deadline: the store answers everything it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from kesoku_actors.actors import Ref
from kesoku_actors.protocol import BusyMode, JobBegun, Message, Standing, Stop, TooManyJobs
from kesoku_actors.store import port
from kesoku_actors.store.reader import Reader
from kesoku_actors.values import frozen


@frozen
class Store:
    """Writes go through the actor behind `ref`, reads through `reader`. The replies are told in `port`."""

    ref: Ref[port.Command]
    reader: Reader

    async def post(self, command: port.Post) -> port.PostReply:
        """Store an inbound message (M5, M6, B4)."""
        return cast(port.PostReply, await self._ask(command))

    async def notice(self, command: port.PostNotice) -> Message:
        """Store a notice to people."""
        return cast(Message, await self._ask(command))

    async def edit(self, command: port.EditMessage) -> Message | None:
        """Replace the content of a waiting message (M8)."""
        return cast("Message | None", await self._ask(command))

    async def withdraw(self, command: port.WithdrawMessage) -> bool:
        """Delete a waiting message (M8)."""
        return cast(bool, await self._ask(command))

    async def settle_attachment(self, command: port.SettleAttachment) -> Message | None:
        """Settle an expected attachment (M8)."""
        return cast("Message | None", await self._ask(command))

    async def stop(self, command: port.RequestStop) -> Stop | port.NothingToStop:
        """Store a stop (I7)."""
        return cast("Stop | port.NothingToStop", await self._ask(command))

    async def force(self, command: port.RequestForce) -> Stop | port.TooEarly | port.NothingToStop:
        """Mark a stop as forced (I7)."""
        return cast("Stop | port.TooEarly | port.NothingToStop", await self._ask(command))

    async def close_session(self, command: port.CloseSession) -> Stop | port.NothingToStop:
        """Begin to clear a session (M7)."""
        return cast("Stop | port.NothingToStop", await self._ask(command))

    async def wipe(self, command: port.WipeSession) -> int:
        """Delete the rows of a closed session (M7)."""
        return cast(int, await self._ask(command))

    async def set_mode(self, command: port.SetMode) -> BusyMode:
        """Change a channel's busy mode (I5)."""
        return cast(BusyMode, await self._ask(command))

    async def choose_model(self, command: port.ChooseModel) -> None:
        """Remember which model a person chose for a channel."""
        await self._ask(command)

    async def reserve_spending(self, command: port.ReserveSpending) -> port.Spending:
        """Reserve what an inference may cost (B4)."""
        return cast(port.Spending, await self._ask(command))

    async def settle_spending(self, command: port.SettleSpending) -> None:
        """Settle what inferences cost (B4)."""
        await self._ask(command)

    async def set_title(self, command: port.SetTitle) -> bool:
        """Give a session a better title than the one it has."""
        return cast(bool, await self._ask(command))

    async def answer_approval(self, command: port.AnswerApproval) -> port.ApprovalAnswer:
        """Approve or deny a waiting call (T7)."""
        return cast(port.ApprovalAnswer, await self._ask(command))

    async def begin_epoch(self, command: port.BeginEpoch) -> port.EpochBegun:
        """Begin a life of the agents subtree (C2)."""
        return cast(port.EpochBegun, await self._ask(command))

    async def register(self, command: port.RegisterWorker) -> port.Registered:
        """Make a worker the one of its session (C2)."""
        return cast(port.Registered, await self._ask(command))

    async def give_back(self, command: port.GiveBack) -> tuple[Message, ...]:
        """Take back the rows of a worker that ended (C2)."""
        return cast("tuple[Message, ...]", await self._ask(command))

    async def commit(self, command: port.Commit) -> port.CommitReply:
        """Carry out a worker's plan (C10)."""
        return cast(port.CommitReply, await self._ask(command))

    def commit_nowait(
        self, command: port.Commit, hear: Callable[[port.CommitReply | None, Exception | None], None]
    ) -> Callable[[], None]:
        """Do the same without waiting: `hear` takes the reply, or what `commit` would raise (`Ref.ask_nowait`)."""
        return self.ref.ask_nowait(command, hear)

    async def call_started(self, command: port.CallStarted) -> bool:
        """Mark a call as started (C3)."""
        return cast(bool, await self._ask(command))

    async def call_waiting(self, command: port.CallWaiting) -> Standing:
        """Let a call wait for approval, or tell that it need not (T7)."""
        return cast(Standing, await self._ask(command))

    async def call_expired(self, command: port.CallExpired) -> bool:
        """Settle a call that nobody answered in time (T7)."""
        return cast(bool, await self._ask(command))

    async def call_process(self, command: port.CallProcess) -> None:
        """Store where a call runs (C3)."""
        await self._ask(command)

    async def stage(self, command: port.StageOutcome) -> bool:
        """Stage the outcome of a call (O3)."""
        return cast(bool, await self._ask(command))

    async def begin_job(self, command: port.BeginJob) -> JobBegun | TooManyJobs | None:
        """Let a started call go on as a job (I8)."""
        return cast("JobBegun | TooManyJobs | None", await self._ask(command))

    async def end_job(self, command: port.EndJob) -> bool:
        """Store the end of a job with its notice (I8)."""
        return cast(bool, await self._ask(command))

    async def plan_delivery(self, command: port.PlanDelivery) -> tuple[port.Chunk, ...]:
        """Store the parts of a delivery (C5)."""
        return cast("tuple[port.Chunk, ...]", await self._ask(command))

    async def chunk_attempt(self, command: port.ChunkAttempt) -> port.Chunk:
        """Count an attempt at a part (C5)."""
        return cast(port.Chunk, await self._ask(command))

    async def chunk_sent(self, command: port.ChunkSent) -> port.Chunk:
        """Record that a part was sent (C5)."""
        return cast(port.Chunk, await self._ask(command))

    async def mark_delivered(self, command: port.MarkDelivered) -> bool:
        """Record that a message has left, or never will (C5)."""
        return cast(bool, await self._ask(command))

    async def store_summaries(self, command: port.StoreSummaries) -> bool:
        """Store what a compaction made."""
        return cast(bool, await self._ask(command))

    async def _ask(self, command: port.Command) -> Any:
        return await self.ref.ask(command, timeout_s=None)
