"""The provider actor: it grants slots and keeps a provider's limits; the inference runs in its asker's own task.

Each provider has one `ProviderGate` (its face) and one `provider_actor` reading the gate's mailbox. A free slot is
given at once; where there is none, or others wait already, it is asked for with a letter that the actor answers when
there is room, first come, first served. Who leaves while waiting is
skipped; who holds a slot ends it by leaving `slot()`, however that happens.

Invariants: a slot's end is written on the slot itself, synchronously, so it cannot be lost with a full mailbox or a
crashed actor; `Look` only hints that there is something to read. Slots held outlive a restart of the actor, so the
provider's concurrency is never exceeded; askers waiting then are told to try again. Waiting for a slot counts in no
time limit of the stream (P3). Who has another model to ask waits for no server that is down: while the circuit breaker
is open, and no probe is due, it is told so at once.
"""

from __future__ import annotations

import math
from collections import deque
from contextlib import suppress
from enum import Enum
from typing import assert_never

import trio
from attrs import field

from kesoku_actors.actors import ActorStopped, Cell, Letter, Mailbox, MailboxFull
from kesoku_actors.llm.breaker import Breaker, Policy
from kesoku_actors.llm.meter import Meter
from kesoku_actors.llm.port import Emit, Piece, Provider, ProviderError, Remedy, Reply, Request
from kesoku_actors.values import define, frozen


class _End(Enum):
    """How a slot ended without a failure of the server."""

    ANSWERED = "answered"
    ABANDONED = "abandoned"
    """Cancelled, or its holder crashed: nothing is known of the server."""


class Patience(Enum):
    """What an asker does while the server is down."""

    WAITS = "waits"
    LEAVES = "leaves"
    """It has another model to ask."""


@define(eq=False)
class _Slot:
    """One asker's slot; `end` is set once, by its holder."""

    patience: Patience = Patience.WAITS
    end: _End | ProviderError | None = None


@frozen
class _Acquire:
    """Ask for a slot; an answer is the grant."""

    slot: _Slot


@frozen
class _Look:
    """A slot may have ended."""


GateMessage = _Acquire | _Look


@frozen(kw_only=True)
class GateStatistics:
    """A reading of one gate."""

    name: str
    concurrency: int
    running: int
    waiting: int
    failures: int
    """Retriable errors since the last success."""
    is_open: bool
    """Whether the circuit breaker lets only probes through."""


@define(eq=False)
class _Desk:
    """What the actor knows: who holds a slot, who waits, and how the server does."""

    policy: Policy
    breaker: Breaker = field(factory=Breaker)
    held: dict[_Slot, None] = field(factory=dict)
    """In the order they were given out."""
    waiting: deque[tuple[Letter[GateMessage], _Slot]] = field(factory=deque)
    ended: list[_Slot] = field(factory=list)
    """Those held whose end nobody has looked at yet; of one that was not granted there is nothing to take back."""

    def settle(self, now: float) -> None:
        """Take back the slots that ended and tell the breaker."""
        while self.ended:
            slot = self.ended.pop(0)
            if slot not in self.held:
                continue
            del self.held[slot]
            match slot.end:
                case ProviderError() as error:
                    self.breaker = self.breaker.failed(self.policy, now, error.retry_after_s)
                case _End.ANSWERED:
                    self.breaker = self.breaker.succeeded(self.policy)
                case _End.ABANDONED | None:
                    pass

    def begin(self, slot: _Slot, now: float) -> bool:
        """Give out a slot at once, if there is room and nobody waits for it."""
        self.settle(now)
        if self.waiting or not self.breaker.may_begin(self.policy, len(self.held), now):
            return False
        self.held[slot] = None
        self.breaker = self.breaker.begun(self.policy, now)
        return True

    def down_for(self, now: float) -> float | None:
        """Return how long nothing but a probe begins, and none is due; none while the server is up."""
        probe = self.breaker.next_probe
        return probe - now if probe is not None and now < probe else None

    def down(self, name: str, for_s: float) -> ProviderError:
        """Return what is told to those who have another model to ask."""
        failures = self.breaker.failures
        said = f"{name}: it failed {failures} times in a row; it is asked again in {for_s:.0f} s at the soonest"
        return ProviderError(said, remedy=Remedy.FAIL_OVER, kind="down", retry_after_s=for_s)

    def send_on(self, name: str, now: float) -> None:
        """Let those leave who have another model to ask, if the server is down."""
        for_s = self.down_for(now)
        if for_s is None:
            return
        for letter, slot in [each for each in self.waiting if each[1].patience is Patience.LEAVES]:
            self.waiting.remove((letter, slot))
            letter.refuse(self.down(name, for_s))

    def grant(self, now: float) -> float:
        """Answer those who may begin, in order of asking; return when to look again without being told."""
        while self.waiting and self.breaker.may_begin(self.policy, len(self.held), now):
            letter, slot = self.waiting.popleft()
            if letter.wants_reply:
                self.held[slot] = None
                self.breaker = self.breaker.begun(self.policy, now)
                letter.reply(None)
        return self.breaker.next_look(now) if self.waiting else math.inf


