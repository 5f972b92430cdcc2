"""A tree that exists can be started: specs are checked when they are made."""

from typing import Any

import pytest

from kesoku_actors.actors import Cell, ChildSpec, Restart, SupervisorSpec


async def _actor(_cell: Cell[object]) -> None:
    return


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"id": ""}, "a name without"),
        ({"id": "a/b"}, "a name without"),
        ({"shutdown_s": -1.0}, "shutdown_s of 'child' must be at least 0"),
        ({"shutdown_s": float("nan")}, "shutdown_s of 'child' must be at least 0"),
        ({"significant": True}, "never ends for good"),
    ],
)
def test_child_spec_that_cannot_work_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ChildSpec(**{"id": "child", "start": _actor, **changes})


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"intensity": -1}, "intensity of 'top'"),
        ({"period_s": -1.0}, "period_s of 'top'"),
        ({"start_timeout_s": -1.0}, "start_timeout_s of 'top'"),
        ({"children": (ChildSpec(id="a", start=_actor), ChildSpec(id="a", start=_actor))}, "share an id: a"),
    ],
)
def test_supervisor_spec_that_cannot_work_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        SupervisorSpec(**{"id": "top", "children": (), **changes})


def test_significant_child_may_be_transient_or_temporary() -> None:
    for restart in (Restart.TRANSIENT, Restart.TEMPORARY):
        assert ChildSpec(id="child", start=_actor, restart=restart, significant=True).significant
