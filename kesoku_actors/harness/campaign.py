"""A campaign: an exploration that is stopped and goes on another day, or that several machines share.

What was explored stands in a file, one JSON object, written anew by a rename so that it is whole whenever it is read.
It goes on only with the same source, seed, strategy and share; a strategy without a name of its own, as a `lambda`, is
not known again, and has no campaign. Where Hypothesis draws the inputs, it draws the same
ones again for the same seed, and those that were searched to their end are passed over. A failing run and a way out of
the simulated world stand there too: who goes on is told of them again, and not that the rest holds.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from attrs import define, evolve, field

from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.exploration import Exploration
from kesoku_actors.harness.faults import Tally
from kesoku_actors.harness.schedule import BadToken, schedule_of
from kesoku_actors.harness.search import Found, Plan, Searched
from kesoku_actors.harness.strategy import Strategy

_EVERY_S: Final = 1.0
"""CPU seconds between two writes."""


@define(eq=False)
class Campaign:
    """One file, and what stood in it."""

    path: Path
    exploration: Exploration
    before: Searched = field(factory=Searched)
    """What was explored by then; of the certificate of a program without drawn inputs the forms are counted alone."""
    _written: float = 0.0

    def resumed(self) -> Exploration:
        """Return the exploration of what is left.

        Raises `HarnessError` for a file of another one, and for a strategy that has no name.
        """
        plan, identity = self.exploration.plan, self._identity()
        if not self.path.exists():
            return self.exploration
        try:
            kept: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
            if kept["campaign"] != identity:
                raise HarnessError(
                    f"{self.path} is of another source, seed, strategy or share; begin with another file"
                )
            self.before = Searched(
                schedules=int(kept["schedules"]),
                steps=int(kept["steps"]),
                seconds=float(kept["cpu_seconds"]),
                classes={int(one, 16) for one in kept["classes"]},
                unended=int(kept["unended"]),
                runs=int(kept["runs"]),
                holds=int(kept["holds"]),
                inputs=int(kept["inputs"]),
                faults=Tally(Counter(kept["faults"]["asked"]), Counter(kept["faults"]["fired"])),
                escaped=str(kept["escaped"]),
                found=None if kept["found"] is None else _found_in(kept["found"]),
            )
            if self.exploration.drawn and plan.certify:
                certified = int(kept["certified"])
                self.before.certificate = plan.certificate(schedules=certified, inputs=self.before.inputs)
        except (ValueError, KeyError, TypeError, BadToken):
            raise HarnessError(f"{self.path} is no file of a campaign") from None
        plan = evolve(plan, runs_before=self.before.runs, holds_before=self.before.holds)
        return evolve(self.exploration, plan=plan)

    def keep(self, so_far: Searched, *, now: bool = False) -> None:
        """Write down what was explored, if the last time was some time ago."""
        if not now and so_far.seconds - self._written < _EVERY_S:
            return
        self._written = so_far.seconds
        found = self.before.found or so_far.found
        kept = {
            "campaign": self._identity(),
            "schedules": self.before.schedules + so_far.schedules,
            "steps": self.before.steps + so_far.steps,
            "cpu_seconds": self.before.seconds + so_far.seconds,
            "unended": self.before.unended + so_far.unended,
            "runs": so_far.runs,
            "holds": so_far.holds,
            "inputs": self.before.inputs + so_far.inputs,
            "certified": sum(one.certificate.schedules for one in (self.before, so_far) if one.certificate is not None),
            "faults": {
                "asked": self.before.faults.asked + so_far.faults.asked,
                "fired": self.before.faults.fired + so_far.faults.fired,
            },
            "escaped": self.before.escaped or so_far.escaped,
            "found": None if found is None else self._found_data(found),
            "classes": sorted(f"{one:016x}" for one in self.before.classes | so_far.classes),
        }
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
        beside.write_text(json.dumps(kept), encoding="utf-8")
        beside.replace(self.path)

    def forget(self) -> None:
        """Remove the file: nothing can be built on runs that are not the same again."""
        self.path.unlink(missing_ok=True)

    def _found_data(self, found: Found) -> dict[str, str]:
        schedule = found.schedule.token(self.exploration.fingerprint)
        return {"failure": found.failure, "strategy": found.strategy, "schedule": schedule}

    def _identity(self) -> list[Any]:
        plan: Plan = self.exploration.plan
        return [self.exploration.fingerprint, plan.seed, _called(plan.strategy), plan.certify, list(plan.shard)]


def _called(strategy: str | Callable[[], Strategy]) -> str:
    """Return what a strategy is called in every process: what makes one stands elsewhere in memory each time.

    Raises `HarnessError` for what others are called too: a `lambda`, a `partial`, an object.
    """
    if isinstance(strategy, str):
        return strategy
    name = str(getattr(strategy, "__qualname__", "<"))
    if name.endswith("<lambda>") or name == "<":
        raise HarnessError(
            f"a campaign goes on with the same strategy only, and {strategy!r} has no name to know it by: "
            "make it by a class or by a function with `def`"
        )
    return name


def _found_in(kept: dict[str, str]) -> Found:
    _fingerprint, schedule = schedule_of(kept["schedule"])
    return Found(failure=kept["failure"], strategy=kept["strategy"], schedule=schedule)