class ProviderGate:
    """The face of one provider's actor. Made before anything runs; `mailbox` goes into the actor's child spec."""

    def __init__(self, name: str, policy: Policy, meter: Meter | None = None) -> None:
        self.name = name
        self.meter = meter or Meter()
        self.mailbox: Mailbox[GateMessage] = Mailbox(f"llm/{name}")
        self._desk = _Desk(policy)

    @classmethod
    def of(cls, provider: Provider, meter: Meter | None = None) -> ProviderGate:
        """Return the gate of this provider, with the concurrency of its limits."""
        return cls(provider.name, Policy(concurrency=provider.limits.concurrency), meter)

    def slot(self, patience: Patience = Patience.WAITS) -> Holding:
        """Return a block that waits for a slot and holds it. Entering it raises `ProviderError` (retry) when the actor
        ends meanwhile.

        One that leaves is not granted a slot while the server is down: `ProviderError` (fail over). A `ProviderError`
        that leaves the block tells the circuit breaker how the server does: one that another try cannot help shows it
        alive.
        """
        return Holding(self, _Slot(patience))

    def trouble(self) -> ProviderError | None:
        """Return why an inference would wait now, and for how long at least (`retry_after_s`); none when it would not
        for a server that is down."""
        for_s = self._desk.down_for(trio.current_time())
        return None if for_s is None else self._desk.down(self.name, for_s)

    def statistics(self) -> GateStatistics:
        """Return a reading."""
        desk = self._desk
        return GateStatistics(
            name=self.name,
            concurrency=desk.policy.concurrency,
            running=sum(slot.end is None for slot in desk.held),
            waiting=sum(letter.wants_reply for letter, _ in desk.waiting),
            failures=desk.breaker.failures,
            is_open=desk.breaker.next_probe is not None,
        )

    async def _wait_for(self, slot: _Slot) -> None:
        now = trio.current_time()
        if self._desk.begin(slot, now):
            return
        if slot.patience is Patience.LEAVES and (for_s := self._desk.down_for(now)) is not None:
            raise self._desk.down(self.name, for_s)
        try:
            await self.mailbox.ref.ask(_Acquire(slot), timeout_s=None)
        except ActorStopped as error:
            raise ProviderError(f"{self.name}: its actor ended before it granted a slot", kind="gate") from error

    def _end(self, slot: _Slot, end: _End | ProviderError) -> None:
        slot.end = end
        self._desk.ended.append(slot)
        if self._desk.waiting:
            self._hint()
        else:
            self._desk.settle(trio.current_time())

    def _hint(self) -> None:
        # Nothing is lost without the hint: the actor reads the slots after every letter and at every start.
        with suppress(MailboxFull, ActorStopped):
            self.mailbox.ref.tell_nowait(_Look())


@frozen
class Holding:
    """A slot for as long as its block runs."""

    _gate: ProviderGate
    _slot: _Slot

    async def __aenter__(self) -> None:
        await self._gate._wait_for(self._slot)

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        end: _End | ProviderError = _End.ABANDONED
        if isinstance(error, ProviderError) and error.remedy is Remedy.RETRY:
            end = error
        elif error is None or isinstance(error, ProviderError):
            end = _End.ANSWERED
        self._gate._end(self._slot, end)


async def provider_actor(cell: Cell[GateMessage], *, gate: ProviderGate) -> None:
    """Grant the slots of `gate` until asked to stop."""
    desk = gate._desk
    desk.waiting.clear()  # askers of an earlier life have been answered by the kernel
    cell.started()
    batches = cell.inbox.batches()
    while True:
        now = trio.current_time()
        desk.settle(now)
        desk.send_on(gate.name, now)
        batch: list[Letter[GateMessage]] | None = []
        with trio.move_on_at(desk.grant(now)):
            batch = await anext(batches, None)
        if batch is None:
            return
        for letter in batch:
            match letter.message:
                case _Acquire(slot):
                    desk.waiting.append((letter, slot))
                case _Look():
                    pass
                case never:
                    assert_never(never)


async def infer_once(
    provider: Provider, gate: ProviderGate, request: Request, emit: Emit, patience: Patience = Patience.WAITS
) -> Reply:
    """Run one inference with a slot of `gate`, on its meter and under the provider's silence limits (P3).

    Every piece, an empty one too, shows that the stream lives; empty ones are not passed on. Raises `ProviderError`,
    of the kind `stall` when nothing came for `first_byte_s` or then for `idle_s` seconds. Nothing is tried again here.
    `Request.used` is told what it used and cost, however it ends.
    """
    limits = provider.limits
    async with gate.meter.account(request) as account, gate.slot(patience):
        heard = False
        with trio.move_on_after(limits.first_byte_s) as watchdog:

            def hear(piece: Piece) -> None:
                nonlocal heard
                heard = True
                watchdog.deadline = trio.current_time() + limits.idle_s
                if piece.text:
                    account.hear(piece)
                    emit(piece)

            return account.answered(await provider.infer(account.noting(), hear))
        silence = f"{limits.idle_s:g} s" if heard else f"{limits.first_byte_s:g} s before the first byte"
        raise ProviderError(f"{provider.name}: the stream stalled: nothing came for {silence}", kind="stall")
