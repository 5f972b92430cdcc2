"""Programs as strangers write them: whatever they do, the command says what, at which line, and ends as it promises."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest
from attrs import frozen

from kesoku_actors.harness.cli import Wanted, check
from kesoku_actors.harness.errors import HarnessError

HOLDS, FAILS, CHANGES, UNKNOWN = 0, 1, 2, 4


@frozen
class Case:
    """The body of a program, how the command ends, and what it says."""

    body: str
    code: int
    says: str
    above: str = ""
    """The line above `async def main()`, with its end."""


CASES: Final = {
    "datetime": Case("datetime.datetime.now()", UNKNOWN, r"`datetime\.now` is reached at program\.py:\d+ in main"),
    "today": Case("datetime.date.today()", UNKNOWN, r"`date\.today` is reached at program\.py:\d+ in main"),
    "another name of time": Case("now()", UNKNOWN, r"`time\.time` is reached at program\.py:\d+ in main"),
    "another name of chance": Case("dice()", UNKNOWN, r"`random\.random` is reached at program\.py:\d+ in main"),
    "leaves the process": Case("os._exit(0)", UNKNOWN, r"`os\._exit` is reached at program\.py:\d+ in main"),
    "asks a person": Case("input()", UNKNOWN, r"the real terminal \(`input`\) is reached at program\.py:\d+ in main"),
    "asyncio": Case("await asyncio.sleep(1)", UNKNOWN, r"asyncio is used at program\.py:\d+ in main"),
    "a server": Case(
        "async with trio.open_nursery() as n:\n    await n.start(trio.serve_tcp, print, 0)",
        UNKNOWN,
        r"the program waits at program\.py:\d+ in main until <socket",
    ),
    "leaves by an exit": Case("sys.exit(0)", FAILS, r"FAILS program\.py:main: SystemExit at program\.py:\d+"),
    "interrupts itself": Case("raise KeyboardInterrupt", FAILS, r"KeyboardInterrupt at program\.py:\d+"),
    "fills the stack": Case("fall(0)", FAILS, r"FAILS program\.py:main: RecursionError"),
    "a loop in a loop": Case("trio.run(trio.sleep, 0)", FAILS, r"Attempted to call run\(\) from inside a run\(\)"),
    "never ends": Case(
        "n = 0\nwhile True:\n    n += 1\n    await trio.lowlevel.checkpoint()",
        UNKNOWN,
        r"none of 5 runs came to its end: .* 2,?000 steps; .*`main` at program\.py:\d+ in main",
        above="@explore(limits=Limits(steps=2_000))\n",
    ),
    "waits for ever": Case("await trio.sleep_forever()", FAILS, r"1 task waits for ever"),
    "prints": Case("print('said by the program')", HOLDS, r"^program\.py:main holds: \d+ schedules"),
}
HEAD: Final = """\
import asyncio, datetime, os, sys, trio
from kesoku_actors.harness import Limits, explore
from random import random as dice
from time import time as now

def fall(n):
    return fall(n + 1)

{above}async def main():
    await trio.sleep(0)
{body}
    await trio.sleep(0)
"""


def checked(folder: Path, source: str, **wanted: object) -> tuple[int, str]:
    file = folder / "program.py"
    file.write_text(source)
    out = io.StringIO()
    err = io.StringIO()
    code = check(Wanted(target=str(file), **{"runs": 20, **wanted}), out, err)  # type: ignore[arg-type]  # by name
    return code, f"{out.getvalue()}{err.getvalue()}"


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test load a program of its own by the same name."""
    import sys

    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "program", raising=False)


def program(case: Case) -> str:
    return HEAD.format(above=case.above, body="\n".join(f"    {line}" for line in case.body.splitlines()))


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_it_is_named_at_its_line_with_the_right_exit_code(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    code, said = checked(tmp_path, program(case))
    plain = " ".join(said.split())
    assert re.search(case.says, plain), plain
    assert code == case.code, plain
    if match := re.search(r"program\.py:(\d+) in main", plain):
        first = HEAD.splitlines().index("{body}") + 1 + case.above.count("\n")
        assert first <= int(match[1]) < first + len(case.body.splitlines())


def test_what_a_program_prints_stays_out_of_what_machines_read(tmp_path: Path) -> None:
    code, said = checked(tmp_path, program(CASES["prints"]), json=True)
    assert code == HOLDS
    assert json.loads(said)["outcome"] == "holds"


def test_the_clock_that_only_a_failing_run_reads_is_found_in_it(tmp_path: Path) -> None:
    source = dedent("""\
        import datetime, trio

        async def main():
            said = []

            async def late(n):
                await trio.lowlevel.checkpoint()
                said.append(n)
                if said == [2]:
                    assert datetime.datetime.now().year < 2000

            async with trio.open_nursery() as nursery:
                nursery.start_soon(late, 1)
                nursery.start_soon(late, 2)
        """)
    code, said = checked(tmp_path, source)
    assert code == UNKNOWN
    assert "`datetime.now` is reached at program.py:10 in late" in said


def test_a_program_whose_runs_take_long_is_given_up_by_itself(tmp_path: Path) -> None:
    source = dedent("""\
        import trio

        async def main():
            async with trio.open_nursery() as nursery:
                for number in range(300):
                    nursery.start_soon(trio.lowlevel.checkpoint)
        """)
    code, said = checked(tmp_path, source, runs=None, patience_s=0.1)
    assert code == UNKNOWN
    assert re.search(r"inconclusive: .* the time was over after \d+ schedules", said)
    assert "it had 0.1 s of CPU time; --seconds gives it more, --runs sets no time" in said
    code, said = checked(tmp_path, source, runs=3, patience_s=0.0)
    assert code == HOLDS, said


IN_A_CLASS: Final = """\
import trio
from kesoku_actors.harness import explore

class TestShop:
    @explore(runs=3)
    async def test_of_an_object(self):
        await trio.sleep(0)

    @staticmethod
    @explore(runs=3)
    async def test_of_none():
        await trio.sleep(0)
"""


def test_static_methods_are_explored_and_others_are_said_to_be_left_out(tmp_path: Path) -> None:
    code, said = checked(tmp_path, IN_A_CLASS)
    assert code == HOLDS, said
    assert "program.py:TestShop.test_of_none holds" in said
    assert "not explored: TestShop.test_of_an_object: methods are for pytest" in said


def test_a_file_with_methods_alone_is_refused_by_their_names(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"TestShop\.test_of_an_object: .* only functions of a module"):
        checked(tmp_path, IN_A_CLASS.partition("    @staticmethod")[0])


def test_a_page_that_cannot_be_written_is_said_before_anything_is_explored(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"there is no folder .*nowhere for the page"):
        checked(tmp_path, program(CASES["prints"]), html=tmp_path / "nowhere" / "page.html")
