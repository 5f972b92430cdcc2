"""The script that makes its environment, in a small checkout of its own, without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .source import ROOT

PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["backend"]

[project]
name = "kesoku-actors"
version = "1"

[project.optional-dependencies]
local = []
test = []
"""

BACKEND = """
import os, zipfile

NAME = "kesoku_actors-1-py3-none-any.whl"
METADATA = "Metadata-Version: 2.1\\nName: kesoku-actors\\nVersion: 1\\nProvides-Extra: local\\nProvides-Extra: test\\n"


def get_requires_for_build_editable(config_settings=None):
    return []


def build_editable(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(os.path.join(folder, NAME), "w") as wheel:
        wheel.writestr("kesoku_actors.pth", os.getcwd())
        about = "kesoku_actors-1.dist-info"
        wheel.writestr(about + "/METADATA", METADATA)
        wheel.writestr(about + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(about + "/RECORD", "")
    return NAME
"""

PROGRAM = "import random, sys\nprint('answered', *sys.argv[1:], random.choice([1]))\n"
MADE = "[1/2] making an environment"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout whose folder has a space in its name, with our scripts and a program that only echoes."""
    folder = tmp_path / "my checkout"
    for name, text in {
        "pyproject.toml": PROJECT,
        "backend/backend.py": BACKEND,
        "kesoku_actors/__init__.py": "",
        "kesoku_actors/__main__.py": PROGRAM,
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("bench", "__pycache__"))
    monkeypatch.setenv("KESOKU_PYTHON", sys.executable)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return folder


def run(checkout: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [checkout / "scripts" / "kesoku-actors", *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


WITHOUT_VENV = f"""#!/bin/sh
if [ "$1" = -c ]; then exit 0; fi
exec "{sys.executable}" -c "
import runpy, sys
sys.modules['ensurepip'] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')
" "$@"
"""
"""A Python that is new enough, but was installed without its venv package."""

TOO_OLD = "#!/bin/sh\nexit 1\n"


def fake_python(folder: Path, script: str) -> Path:
    """Write a `python3` into a new folder."""
    folder.mkdir()
    fake = folder / "python3"
    fake.write_text(script)
    fake.chmod(0o755)
    return fake


def test_a_failed_environment_is_not_used_but_made_again(checkout, tmp_path):
    backend = checkout / "backend" / "backend.py"
    backend.write_text(BACKEND.replace("local\\n", "local\\nRequires-Dist: no-such-package\\n"))
    failed = run(checkout)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "no-such-package" in failed.stderr
    assert failed.stderr.endswith("check the network and pip's index settings, then run this again\n")
    assert "Traceback" not in failed.stderr

    backend.write_text(BACKEND)
    (checkout / ".venv" / "lib" / "half-made").write_text("")
    (tmp_path / "random.py").write_text("raise SystemExit('a file of the user was imported')")
    made = run(checkout, "two words", cwd=tmp_path)
    assert (made.returncode, made.stdout) == (0, "answered two words 1\n"), made.stderr
    assert MADE in made.stderr
    assert not (checkout / ".venv" / "lib" / "half-made").exists()


def test_two_first_runs_make_one_environment_and_it_lasts_until_the_project_changes(checkout, tmp_path, monkeypatch):
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda number: run(checkout, str(number)), range(2)))
    assert [done.stdout for done in both] == ["answered 0 1\n", "answered 1 1\n"]
    assert sum(MADE in done.stderr for done in both) == 1

    # From here on, only a Python that could make no other one.
    fake = fake_python(tmp_path / "bin", WITHOUT_VENV)
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("KESOKU_PYTHON")
    unchanged = run(checkout)
    assert (unchanged.stdout, unchanged.stderr) == ("answered 1\n", "")
    with (checkout / "pyproject.toml").open("a") as project:
        project.write("# changed\n")
    assert MADE in run(checkout).stderr


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (TOO_OLD, "KESOKU_PYTHON={} is not a Python of 3.11 or newer\n"),
        (WITHOUT_VENV, f"its module ensurepip is missing; on Debian: apt install python3.{sys.version_info[1]}-venv\n"),
    ],
    ids=["too old", "without venv"],
)
def test_a_python_that_will_not_do_is_one_line_with_the_remedy(checkout, tmp_path, monkeypatch, script, reason):
    fake = fake_python(tmp_path / "bin", script)
    monkeypatch.setenv("KESOKU_PYTHON", str(fake))
    failed = run(checkout)
    assert failed.returncode == 1
    assert failed.stderr.endswith(reason.format(fake))
    assert "Traceback" not in failed.stderr


def test_no_python_at_all_is_one_line_naming_the_packages(checkout, tmp_path, monkeypatch):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "dirname", "readlink", "cksum"):
        os.symlink(shutil.which(name), tools / name)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("KESOKU_PYTHON")
    failed = run(checkout)
    assert failed.returncode == 1
    assert failed.stderr == (
        "kesoku-actors: no Python was found; install 3.11 or newer, on Debian: apt install python3 python3-venv\n"
    )


@pytest.mark.parametrize(
    ("folder", "called"), [("bin", "../bin/kesoku-actors"), ("my bin", "'../my bin/kesoku-actors'")]
)
def test_the_program_is_told_how_it_was_called(checkout, tmp_path, folder, called):
    (checkout / "kesoku_actors" / "__main__.py").write_text("import os\nprint(os.environ['KESOKU_ACTORS_CALLED'])\n")
    link = tmp_path / folder / "kesoku-actors"
    link.parent.mkdir()
    link.symlink_to(checkout / "scripts" / "kesoku-actors")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run([f"../{folder}/kesoku-actors"], cwd=elsewhere, capture_output=True, text=True, check=True)
    assert done.stdout == f"{called}\n"


STARTED = """
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.entering import enter

enter()
print("began", *sys.argv[1:])
"""


def test_a_script_goes_on_in_the_environment_of_the_tests_whatever_python_it_was_started_with(checkout):
    script = checkout / "scripts" / "started"
    script.write_text(STARTED)

    def start() -> tuple[int, str, str]:
        command = [sys.executable, "-S", "-E", script, "two words"]  # sees no package
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr.splitlines()[-1] if done.stderr else ""

    assert start() == (1, "", f"the environment of the tests is broken; remove {checkout / '.cache'} and try again")
    (site,) = (checkout / ".cache" / "test-venv" / "lib").glob("python*/site-packages")
    for name in ("apsw", "attrs", "cattrs", "hypothesis", "pytest", "trio"):
        (site / f"{name}.py").write_text("")
    assert start() == (0, "began two words\n", "")
