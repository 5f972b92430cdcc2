"""A plugin for pytest: how much tests with `@explore` explore, replay of a token, and a report in place of a traceback.

pytest --harness-runs 10000 --harness-seconds 60
pytest tests/test_mine.py::test_order --harness-replay ka1....
"""

from __future__ import annotations

import shlex
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

_REPLAYED: Final = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("harness", "exploration of schedules")
    group.addoption("--harness-runs", type=int, metavar="N", help="schedules for each test with @explore")
    group.addoption("--harness-seconds", type=float, metavar="S", help="CPU seconds for each; less is inconclusive")
    group.addoption("--harness-replay", metavar="TOKEN", help="play this token, or a file of one; explore nothing")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run a test with what the options say."""
    option = item.config.option
    if not hasattr(getattr(item, "obj", None), "__explored__"):
        return (yield)
    from kesoku_actors.harness.front import Overrides, overridden
    from kesoku_actors.harness.token_file import whole_token

    replay = None if option.harness_replay is None else whole_token(option.harness_replay)
    wanted = Overrides(runs=option.harness_runs, seconds=option.harness_seconds, replay=replay)
    with overridden(wanted):
        try:
            return (yield)
        finally:
            said = item.config.stash.setdefault(_REPLAYED, [])
            said += [f"{item.nodeid} {verdict}" for verdict in wanted.heard]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what came of a token: of one that passes nothing else tells whether it still fits."""
    if said := config.stash.get(_REPLAYED, []):
        terminalreporter.section("replayed")
        for line in said:
            terminalreporter.line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    """Show the report of a counterexample, and the line that replays it."""
    report = yield
    if call.excinfo is None or not hasattr(getattr(item, "obj", None), "__explored__"):
        return report
    from attrs import evolve

    from kesoku_actors.harness.front import ProgramFails
    from kesoku_actors.harness.report import text
    from kesoku_actors.harness.token_file import pasteable

    error = call.excinfo.value
    if isinstance(error, ProgramFails) and (found := error.verdict.counterexample) is not None:
        token = pasteable(found.token, _folder(item.config))
        again = f"pytest {shlex.quote(item.nodeid)} --harness-replay"
        report.longrepr = text(evolve(found, token=token), again=again)
        report.sections.append(("replay", f"{again} {token}"))
    return report


def _folder(config: pytest.Config) -> Path:
    """Return where long tokens go: into the cache of pytest, if there is one."""
    cache: pytest.Cache | None = getattr(config, "cache", None)  # a plugin that can be switched off
    return Path() if cache is None else Path(cache.mkdir("harness"))
