"""Our own environment is out of a command's reach and still there for us (T2, S14)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import os, subprocess, sys
from kesoku_actors.tools.shell import clean_environment, hide_environment
os.environ.pop("DROPPED")
assert hide_environment()
seen = subprocess.run(
    ["sh", "-c", "cat /proc/$PPID/environ; echo; env"],
    env=clean_environment(os.environ), start_new_session=True, capture_output=True, check=True,
).stdout
assert b"hunter2" not in seen, seen
assert b"PATH=" in seen
assert os.environ["TOKEN"] == "hunter2-kept"
inherited = subprocess.run(["sh", "-c", "echo $TOKEN"], capture_output=True, check=True).stdout
assert inherited == b"hunter2-kept\\n"
print("hidden")
"""


def test_a_command_finds_no_secret_in_the_environment_of_its_parent():
    shown = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PATH": "/usr/bin:/bin", "TOKEN": "hunter2-kept", "DROPPED": "hunter2-dropped", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert shown.stdout == "hidden\n", shown.stderr


AGAIN = """
import ctypes, os, sys
from kesoku_actors.tools.shell import hide_environment
hide_environment()
dumpable = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
print(dumpable, flush=True)
if "again" not in sys.argv:
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:], "again"])
"""


def test_the_program_is_not_dumpable_and_not_after_it_replaced_itself():
    shown = subprocess.run(
        [sys.executable, "-c", AGAIN],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert shown.stdout == "0\n0\n", shown.stderr
