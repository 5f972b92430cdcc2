"""What to do next with a message that leaves: the delivery planner. Pure.

The rules it keeps (C5, O2):

* the plan is stored before the first send, and the first plan stands;
* chunks go out in order, each counted as an attempt before it is sent, so that a crash between send and record
  leads to one resend with the same nonce and to nothing worse;
* what the platform refuses for good ends the delivery at once; anything else is tried again after a pause that
  grows with the attempts, for as long as it takes: an answer is never given up because a network is down;
* a delivery goes on at the first chunk not yet sent;
* messages of one channel leave by `seq`; nobody overtakes one that waits.

::

    chunks       last fact     -> next
    none                       -> Plan
    one unsent   none          -> Send
    one unsent   Failed        -> Backoff, then as if nothing had happened
    one unsent   Refused       -> MarkUndeliverable
    all sent                   -> MarkDelivered
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from kesoku_actors.protocol import Message, Status
from kesoku_actors.store.port import Chunk
from kesoku_actors.values import frozen

SENT: Final = "sent"


@frozen(kw_only=True)
class Failed:
    """The last send failed and may succeed later."""

    retry_after_s: float | None = None
    """What the platform asked for, seconds."""


@frozen(kw_only=True)
class Refused:
    """The platform refused the last chunk for good."""

    reason: str


Fact = Failed | Refused


@frozen(kw_only=True)
class Plan:
    """Store these chunks as the plan; what is stored then is what counts."""

    chunks: tuple[str, ...]


@frozen(kw_only=True)
class Send:
    """Count an attempt, send the chunk, record it as sent. `is_resend`: it may have arrived already."""

    index: int
    nonce: str
    is_resend: bool


@frozen(kw_only=True)
class Backoff:
    """Wait, then ask again without a fact."""

    delay_s: float


@frozen(kw_only=True)
class MarkDelivered:
    """Everything was sent."""


@frozen(kw_only=True)
class MarkUndeliverable:
    """The platform does not take it."""

    reason: str


@frozen(kw_only=True)
class Withdrawn:
    """The message is there no more: its session was cleared meanwhile (M7). No step, but how a delivery may end."""


Action = Plan | Send | Backoff | MarkDelivered | MarkUndeliverable


@frozen(kw_only=True)
class BackoffPolicy:
    """The pause before the next attempt: doubling from `first_s` up to `longest_s`, half of it at random."""

    first_s: float = 0.5
    longest_s: float = 60.0

    def delay_s(self, attempts: int, jitter: float, retry_after_s: float | None) -> float:
        """Return the pause after `attempts` attempts; `jitter` is in [0, 1); never shorter than what was asked for."""
        doublings = min(max(attempts - 1, 0), 32)
        whole = min(self.longest_s, self.first_s * 2.0**doublings)
        return max(retry_after_s or 0.0, whole * (0.5 + 0.5 * jitter))


def next_action(
    chunks: Sequence[Chunk] | None,
    last: Fact | None,
    *,
    planned: tuple[str, ...],
    policy: BackoffPolicy,
    jitter: float,
) -> Action:
    """Return what to do next with a pending message.

    `chunks` are those stored, none as long as no plan was stored or read back in this run; `planned` is how this
    adapter would cut the text; `last` is what came of the last send, none at the start, after a success and after
    a pause.
    """
    if chunks is None:
        return Plan(chunks=planned)
    unsent = next((chunk for chunk in chunks if chunk.state != SENT), None)
    if unsent is None:
        return MarkDelivered()
    match last:
        case None:
            return Send(index=unsent.index, nonce=unsent.nonce, is_resend=unsent.attempts > 0)
        case Failed(retry_after_s=retry_after_s):
            return Backoff(delay_s=policy.delay_s(unsent.attempts, jitter, retry_after_s))
        case Refused(reason=reason):
            return MarkUndeliverable(reason=reason)
        case _:
            assert_never(last)


def next_leaf(leaving: Iterable[Message]) -> Message | None:
    """Return the message of a channel that leaves next: the pending one with the lowest `seq` (O2)."""
    return min((message for message in leaving if message.status is Status.PENDING), key=_seq, default=None)


def _seq(message: Message) -> int:
    return message.seq
