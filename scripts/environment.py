"""Make the virtual environment of a checkout. Standard library only; called by environment.sh.

python environment.py CHECKOUT FOLDER EXTRA STAMP PYTHON

Two runs at once: the second waits for the lock and finds the work done. A folder without the stamp is half made and is
made again from nothing. Steps are told on stderr; pip uses the user's own settings.
"""

import fcntl
import os
import subprocess
import sys
from pathlib import Path


def tell(text: str) -> None:
    print(f"kesoku-actors: {text}", file=sys.stderr, flush=True)


def fail(text: str) -> None:
    tell(text)
    sys.exit(1)


def make(folder: Path) -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    tell(f"[1/2] making an environment in {folder} with Python {version}")
    packages = f"on Debian: apt install python3.{sys.version_info[1]}-venv"
    try:
        import ensurepip  # noqa: F401
        import venv
    except ImportError as error:
        fail(f"{sys.executable} cannot make environments, its module {error.name} is missing; {packages}")
    try:
        venv.create(folder, clear=True, with_pip=True, symlinks=True)
    except subprocess.CalledProcessError as error:
        fail(f"{sys.executable} could not put pip into the environment ({error}); {packages}")


def install(checkout: Path, folder: Path, extra: str) -> None:
    tell("[2/2] installing what it needs (about 290 MB, one to two minutes the first time)")
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--no-input", "--progress-bar", "off"]
    with subprocess.Popen(
        [*command, "--editable", f"{checkout}[{extra}]"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as pip:
        assert pip.stdout is not None
        said = [line.rstrip() for line in map(show, pip.stdout) if line.strip()]
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
    if pip.returncode != 0:
        for line in [line for line in said if line.startswith("ERROR")] or said[-5:]:
            print(line, file=sys.stderr)
        fail("pip could not install the packages; check the network and pip's index settings, then run this again")


def show(line: str) -> str:
    """On a terminal, show in one line what pip is at."""
    words = line.split()
    if sys.stderr.isatty() and words[:1] in (["Collecting"], ["Installing"], ["Building"]):
        sys.stderr.write(f"\r\033[K      {' '.join(words[:2])[:60]}")
        sys.stderr.flush()
    return line


def main(checkout: Path, folder: Path, extra: str, stamp: str, python: str) -> None:
    stamp_file, written = folder / "kesoku-stamp", f"{stamp}\n{python}\n"
    cache = checkout / ".cache"
    cache.mkdir(exist_ok=True)
    with (cache / f"{folder.name.lstrip('.')}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("waiting for another run that is making the environment")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp_file.is_file() and stamp_file.read_text() == written and os.access(folder / "bin/python", os.X_OK):
            return
        make(folder)
        install(checkout, folder, extra)
        stamp_file.write_text(written)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:6])
    except OSError as problem:
        fail(f"the environment could not be made: {problem}")
    except KeyboardInterrupt:
        fail("stopped; the half-made environment is made again next time")
