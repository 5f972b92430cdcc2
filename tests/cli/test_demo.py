"""`kesoku-actors demo`: every scene is played by real processes, and each must do what it says."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from pathlib import Path

Shell = Callable[..., tuple[int, str, str]]

PROMISES = (
    r"three commands that took \S+ s in all were done within \S+ s",
    r"the story was cut off after \d+ words, and those are kept",
    r"the build came to its own end; then the turn was over, without another word of the model",
    r"the turn went on from its stored steps, and ledger\.txt has exactly one payment",
    r"all of it can be looked at in one page: (/\S+/trace\.html)",
)


def test_the_tour_keeps_every_promise_survives_a_kill_and_leaves_its_trace(shell: Shell, tmp_path: Path) -> None:
    code, out, errors = shell("$K demo --fast -o tour")
    assert code == 0, out + errors
    assert [re.search(promise, out) is not None for promise in PROMISES] == [True] * 5
    assert re.search(r"kill -9 \d+: the process that worked on this is dead", out)
    assert "\x1b" not in out
    assert out.count("── ") == 4
    (ledger,) = (tmp_path / "tour" / "sessions").glob("*/ledger.txt")
    assert ledger.read_text() == "paid 100\n"
    trace = tmp_path / "tour" / "trace.html"
    assert "Taken up again" in trace.read_text(encoding="utf-8")
    exposed = [path for path in (tmp_path / "tour").rglob("*") if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert [path for path in exposed if path.parent.parent.name != "sessions"] == []

    code, out, errors = shell("$K demo --fast -o tour")
    assert (code, out) == (2, "")
    assert "exists already" in errors
