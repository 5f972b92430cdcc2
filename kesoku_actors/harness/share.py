"""One share of an exploration, in a process of its own; `jobs` starts it and reads what it says.

`python -m kesoku_actors.harness.share` reads a request as JSON on its standard input and writes a JSON object a line:
what it saw since the last line, and at the end how it came out. What the program prints goes nowhere.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final, TextIO

from attrs import define, evolve, field

from kesoku_actors.harness.campaign import Campaign
from kesoku_actors.harness.exploration import exploration_of
from kesoku_actors.harness.front import verdict_on
from kesoku_actors.harness.origin import Origin, load_origin, programs_in
from kesoku_actors.harness.search import Searched

_EVERY_S: Final = 0.1


@define
class _Teller:
    """Tells the progress, now and then."""

    out: TextIO
    before: Searched
    """What a campaign had explored when it was stopped."""
    told_s: float = 0.0
    classes: set[int] = field(factory=set)

    def __call__(self, so_far: Searched) -> None:
        if so_far.seconds - self.told_s >= _EVERY_S:
            self.tell(so_far)

    def tell(self, so_far: Searched) -> None:
        self.told_s, before = so_far.seconds, self.before
        fresh = (so_far.classes | before.classes) - self.classes
        self.classes |= fresh
        _say(
            self.out,
            {
                "schedules": before.schedules + so_far.schedules,
                "steps": before.steps + so_far.steps,
                "seconds": before.seconds + so_far.seconds,
                "classes": list(fresh),
                "asked": before.faults.asked + so_far.faults.asked,
                "fired": before.faults.fired + so_far.faults.fired,
            },
        )


def _say(out: TextIO, line: dict[str, Any]) -> None:
    out.write(f"{json.dumps(line)}\n")
    out.flush()


def main() -> None:
    """Explore what is asked for."""
    request, out = json.load(sys.stdin), sys.stdout
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        _explore(request, out)


def _explore(request: dict[str, Any], out: TextIO) -> None:
    origin = Origin(request["file"], request["name"], request["module"])
    [function] = programs_in(load_origin(origin), origin.name).values()
    exploration = exploration_of(function)
    share, shares = request["shard"]
    plan = evolve(exploration.plan, **request["plan"])
    if exploration.drawn:
        plan = evolve(plan, seed=plan.seed + share, runs=-(-plan.runs // shares))
    else:
        plan = evolve(plan, shard=(share, shares))
    exploration = evolve(exploration, plan=plan)
    resume = None if request["resume"] is None else Path(request["resume"])
    last, before = [Searched()], Searched()
    if resume is not None:
        campaign = Campaign(resume, exploration)
        campaign.resumed()
        before = campaign.before
    teller = _Teller(out, before)

    def seen(so_far: Searched) -> None:
        last[:] = [so_far]
        teller(so_far)

    verdict = verdict_on(exploration, on_run=seen, resume=resume)
    teller.tell(last[-1])
    found = verdict.counterexample
    _say(
        out,
        {
            "outcome": verdict.outcome.value,
            "reason": verdict.reason,
            "certified": sum(one.schedules for one in verdict.certificates),
            "inputs": sum(one.inputs for one in verdict.certificates),
            "token": None if found is None else found.token,
            "found_by": "" if found is None else found.found_by,
        },
    )


if __name__ == "__main__":
    main()
