"""A program once more, in a fresh process: what fails there too does not live on something that earlier runs left over.

`python -m kesoku_actors.harness.rerun` reads a request as JSON on its standard input and answers as JSON.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any, Final

from attrs import asdict, evolve

from kesoku_actors.harness.allow import Allow
from kesoku_actors.harness.control import Limits, Run, execute
from kesoku_actors.harness.exploration import Exploration, exploration_of
from kesoku_actors.harness.failures import failure_of
from kesoku_actors.harness.fresh import fresh_python
from kesoku_actors.harness.hold import Form, Holding
from kesoku_actors.harness.origin import Origin, load_origin, programs_in
from kesoku_actors.harness.replay import Replay
from kesoku_actors.harness.schedule import Schedule
from kesoku_actors.harness.strategy import RunInfo, Strategy
from kesoku_actors.harness.token import Token, token_of

_LONGEST_S: Final = 120.0


def player(token: Token, *, is_stale: bool) -> Strategy:
    """Return the strategy that plays what a token says; a stale one is played as well as it can be."""
    match token.play:
        case Form() as form:
            return Holding(form)
        case Schedule() as schedule:
            return Replay(schedule, loose=is_stale)


def play(exploration: Exploration, token: Token, *, is_stale: bool, trace: bool = False) -> Run:
    """Play a token once. Raises `Divergence` when it does not fit a program that is not stale."""
    strategy = player(token, is_stale=is_stale)
    strategy.begin(RunInfo(number=0, rng=random.Random(0), length=100))
    program = exploration.program(token.inputs or {})
    plan = exploration.plan
    return execute(program, strategy, limits=plan.limits, may_tick=plan.may_tick, trace=trace, allow=plan.allow)


def fails_elsewhere(exploration: Exploration, text: str) -> str | None:
    """Play a token in a fresh process; return the name of its failure there, empty when it passes.

    None when the program cannot be found by name in another process, or the world that was given with it; when its
    inputs cannot be written down, or when it takes too long there.
    """
    origin = exploration.origin
    if origin is None or token_of(text).inputs is None:
        return None
    is_undecorated = getattr(sys.modules.get(origin.module), origin.name, None) is exploration.function
    if is_undecorated and exploration.world is not None:
        return None
    request = {
        "file": origin.file,
        "name": origin.name,
        "module": origin.module,
        "token": text,
        "limits": asdict(exploration.plan.limits),
        "may_tick": exploration.plan.may_tick,
        "allow": asdict(exploration.plan.allow),
    }
    command, environment = fresh_python("kesoku_actors.harness.rerun")
    try:
        done = subprocess.run(
            command, input=json.dumps(request), env=environment, capture_output=True, text=True, timeout=_LONGEST_S
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        return None
    return str(json.loads(done.stdout.rpartition("\n")[2])["failure"])


def answer(request: dict[str, Any]) -> dict[str, str]:
    """Play what is asked for, here."""
    origin = Origin(request["file"], request["name"], request["module"])
    [function] = programs_in(load_origin(origin), origin.name).values()
    exploration = exploration_of(function)
    limits, allow = Limits(**request["limits"]), Allow(**request["allow"])
    plan = evolve(exploration.plan, limits=limits, may_tick=request["may_tick"], allow=allow)
    run = play(evolve(exploration, plan=plan), token_of(request["token"]), is_stale=False)
    return {"failure": "" if run.error is None else failure_of(run.error)}


def main() -> None:
    """Answer one request."""
    told = json.dumps(answer(json.load(sys.stdin)))
    sys.stdout.write(f"\n{told}")


if __name__ == "__main__":
    main()
