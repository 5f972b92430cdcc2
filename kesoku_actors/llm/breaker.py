"""The circuit breaker of one provider: when another inference may begin. Pure.

A *failure* is a retriable provider error (P2), a *success* any answer that shows the server alive. The states::

    CLOSED --N failures in a row--> OPEN --a success--> RAMPING --enough successes--> CLOSED
                                     ^---- a failure ----'

Invariants: in OPEN at most one inference begins in `probe_every_s` seconds, the others wait and none is refused. In
RAMPING the number at once doubles with each success, so what queued up meanwhile drains without a burst. While a
server's `Retry-After` runs, nothing begins in any state.
"""

from __future__ import annotations

import math
from typing import Final

from attrs import evolve

from kesoku_actors.values import frozen

LONGEST_PAUSE_S: Final = 60.0
"""A `Retry-After` beyond this is cut; the next refusal renews it."""


@frozen(kw_only=True)
class Policy:
    """When the breaker opens, and how often it then tries."""

    failures: int = 8
    """More than the tries of one turn, so that a turn alone meets its own backoff and no breaker."""
    probe_every_s: float = 30.0
    concurrency: int = 8


@frozen(kw_only=True)
class Breaker:
    """What is known of the server. Times are seconds of one monotonic clock."""

    failures: int = 0
    """Failures since the last success."""
    next_probe: float | None = None
    """When the next probe may begin; set exactly in OPEN."""
    ramp: int | None = None
    """How many may run at once; set exactly in RAMPING."""
    not_before: float = -math.inf
    """The end of the longest `Retry-After` heard."""

    def may_begin(self, policy: Policy, running: int, now: float) -> bool:
        """Tell whether one more inference may begin beside `running` others."""
        if now < self.not_before or running >= policy.concurrency:
            return False
        if self.next_probe is not None:
            return now >= self.next_probe
        return self.ramp is None or running < self.ramp

    def begun(self, policy: Policy, now: float) -> Breaker:
        """Return the breaker after an inference began; in OPEN that was the probe."""
        return self if self.next_probe is None else evolve(self, next_probe=now + policy.probe_every_s)

    def succeeded(self, policy: Policy) -> Breaker:
        """Return the breaker after an answer."""
        if self.next_probe is not None:
            return Breaker(ramp=1, not_before=self.not_before)
        ramp = self.ramp and self.ramp * 2
        return Breaker(ramp=ramp if ramp and ramp < policy.concurrency else None, not_before=self.not_before)

    def failed(self, policy: Policy, now: float, retry_after_s: float | None) -> Breaker:
        """Return the breaker after a retriable error."""
        failures = self.failures + 1
        pause_until = now + min(retry_after_s or 0.0, LONGEST_PAUSE_S)
        opens = self.next_probe is None and (self.ramp is not None or failures >= policy.failures)
        return Breaker(
            failures=failures,
            next_probe=now + policy.probe_every_s if opens else self.next_probe,
            not_before=max(self.not_before, pause_until),
        )

    def next_look(self, now: float) -> float:
        """Return when `may_begin` may change by the passing of time alone; infinity if it cannot."""
        times = (self.not_before, self.next_probe if self.next_probe is not None else now)
        return max(times) if max(times) > now else math.inf
