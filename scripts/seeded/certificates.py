"""Shares of a certificate: every schedule of a property with at most so many holds, ticks and faults, in pieces.

A schedule belongs to a share by its first event, so shares have none in common and together are all there are. A
property of one script has shares of its schedules; one with drawn inputs has a piece for each input.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import asdict, evolve, frozen

from kesoku_actors.harness.control.footprints import footprints
from kesoku_actors.harness.exploration import Exploration
from kesoku_actors.harness.inputs import Inputs
from kesoku_actors.harness.search import Searched, search
from kesoku_actors.harness.token import token_for
from kesoku_actors.harness.verdict import Certificate
from scripts.seeded.table import Property
from scripts.seeded.trial import Ended, Finding, explored, with_each

_SHARES: Final = (1, 1, 64)
"""Of the schedules of one script, by the bound; there are some ten thousand with two events."""
_SECONDS: Final = 7_200
"""Of CPU time; a share that takes longer hangs."""


@frozen(kw_only=True)
class Share:
    """A piece of the work on a certificate."""

    test: str
    bound: int
    share: int
    shares: int
    example: int | None
    """Which of the drawn inputs; none: the property has no inputs."""
    examples: int
    """So many are drawn."""
    seed: int
    """They are drawn with it."""

    @property
    def seconds(self) -> int:
        """Of CPU time, at most."""
        return _SECONDS

    def __str__(self) -> str:
        which = f"share {self.share + 1}/{self.shares}" if self.example is None else f"input {self.example + 1}"
        return f"Hold({self.bound}) {which} {self.test}"

    def carry_out(self) -> Finding:
        """Play every schedule of this share, until one fails."""
        exploration = explored(self.test)
        plan = evolve(exploration.plan, runs=0, certify=self.bound, shard=(self.share, self.shares))
        inputs = Inputs() if self.example is None else drawn(exploration, self.example, self.examples, self.seed)
        if inputs is None:
            return Finding(ended=Ended.SURVIVED, said="there are fewer inputs")
        with footprints() as watch:
            so_far = search(exploration.program(inputs), plan, watch)
        return _finding(exploration, inputs, so_far)


def drawn(exploration: Exploration, number: int, count: int, first_seed: int) -> Inputs | None:
    """Return the input with this number of so many that Hypothesis draws; none where it draws fewer different ones."""
    every: dict[object, Inputs] = {}

    def keep(now: Inputs) -> None:
        same = repr(now.drawn) if now.draws is None else now.draws.value or now.draws.chosen
        every.setdefault(same, now)

    with_each(exploration, keep, count=count, first_seed=first_seed)
    return dict(enumerate(every.values())).get(number)


def _finding(exploration: Exploration, inputs: Inputs, so_far: Searched) -> Finding:
    if so_far.found is not None:
        token = str(token_for(exploration.fingerprint, so_far.found.schedule, inputs))
        failed = Finding(ended=Ended.KILLED, schedules=so_far.schedules, said=so_far.found.failure, token=token)
        return evolve(failed, seconds=so_far.seconds)
    unknown = so_far.escaped or so_far.reason or so_far.cut
    if unknown or so_far.certificate is None:
        return Finding(ended=Ended.BROKEN, said=unknown, schedules=so_far.schedules, seconds=so_far.seconds)
    certificate = so_far.certificate
    return Finding(
        ended=Ended.SURVIVED, schedules=certificate.schedules, seconds=so_far.seconds, ticks=certificate.ticks
    )


def shares_of(properties: Sequence[Property], bound: int, examples: int, first_seed: int) -> list[Share]:
    """Return all pieces of the certificates of these properties."""
    shares = _SHARES[min(bound, len(_SHARES) - 1)]
    return [
        Share(
            test=one.test,
            bound=bound,
            share=number if example is None else 0,
            shares=shares if example is None else 1,
            example=example,
            examples=examples,
            seed=first_seed,
        )
        for one in properties
        for example in (range(examples) if one.is_drawn else [None])
        for number in (range(shares) if example is None else [0])
    ]


@frozen(kw_only=True)
class Certified:
    """What is known of one property."""

    test: str
    shares: int
    done: int
    schedules: int
    inputs: int
    seconds: float
    bound: int
    ticks: bool
    failed: tuple[tuple[Share, Finding], ...]
    unknown: tuple[tuple[Share, Finding], ...]
    """That were begun and ended without an outcome."""

    @property
    def is_certified(self) -> bool:
        """Whether all shares were run and none failed."""
        return self.done == self.shares and not self.failed

    def data(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        failed, unknown = (
            [{**asdict(share), **asdict(finding)} for share, finding in some] for some in (self.failed, self.unknown)
        )
        return {
            **asdict(self, recurse=False),
            "certified": self.is_certified,
            "failed": failed,
            "unknown": unknown,
        }

    def __str__(self) -> str:
        """Return it for people; a certificate is of all shares and of nothing less."""
        if self.failed:
            return f"{self.test} has none: {len(self.failed)} of {self.done} shares failed"
        if self.done < self.shares:
            what = f"{self.schedules:,} schedules with at most {self.bound} events, none of which fails"
            return f"{self.test} has none yet: {self.done} of {self.shares} shares were run, {what}"
        certificate = Certificate(bound=self.bound, schedules=self.schedules, inputs=self.inputs, ticks=self.ticks)
        return f"{self.test}: {certificate} ({self.seconds:,.0f} s of CPU time)"


def together(pieces: Sequence[Share], found: Mapping[Share, Finding]) -> list[Certified]:
    """Return what is known of each property, of the pieces that there are."""
    by_test = defaultdict[str, list[Share]](list)
    for piece in pieces:
        by_test[piece.test].append(piece)
    return [
        Certified(
            test=test,
            shares=len(all_),
            done=len(done := [piece for piece in all_ if piece in found and found[piece].is_known]),
            schedules=sum(found[piece].schedules for piece in done),
            inputs=sum(piece.example is not None and found[piece].schedules > 0 for piece in done),
            seconds=sum(found[piece].seconds for piece in done),
            bound=all_[0].bound,
            ticks=all(found[piece].ticks for piece in done),
            failed=tuple((piece, found[piece]) for piece in done if found[piece].ended is not Ended.SURVIVED),
            unknown=tuple((piece, found[piece]) for piece in all_ if piece in found and not found[piece].is_known),
        )
        for test, all_ in by_test.items()
    ]
