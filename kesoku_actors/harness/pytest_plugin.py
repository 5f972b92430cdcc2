"""A plugin for pytest: how much tests with `@explore` explore, replay of a token, and a report in place of a traceback.

pytest --harness-runs 10000 --harness-seconds 60
pytest tests/test_mine.py::test_order --harness-replay ka1....
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("harness", "exploration of schedules")
    group.addoption("--harness-runs", type=int, metavar="N", help="schedules for each test with @explore")
    group.addoption("--harness-seconds", type=float, metavar="S", help="CPU seconds for each; less is inconclusive")
    group.addoption("--harness-replay", metavar="TOKEN", help="play this token in place of exploring")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run a test with what the options say."""
    option = item.config.option
    if not hasattr(getattr(item, "obj", None), "__explored__"):
        return (yield)
    from kesoku_actors.harness.front import Overrides, overridden

    wanted = Overrides(runs=option.harness_runs, seconds=option.harness_seconds, replay=option.harness_replay)
    with overridden(wanted):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    """Show the report of a counterexample, and the line that replays it."""
    report = yield
    if call.excinfo is None or not hasattr(getattr(item, "obj", None), "__explored__"):
        return report
    from kesoku_actors.harness.front import ProgramFails

    error = call.excinfo.value
    if isinstance(error, ProgramFails) and error.verdict.counterexample is not None:
        token = error.verdict.counterexample.token
        report.longrepr = str(error)
        report.sections.append(("replay", f"pytest {item.nodeid} --harness-replay {token}"))
    return report
