"""A program once more, in a fresh process: what fails there too does not live on something that earlier runs left over.

`python -m kesoku_actors.harness.rerun` reads a request as JSON on its standard input and answers as JSON.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

from attrs import asdict, evolve, frozen

from kesoku_actors.harness.allow import Allow
from kesoku_actors.harness.control import Limits, Run, execute
from kesoku_actors.harness.errors import Divergence, HarnessError
from kesoku_actors.harness.exploration import Exploration, exploration_of
from kesoku_actors.harness.failures import failure_of
from kesoku_actors.harness.fresh import fresh_python
from kesoku_actors.harness.hold import Form, Holding
from kesoku_actors.harness.inputs import OTHER_STRATEGIES, Inputs
from kesoku_actors.harness.origin import Origin, load_origin, programs_in
from kesoku_actors.harness.replay import Replay
from kesoku_actors.harness.schedule import Schedule
from kesoku_actors.harness.strategy import RunInfo, Strategy
from kesoku_actors.harness.token import Token, token_of

_LONGEST_S: Final = 120.0
_LONGEST_WORDS: Final = 200
_ANSWER: Final = "the harness answers: "
_OTHER_SOURCE: Final = "the source was changed since the token was written"


def player(token: Token, *, is_stale: bool) -> Strategy:
    """Return the strategy that plays what a token says; a stale one is played as well as it can be."""
    match token.play:
        case Form() as form:
            return Holding(form)
        case Schedule() as schedule:
            return Replay(schedule, loose=is_stale)


def inputs_of(exploration: Exploration, token: Token, given: Mapping[str, Any]) -> tuple[Inputs, str]:
    """Return the inputs that a token stands for, and why they may not be those it was written for; empty: they are.

    What is given goes before what the token says. Raises `Divergence` when nothing can be drawn as the token says, and
    `HarnessError` for what is neither there nor given, and when this Hypothesis does not let values be drawn again.
    """
    kept, strategies = token.inputs or {}, exploration.drawn
    wanted = {one.name: one.default is one.empty for one in exploration.open_arguments}
    missing = [name for name, is_needed in wanted.items() if is_needed and name not in given and name not in kept]
    if missing:
        raise HarnessError(
            f"{exploration.name} needs {', '.join(missing)}, and the token leaves that out: replay it with pytest, "
            f"which gives it fixtures"
        )
    stale = "" if token.fingerprint == exploration.fingerprint else _OTHER_SOURCE
    if token.draws is not None and not strategies:
        raise Divergence(f"{exploration.name} draws no inputs, and the token has some: it is of another program")
    known = {*wanted, *strategies}
    others = [name for name in kept if name not in known] + [
        name for name in strategies if name not in kept and token.draws is None
    ]
    if others:
        raise Divergence(f"{stale or OTHER_STRATEGIES}: of `{others[0]}` one of them knows nothing")
    fixed = {name: value for name, value in kept.items() if name not in strategies} | dict(given)
    if token.draws is None:
        return Inputs(fixed=fixed, drawn={name: kept[name] for name in strategies if name in kept}), stale
    from kesoku_actors.harness.choices import CannotDraw, doubt, drawn_again, why_not

    if why := why_not():
        raise HarnessError(f"the inputs in this token cannot be drawn again: {why}")
    try:
        again = drawn_again(strategies, token.draws.chosen)
    except CannotDraw as error:
        raise Divergence(f"{stale or OTHER_STRATEGIES}: {error}") from error
    return Inputs(fixed=fixed, drawn=again.values, draws=token.draws), doubt(token.draws, again) or stale


def play(exploration: Exploration, token: Token, inputs: Inputs, *, is_stale: bool) -> Run:
    """Play a token once. Raises `Divergence` when it does not fit a program that is not stale."""
    strategy = player(token, is_stale=is_stale)
    strategy.begin(RunInfo(number=0, rng=random.Random(0), length=100))
    plan = exploration.plan
    return execute(exploration.program(inputs), strategy, limits=plan.limits, may_tick=plan.may_tick, allow=plan.allow)


@frozen(kw_only=True)
class Elsewhere:
    """What came of a token in a fresh process."""

    failure: str = ""
    """The name of its failure there; empty when it passes."""
    why_not: str = ""
    """Why nothing is known of that; empty when it is."""


def fails_elsewhere(exploration: Exploration, text: str) -> Elsewhere:
    """Play a token in a fresh process."""
    origin, token = exploration.origin, token_of(text)
    if origin is None:
        return Elsewhere(why_not="it does not find this program by a name")
    if token.inputs is None:
        return Elsewhere(why_not="its inputs cannot be written down")
    needed = [one.name for one in exploration.open_arguments if one.default is one.empty and one.name in token.left_out]
    if needed:
        return Elsewhere(why_not=f"what it is given as `{needed[0]}` cannot be written down")
    is_undecorated = getattr(sys.modules.get(origin.module), origin.name, None) is exploration.function
    if is_undecorated and exploration.world is not None:
        return Elsewhere(why_not="it does not find the world that was given with the program")
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
        return Elsewhere(why_not=f"it takes more than {_LONGEST_S:g} s there")
    told = [line.removeprefix(_ANSWER) for line in done.stdout.splitlines() if line.startswith(_ANSWER)]
    if not told:
        said = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
        return Elsewhere(why_not=f"it ended there before it had answered ({said[:_LONGEST_WORDS]})")
    return Elsewhere(**json.loads(told[-1]))


def answer(request: dict[str, Any]) -> dict[str, str]:
    """Play what is asked for, here."""
    origin = Origin(request["file"], request["name"], request["module"])
    [function] = programs_in(load_origin(origin), origin.name).values()
    exploration = exploration_of(function)
    limits, allow = Limits(**request["limits"]), Allow(**request["allow"])
    plan = evolve(exploration.plan, limits=limits, may_tick=request["may_tick"], allow=allow)
    exploration, token = evolve(exploration, plan=plan), token_of(request["token"])
    inputs, why_stale = inputs_of(exploration, token, {})
    if why_stale:
        return {"why_not": "the strategies draw other values there by the same choices"}
    run = play(exploration, token, inputs, is_stale=False)
    return {"failure": "" if run.error is None else failure_of(run.error)}


def main() -> None:
    """Answer one request, on a line of its own: what the program prints may stand before it and behind it."""
    told = json.dumps(answer(json.load(sys.stdin)))
    sys.stdout.write(f"\n{_ANSWER}{told}\n")


if __name__ == "__main__":
    main()
