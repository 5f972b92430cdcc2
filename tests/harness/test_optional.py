"""What the harness does without: apsw, Hypothesis, pytest, a trio that it knows; and where it imports what."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.contracts.source import ROOT, modules

HARNESS = "kesoku_actors.harness"
ONLY_IN = {
    "trio": (f"{HARNESS}.control", f"{HARNESS}.zoo"),  # the programs of the zoo are what is explored, not what explores
    "outcome": (f"{HARNESS}.control",),
    "apsw": (f"{HARNESS}.disk", f"{HARNESS}.storage"),
    "hypothesis": (f"{HARNESS}.choices", f"{HARNESS}.drawn", f"{HARNESS}.stateful"),
    "pytest": (f"{HARNESS}.pytest_plugin",),
}
WITHOUT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""
EXPLORING = """
import trio
from kesoku_actors.harness import Hold, Outcome, explore

async def program(world):
    sold = []

    async def buy(who):
        if not sold:
            await trio.sleep(1)
            sold.append(who)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(buy, "ann")
        nursery.start_soon(buy, "bob")
    assert len(sold) == 1, "sold twice"

verdict = explore(program, runs=20, certify=Hold(1))
assert verdict.outcome is Outcome.FAILS, verdict
print(verdict.counterexample.failure)
"""
ITS_DISK = """
from kesoku_actors.harness import explore

async def program(world):
    world.disk.path("app.db")

print(explore(program, runs=1).reason)
"""


def python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script, *arguments], cwd=ROOT, capture_output=True, text=True)


def test_programs_are_explored_without_apsw_hypothesis_pytest_and_the_rest_of_the_product() -> None:
    blocked = {"apsw", "hypothesis", "pytest", "click", "rich", "cattrs", "anyio", "httpx2", "tomlkit", "sqlite3"}
    done = python(WITHOUT.format(blocked=blocked) + EXPLORING)
    assert (done.stdout, done.stderr) == ("AssertionError: sold twice\n", "")


def test_a_disk_without_apsw_is_refused_by_name() -> None:
    done = python(WITHOUT.format(blocked={"apsw"}) + ITS_DISK)
    assert done.stdout == "world.disk needs the package apsw, which is not installed\n"


@pytest.mark.parametrize("package", ONLY_IN)
def test_a_package_is_imported_in_its_own_place_only(package: str) -> None:
    found = {
        module.name
        for module in modules()
        if module.name.startswith(HARNESS)
        for one in module.imports()
        if one.target.partition(".")[0] == package and not one.for_types_only
    }
    assert found
    assert {name for name in found if not name.startswith(ONLY_IN[package])} == set()


def test_the_rest_of_the_harness_imports_nothing_but_attrs() -> None:
    allowed = {*sys.stdlib_module_names, "kesoku_actors", "attrs", *ONLY_IN}
    found = {
        (module.name, one.target)
        for module in modules()
        if module.name.startswith(HARNESS)
        for one in module.imports()
        if one.target.partition(".")[0] not in allowed
    }
    assert found == set()


def loop_with(batch: str) -> str:
    """Return what makes trio's loop take its batch in another way."""
    return (
        "import trio._core._run as run\n"
        f"source = __import__('inspect').getsource(run.unrolled_run).replace('list(runner.runq)', '{batch}')\n"
        "exec(compile('from __future__ import annotations\\n' + source, 'loop', 'exec'), vars(run))"
    )


CHANGED = {
    "another version": "import trio; trio.__version__ = '0.99.0'",
    "no such class": "import trio._channel; del trio._channel.MemoryChannelState",
    "no such module": "import sys, trio; sys.modules['trio._core._instrumentation'] = None",
    "no such global": "import trio._core._run as run; del run.GLOBAL_RUN_CONTEXT",
    "no such method": "import trio; del trio.Semaphore.release",
    "no such function": "import trio._threads; del trio._threads._send_message_to_trio",
    "no such attribute": "import trio._core._run as run; del run.Deadlines._active",
    "another loop": loop_with("runner.runq.copy()"),
}


PLAIN = ("plain.py",)
OF_THE_ZOO = ("--zoo", "--bug", "easy", "--runs", "1")


@pytest.mark.parametrize(
    ("what", "arguments"),
    [*((what, PLAIN) for what in CHANGED), ("no such class", OF_THE_ZOO), ("another loop", OF_THE_ZOO)],
)
def test_a_trio_that_is_not_known_is_one_line_and_an_exit_code(
    tmp_path: Path, what: str, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "plain.py").write_text("import trio\nasync def main():\n    await trio.sleep(1)\n")
    given = [str(tmp_path / one) if one.endswith(".py") else one for one in arguments]
    script = f"{CHANGED[what]}\nimport sys\nfrom kesoku_actors.__main__ import main\nsys.exit(main())"
    done = python(script, "check", *given)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert "this harness knows trio 0.31 to" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_loop_that_goes_through_the_queue_itself_is_controlled_as_well() -> None:
    said = "from tests.harness.test_control import *; print(hash_of_all())"
    hashes = {python(f"{loop_with(batch)}\n{said}").stdout for batch in ("list(runner.runq)", "[*runner.runq]")}
    assert len(hashes) == 1
    assert len(hashes.pop()) == 65


def test_a_program_says_so_too() -> None:
    done = python(f"{CHANGED['no such class']}\n{EXPLORING}")
    assert done.returncode == 1
    assert "UnsupportedTrio: this harness knows trio 0.31 to" in done.stderr.rstrip().rpartition("\n")[2]
