"""The tutorial of the harness in the README: every line of it is run, and says what it is said to say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

from .source import ROOT

TITLE = "A harness for your own trio programs"


def section() -> str:
    text = (ROOT / "README.rst").read_text(encoding="utf-8")
    _, _, rest = text.partition(f"{TITLE}\n{'-' * len(TITLE)}\n")
    return re.split(r"\n\n\n\S.*\n-+\n", rest)[0]


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^\.\. code-block:: {language}\n\n((?:    .*\n|\n)+)", section(), re.MULTILINE)
    return [dedent(block).strip() for block in found]


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    arguments = command.split()[1:]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    program = [sys.executable, "-m", "kesoku_actors", *arguments]
    if command.startswith("pytest"):
        program = [sys.executable, "-m", "pytest", "-q", "-p", "kesoku_actors.harness.pytest_plugin", *arguments]
    return subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def assert_shown(block: str, done: subprocess.CompletedProcess[str]) -> None:
    """What is shown stands in the output, in order; `...` is for anything."""
    shown = "\n".join(block.splitlines()[1:])
    pattern = ".*".join(re.escape(part.strip()) for part in re.split(r"\.\.\.", shown))
    assert re.search(pattern, done.stdout, re.DOTALL), f"{shown}\n--- is not in ---\n{done.stdout}\n{done.stderr}"


def test_the_tutorial_finds_the_bug_reads_it_fixes_it_and_certifies(tmp_path: Path) -> None:
    program, fixed = blocks("python")
    fails, draws, holds = blocks("console")
    shop = tmp_path / "shop.py"
    shop.write_text(f"{program}\n")

    found = run(fails.splitlines()[0][2:], tmp_path)
    assert found.returncode == 1, found.stderr
    assert_shown(fails, found)
    [token] = re.findall(r"--replay (ka1\.\S+)", found.stdout)

    assert run(draws[2:], tmp_path).returncode == 1
    page = (tmp_path / "shop.html").read_text(encoding="utf-8")
    assert "test_pear/later" in page
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")

    again = run(f"kesoku-actors check shop.py --replay {token}", tmp_path)
    assert again.returncode == 1
    assert "a pear was sold twice" in again.stdout
    steps = run(f"kesoku-actors check shop.py --replay {token} --step", tmp_path)
    assert "`test_pear/buy`" in steps.stdout
    assert "could run too: test_pear/later" in steps.stdout

    under_pytest = run("pytest shop.py", tmp_path)
    assert under_pytest.returncode == 1
    assert f"pytest shop.py::test_pear --harness-replay {token}" in under_pytest.stdout

    old = re.search(r"    async def buy\(who\):\n(?:        .*\n)+", program)
    assert old is not None
    shop.write_text(program.replace(old[0], indent(f"{fixed}\n", "    ")) + "\n")
    certified = run(holds.splitlines()[0][2:], tmp_path)
    assert certified.returncode == 0, certified.stdout
    assert_shown(holds, certified)
    assert run("pytest shop.py", tmp_path).returncode == 0

    stale = run(f"kesoku-actors check shop.py --replay {token}", tmp_path)
    assert stale.returncode == 0
    assert "the source was changed since the token was written" in stale.stdout


def test_what_it_does_not_do_stands_in_the_package() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "pydoc", "kesoku_actors.harness"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for word in ("What it does not do", "real threads", "asyncio", "partial-order", "batches", "certificate"):
        assert word in shown.stdout
