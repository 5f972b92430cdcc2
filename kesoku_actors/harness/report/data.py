"""A counterexample as JSON, and the schema it keeps to."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from attrs import asdict

from kesoku_actors.harness.counterexample import MEANING, Counterexample
from kesoku_actors.harness.faults import Fire
from kesoku_actors.harness.hold import Event, Hold, Tick
from kesoku_actors.harness.sites import Site
from kesoku_actors.harness.verdict import Verdict


def data_of(program: str, verdict: Verdict) -> dict[str, Any]:
    """Return a verdict, with its counterexample if it has one, as values that JSON knows."""
    found = verdict.counterexample
    return {
        "schema": "kesoku-actors/harness/verdict/1",
        "program": program,
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
        "schedules": verdict.schedules,
        "happens_before_classes": verdict.classes,
        "steps": verdict.steps,
        "cpu_seconds": round(verdict.seconds, 6),
        "certificates": [asdict(one) for one in verdict.certificates],
        "counterexample": None if found is None else _counterexample(found),
    }


def schema() -> dict[str, Any]:
    """Return the schema of what `data_of` makes (JSON Schema, 2020-12)."""
    loaded: dict[str, Any] = json.loads(files(__package__).joinpath("counterexample.schema.json").read_text("utf-8"))
    return loaded


def _counterexample(found: Counterexample) -> dict[str, Any]:
    story = found.story
    return {
        "failure": found.failure,
        "message": story.message,
        "summary": story.summary,
        "raised": {"task": story.raised_by, "at": _plain(story.raised_at), "source": story.raised_source},
        "order": found.form.base.value,
        "events": [_event(event) for event in found.form.events],
        "is_minimal": found.is_minimal,
        "witnesses": _plain(story.witnesses),
        "decides": story.decides,
        "gap": _plain(story.gap),
        "blocked": _plain(story.blocked),
        "tasks": _plain(story.lanes),
        "failing": _plain(story.failing),
        "passing": _plain(story.passing),
        "parting": _plain(story.parting),
        "grade": found.grade.value,
        "grade_means": MEANING[found.grade],
        "rates": _plain(found.rates),
        "found_by": found.found_by,
        "found_after": found.found_after,
        "token": found.token,
        "inputs": {name: repr(value) for name, value in found.inputs.items()},
        "is_confirmed": found.is_confirmed,
        "unconfirmed": found.unconfirmed,
    }


def _event(event: Event) -> dict[str, Any]:
    match event:
        case Fire(name, time):
            return {"kind": "fault", "name": name, "time": time, "words": str(event)}
        case Hold(who, at, until):
            return {"kind": "hold", "task": who, "after_step": at, "until": _plain(until), "words": str(event)}
        case Tick(after, times):
            return {"kind": "tick", "after": _plain(after), "times": times, "words": str(event)}


def _plain(value: Any) -> Any:
    """Return a value of ours as dictionaries and lists; a line of source as `file`, `line`, `function`."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Site) or value is None or isinstance(value, str | int | float):
        return (
            {"file": value.file, "line": value.line, "function": value.function} if isinstance(value, Site) else value
        )
    return {name: _plain(one) for name, one in asdict(value, recurse=False).items()}
