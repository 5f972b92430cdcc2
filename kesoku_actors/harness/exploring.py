"""Exploring a program: search, and, where it fails, a counterexample; what came of it is a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from kesoku_actors.harness.campaign import Campaign
from kesoku_actors.harness.control import Run
from kesoku_actors.harness.control.footprints import footprints
from kesoku_actors.harness.counterexample import Counterexample
from kesoku_actors.harness.diagnosis import Diagnosis, Nondeterminism
from kesoku_actors.harness.errors import Divergence, Escape
from kesoku_actors.harness.exploration import Exploration
from kesoku_actors.harness.inputs import Inputs
from kesoku_actors.harness.replay import Replay
from kesoku_actors.harness.rerun import inputs_of, play
from kesoku_actors.harness.search import Found, Searched, Watcher, judge, runner_of, search, together
from kesoku_actors.harness.strategy import RunInfo
from kesoku_actors.harness.token import token_of
from kesoku_actors.harness.verdict import Outcome, Verdict


def explored(
    exploration: Exploration,
    fixed: Mapping[str, Any] | None = None,
    *,
    on_run: Watcher | None = None,
    campaign: Campaign | None = None,
) -> Verdict:
    """Explore a program with arguments that whoever calls has given; go on with a campaign, if it is of one.

    Raises `UnsupportedTrio` and what a strategy raises.
    """
    given = Inputs(fixed=fixed or {})
    program = exploration.program(given)
    plan = exploration.plan if campaign is None else campaign.resumed().plan

    def seen(so_far: Searched) -> None:
        if campaign is not None:
            campaign.keep(so_far)
        if on_run is not None:
            on_run(so_far)

    if campaign is not None and campaign.before.is_stopped:
        so_far = campaign.before
    else:
        with footprints() as watch:
            so_far = search(program, plan, watch, on_run=seen)
        if campaign is not None:
            campaign.keep(so_far, now=True)
            so_far = together(campaign.before, so_far)
    if so_far.found is not None:
        return failed(exploration, given, so_far, so_far.found)
    changed = how_it_changed(exploration, given, so_far)
    if changed and campaign is not None:
        campaign.forget()
    return verdict_of(so_far, Outcome.NONDETERMINISM if changed else None, reason=changed, is_part=plan.is_part)


def failed(exploration: Exploration, inputs: Inputs, so_far: Searched, found: Found) -> Verdict:
    """Return the verdict on a search that found a failing run."""
    diagnosis = Diagnosis(exploration, inputs, found.failure, exploration.plan)
    try:
        return verdict_of(so_far, Outcome.FAILS, diagnosis.counterexample(found, so_far.schedules))
    except Nondeterminism as error:
        return verdict_of(so_far, Outcome.NONDETERMINISM, reason=str(error))
    except Escape as error:
        return verdict_of(so_far, Outcome.INCONCLUSIVE, reason=str(error))


def verdict_of(
    so_far: Searched,
    outcome: Outcome | None,
    counterexample: Counterexample | None = None,
    *,
    reason: str = "",
    is_part: bool = False,
) -> Verdict:
    """Return the verdict on what was seen; without an outcome it holds, or is not known, as the search ended.

    Of a part of what is judged together it is no matter that a fault never happened.

    Only one that holds has a certificate: another one would be of those drawn inputs alone that were searched before.
    """
    unknown = so_far.escaped or so_far.reason
    if so_far.unended and not unknown:
        unknown = f"{so_far.unended:,} of {so_far.schedules:,} runs did not end within their steps: {so_far.cut}"
    if (never := so_far.faults.never_fired) and not unknown and not is_part:
        unknown = f"the fault `{never[0]}` never happened, so nothing is known of it"
    if not so_far.schedules and not unknown:
        unknown = "nothing was run"
    outcome = outcome or (Outcome.INCONCLUSIVE if unknown else Outcome.HOLDS)
    certificate = so_far.certificate if outcome is Outcome.HOLDS else None
    return Verdict(
        outcome=outcome,
        schedules=so_far.schedules,
        classes=len(so_far.classes),
        steps=so_far.steps,
        seconds=so_far.seconds,
        certificates=() if certificate is None else (certificate,),
        counterexample=counterexample,
        reason=reason or unknown,
    )


def how_it_changed(exploration: Exploration, inputs: Inputs, so_far: Searched) -> str:
    """Run the first schedule once more; return how it became another run, if it did."""
    first = so_far.first
    if first is None or so_far.escaped or so_far.unended:
        return ""
    replay, plan = Replay(first.schedule), exploration.plan
    replay.begin(RunInfo(number=0, rng=plan.rng(0), length=100))
    more = f"after {so_far.schedules:,} more"
    try:
        with footprints() as watch:
            run = runner_of(exploration.program(inputs), plan, watch)(replay)
    except Divergence as error:
        return f"the first schedule is another run {more}: {error}"
    if run.error is not None:
        return f"the first schedule passed, and fails {more}"
    if run.steps != first.steps:
        return f"the first schedule took {first.steps:,} steps, and takes {run.steps:,} {more}"
    if watch.happened_before() != first.happened_before:
        return f"the first schedule is another run {more}: its steps touch other things, or in another order"
    return ""


def replayed(exploration: Exploration, text: str, given: Mapping[str, Any] | None = None) -> Verdict:
    """Play a token, with what whoever calls has given, and tell of the failure that comes of it.

    A token of another source, or of other strategies, is played as well as it can be, and the verdict says so. Raises
    `BadToken`, and `HarnessError` for arguments that the token leaves out and nobody gives.
    """
    token = token_of(text)
    if token.inputs is None:
        return verdict_of(Searched(), Outcome.INCONCLUSIVE, reason="the inputs could not be written into this token")
    try:
        inputs, why_stale = inputs_of(exploration, token, given or {})
        run = play(exploration, token, inputs, is_stale=bool(why_stale))
    except Divergence as error:
        return verdict_of(Searched(), Outcome.NONDETERMINISM, reason=f"the token does not fit: {error}")
    stale = f"{why_stale}, and it was played as well as it could be" if why_stale else ""
    so_far = judged(run)
    verdict = verdict_of(so_far, None)
    if so_far.found is not None:
        verdict = failed(exploration, inputs, so_far, so_far.found)
    reason = verdict.reason or ("this schedule passes" if run.error is None else "")
    return evolve(verdict, reason="; ".join(filter(None, [stale, reason])))


def judged(run: Run) -> Searched:
    """Return what is known by the one run of a token."""
    so_far = Searched(schedules=1, steps=run.steps)
    judge(so_far, run, "a token")
    return so_far
