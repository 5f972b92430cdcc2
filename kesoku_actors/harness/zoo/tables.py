"""Scores as tables for people, and as values for machines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final

from kesoku_actors.harness.zoo.score import Score, Shrunk

HEADER: Final = (
    f"{'bug':<28}{'difficulty':<11}{'steps':>6}{'found':>8}{'first run':>16}{'CPU s to it':>15}{'events':>8}"
    "  rate, 95 % interval"
)
FEW: Final = 3
"""Events that a person reads at a glance."""


def line(score: Score) -> str:
    """Return a score as a line below `HEADER`; of pairs of numbers the first is the median and the second the worst."""
    firsts = [first.runs for first in score.firsts]
    seconds = [first.seconds for first in score.firsts]
    events = [len(shrunk.form) for shrunk in _shrunk([score]) if shrunk.form is not None]
    runs_told = f"{median(firsts):,.0f}, {max(firsts):,}" if firsts else "-"
    seconds_told = f"{median(seconds):.2f}, {max(seconds):.2f}" if seconds else "-"
    events_told = f"{median(events):.0f}, {max(events)}" if events else "-"
    low, high = (100 * end for end in score.interval)
    steps = score.steps // score.runs if score.runs else 0
    rate = f"{100 * score.rate:6.2f} % ({low:.2f} to {high:.2f})" if score.sampled else f"{'-':>6}"
    told = (
        f"{score.bug.name:<28}{score.bug.difficulty:<11}{steps:>6,}{len(score.firsts):>5}/{score.seeds:<2}"
        f"{runs_told:>16}{seconds_told:>15}{events_told:>8}  {rate}"
    )
    return f"{told}  also: {'; '.join(score.others)}" if score.others else told


def summary(scores: Sequence[Score]) -> str:
    """Return what a table comes to: how many bugs every seed finds, how soon, and what the failures are reduced to."""
    found = sum(score.is_found for score in scores)
    lines = [f"{found} of {len(scores)} found by every seed"]
    if seconds := [first.seconds for score in scores for first in score.firsts]:
        lines[0] += f"; CPU s to the first failure: median {median(seconds):.2f}, worst {max(seconds):.2f}"
    if shrunk := _shrunk(scores):
        whole = sum(one.is_reduced for one in shrunk)
        short = sum(one.is_reduced and one.form is not None and len(one.form) <= FEW for one in shrunk)
        taken = [one.seconds for one in shrunk]
        lines.append(
            f"{whole} of {len(shrunk)} failures reduced ({_percent(whole, len(shrunk))}), {short} to at most {FEW} "
            f"events ({_percent(short, len(shrunk))}); CPU s for it: median {median(taken):.2f}, worst {max(taken):.2f}"
        )
    return "\n".join(lines)


def alone(scores: Mapping[str, Sequence[Score]]) -> Iterator[str]:
    """Yield a line for each bug that one strategy alone finds, under any seed, and for each that none does."""
    for places in zip(*scores.values(), strict=True):
        finders = [name for name, score in zip(scores, places, strict=True) if score.firsts]
        if len(finders) < 2:
            yield f"{places[0].bug.name:<28}{f'{finders[0]} alone' if finders else 'none finds it'}"


def data_of_score(strategy: str, score: Score) -> dict[str, Any]:
    """Return a score as JSON has it."""
    low, high = score.interval
    return {
        "strategy": strategy,
        "bug": score.bug.name,
        "cause": score.bug.cause.value,
        "difficulty": score.bug.difficulty.value,
        "is_port": score.bug.is_port,
        "seeds": score.seeds,
        "found": len(score.firsts),
        "schedules": score.runs,
        "steps": score.steps,
        "cpu_seconds": round(score.seconds, 4),
        "first": [{"schedules": one.runs, "cpu_seconds": round(one.seconds, 4)} for one in score.firsts],
        "shrunk": [
            {
                "events": None if one.form is None else len(one.form),
                "is_minimal": one.is_minimal,
                "cpu_seconds": round(one.seconds, 4),
            }
            for one in _shrunk([score])
        ],
        "sample": score.sampled,
        "failures": score.hits,
        "rate": score.rate,
        "interval": [low, high],
        "other_failures": list(score.others),
    }


def _shrunk(scores: Sequence[Score]) -> list[Shrunk]:
    return [first.shrunk for score in scores for first in score.firsts if first.shrunk is not None]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %"
