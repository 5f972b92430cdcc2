"""`kesoku-actors check --zoo`: any strategy is scored by the planted bugs, also one of a person's own file."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner, Result

from kesoku_actors.cli.check import command
from kesoku_actors.harness.hold import Form, Hold
from kesoku_actors.harness.zoo import BUGS, First, Score, Shrunk, alone, line, summary
from kesoku_actors.harness.zoo.bench import Bench, bench

ROOT = Path(__file__).parents[2]

MINE = dedent('''
    """Two strategies of a person's own, and what is none."""

    class Last:
        """Whoever became runnable last."""

        def begin(self, run):
            self.run = run

        def choose(self, ready, *, may_tick, step):
            return len(ready) - 1

    class Half:
        def begin(self, run): ...

    class Needy:
        def __init__(self, depth): ...

    class Wild(Last):
        def choose(self, ready, *, may_tick, step):
            return len(ready) + 5

    def first():
        """Whoever became runnable first."""
        strategy = Last()
        strategy.choose = lambda ready, may_tick, step: 0
        return strategy
    ''')


def check(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path / "own_strategies.py"
    path.write_text(MINE)
    return str(path)


def test_the_default_strategy_finds_a_bug_and_the_table_says_how_soon_and_how_often() -> None:
    done = check("--zoo", "--bug", "two_doors", "--seeds", "2", "--sample", "40")
    assert done.exit_code == 0, done.output
    name, header, row, found, reduced = done.stdout.splitlines()
    assert name == "-- portfolio"
    assert header.split()[:4] == ["bug", "difficulty", "steps", "found"]
    assert row.split()[:2] == ["two_doors", "normal"]
    assert "2/2" in row
    assert row.endswith(")")
    assert found.startswith("1 of 1 found by every seed; CPU s to the first failure: median ")
    assert reduced.startswith("2 of 2 failures reduced (100 %), 2 to at most 3 events (100 %); CPU s for it: median ")


def test_a_strategy_of_ones_own_file_is_scored_like_the_others(mine: str) -> None:
    bugs = ("--bug", "one_signal_two_items", "--bug", "two_doors")
    done = check("--zoo", *bugs, "--runs", "20", "--strategy", f"{mine}:Last", "--strategy", f"{mine}:first")
    assert done.exit_code == 4
    rows = done.stdout.splitlines()
    assert rows[0] == f"-- {mine}:Last"
    assert "100.00 % (93.98 to 100.00)" in rows[3]
    assert "0/3" in rows[2]
    assert rows[-2:] == [
        f"{'two_doors':<28}none finds it",
        f"{'one_signal_two_items':<28}{mine}:Last alone",
    ]


def test_a_strategy_of_ones_own_file_explores_a_program_too(mine: str, tmp_path: Path) -> None:
    program = tmp_path / "two_tasks.py"
    program.write_text(
        "import trio\n"
        "async def main():\n"
        "    order = []\n"
        "    async def put(what):\n"
        "        await trio.sleep(0)\n"
        "        order.append(what)\n"
        "    async with trio.open_nursery() as nursery:\n"
        "        nursery.start_soon(put, 1)\n"
        "        nursery.start_soon(put, 2)\n"
        "    assert order == [1, 2], 'they changed places'\n"
    )
    assert check(str(program), "--strategy", f"{mine}:first", "--runs", "3").exit_code == 0
    found = check(str(program), "--strategy", f"{mine}:Last", "--runs", "3", "--jobs", "2")
    assert found.exit_code == 1
    assert "they changed places" in found.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Absent", "no class and no function 'Absent'"),
        ("Half", "no method choose"),
        ("Wild", "chose 7 of 2 ways"),
        ("Needy", "makes no strategy when it is called without arguments"),
    ],
)
def test_what_is_no_strategy_is_told_in_one_line(mine: str, name: str, said: str) -> None:
    done = check("--zoo", "--bug", "two_doors", "--strategy", f"{mine}:{name}")
    assert done.exit_code == 2
    assert said in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--zoo", "shop.py"), "--zoo takes no program"),
        (("--zoo", "--bug", "unicorn"), "no bug 'unicorn'"),
        (("--zoo", "--certify", "1"), "--certify is for a program"),
        (("--zoo", "--strategy", "clever"), "no strategy 'clever'"),
        (("--seeds", "3"), "--seeds goes with --zoo"),
        (("shop.py", "--strategy", "pos", "--strategy", "surw"), "one strategy"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: tuple[str, ...], said: str) -> None:
    done = check(*arguments)
    assert done.exit_code == 2
    assert said in done.output


class Terminal(StringIO):
    """What a person would see."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_is_shown_the_progress_and_is_left_clean() -> None:
    out, err = StringIO(), Terminal()
    asked = Bench(bugs=("account", "sigma"), seeds=1, sample=10)
    assert bench(asked, out, err) == 0
    shown = err.getvalue().split("\r\x1b[K")
    assert shown[1] == "portfolio: 0 of 2 bugs, 0 found by every seed, 0 schedules, 0/s, 0 failures"
    assert re.fullmatch(
        r"portfolio: 2 of 2 bugs, 2 found by every seed, [\d,]+ schedules, [\d,]+/s, \d+ failures", shown[-2]
    )
    assert shown[-1] == ""
    assert "\x1b" not in out.getvalue()


def test_two_jobs_score_as_one_does() -> None:
    def scores(jobs: str) -> list[object]:
        asked = ("--zoo", "--json", "--bug", "account", "--bug", "sigma", "--seeds", "1", "--sample", "30")
        rows = [json.loads(row) for row in check(*asked, "--jobs", jobs).stdout.splitlines()]
        return [(row["bug"], row["failures"], row["first"][0]["schedules"], row["shrunk"][0]["events"]) for row in rows]

    assert scores("2") == scores("1")
    assert [row[0] for row in scores("1")] == ["account", "sigma"]  # type: ignore[index]  # tuples, as made above


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interruption_ends_all_of_it_at_once(jobs: str) -> None:
    program = [sys.executable, "-m", "kesoku_actors", "check", "--zoo", "--bug", "hard", "--jobs", jobs]
    pipe, path = subprocess.PIPE, {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        program, stdout=pipe, stderr=pipe, text=True, start_new_session=True, env={**os.environ, **path}
    ) as process:
        assert process.stdout is not None
        rows = [process.stdout.readline() for _ in range(3)]
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of it
        _, said = process.communicate(timeout=60)  # until nobody is left who could write to it
    assert rows[-1].startswith("registrar_clears_late")
    assert (process.returncode, "Traceback" in said) == (130, False)


def test_a_seed_that_finds_nothing_in_its_time_counts_as_missed() -> None:
    done = check("--zoo", "--bug", "philosophers_31", "--strategy", "random", "--seeds", "1", "--seconds", "0.05")
    assert done.exit_code == 4
    assert "0 of 1 found by every seed" in done.stdout


def score(**changes: object) -> Score:
    values = {"bug": BUGS[0], "seeds": 1, "runs": 10, "sampled": 0, "hits": 0, "steps": 100, "firsts": ()}
    return Score(**{**values, **changes})  # type: ignore[arg-type]  # fields by name


def test_the_summary_counts_what_was_not_reduced() -> None:
    small = Shrunk(form=Form(events=(Hold("main", 1),)), is_minimal=True, seconds=0.25)
    long = Shrunk(form=Form(events=tuple(Hold("main", at) for at in range(4))), is_minimal=True, seconds=0.75)
    lost = Shrunk(form=None, is_minimal=False, seconds=0.5)
    firsts = tuple(First(runs=1, seconds=1.0, shrunk=one) for one in (small, long, lost))
    said = summary([score(firsts=firsts, seeds=3)])
    assert "2 of 3 failures reduced (67 %), 1 to at most 3 events (33 %); CPU s for it: median 0.50, worst 0.75" in said


def test_a_rate_that_was_not_asked_for_is_not_told() -> None:
    assert "%" not in line(score())
    assert "0.00 %" in line(score(sampled=10))


def test_a_bug_that_two_strategies_find_is_found_by_none_alone() -> None:
    found = score(firsts=(First(runs=1, seconds=0.1),))
    assert list(alone({"one": [found], "other": [found]})) == []
