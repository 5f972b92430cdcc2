"""The scripts of the shipped skills: whatever they are given, they report, or say in one line why not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kesoku_actors.skills import SHIPPED, Shelf

PROFILE = SHIPPED / "csv-profile" / "scripts" / "csv_profile.py"
SUMMARY = SHIPPED / "repository-summary" / "scripts" / "repository_summary.py"


def run(script: Path, *arguments: object, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a bare Python would: without our packages, without anything else than the standard library."""
    return subprocess.run(
        [sys.executable, "-I", "-S", str(script), *map(str, arguments)],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(cwd), **environ},
        capture_output=True,
        text=True,
        timeout=60,
    )


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_every_shipped_skill_is_usable_everywhere_and_nothing_is_broken() -> None:
    for host in ("linux", "macos", "windows"):
        catalog = Shelf(roots=(SHIPPED,), host=host).read()
        assert [skill.name for skill in catalog.skills] == ["csv-profile", "repository-summary"]
        assert catalog.hidden == catalog.broken == ()
        assert all(skill.header.tags for skill in catalog.skills)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "0 rows, 0 columns"),
        (b"a,b\n", "0 rows, 2 columns"),
        (b"a;b\n1;2,5\n3;4,5\n", "| b | text | 100% | 2 |"),
        (b"\xef\xbb\xbfname\tprice\r\nAda\t1\r\n", "| name | text |"),
        ("name,n\nJos\u00e9,1\n".encode("latin-1"), "Jos\u00e9 (1)"),
        (b"a,b\n1\n1,2,3\n", "2 rows have more or fewer cells"),
        (b'a,b\n"x\ny",NA\n', "| b | empty | 0% | 0 |"),
        (b"a\n1\nx\n", "| a | text |"),
        (b"a\n1e999\nnan\n", "| a | text |"),
        (b"a|b\n1|2\n", "| b | number |"),
        (b"a,a,\n1,2,3\n", "| column 3 | number |"),
    ],
)
def test_a_table_is_described(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    done = run(PROFILE, "t.csv", cwd=tmp_path, PYTHONIOENCODING="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert told in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["none.csv"], "No such file"),
        (["."], "Is a directory"),
        (["t.csv", "--chart", "c.svg", "--column", "z"], "there is no column 'z'"),
        (["t.csv", "--chart", "none/c.svg"], "No such file"),
        (["t.csv", "--delimiter", "ab"], "delimiter"),
    ],
)
def test_what_cannot_be_described_is_one_line(tmp_path: Path, arguments: list[str], told: str) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    done = run(PROFILE, *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


CELLS = st.text("ab,;\t|\"'\n\r019.-+e<&é\x00", max_size=8) | st.floats().map(str) | st.integers().map(str)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(rows=st.lists(st.lists(CELLS, max_size=4).map(",".join), max_size=8))
@example(rows=["a", "1e308", "-1e308"])
@example(rows=["a", "5e-324", "0"])
@example(rows=["<a>&", "<b>", "&"])
def test_any_table_gives_a_report_and_a_picture_that_is_xml_or_a_reason(tmp_path: Path, rows: list[str]) -> None:
    (tmp_path / "t.csv").write_text("\n".join(rows), encoding="utf-8", newline="")
    chart = tmp_path / "c.svg"
    chart.unlink(missing_ok=True)
    code = module(PROFILE).main([str(tmp_path / "t.csv"), "--chart", str(chart)])
    assert code == 0 if chart.exists() else 1
    if chart.exists():
        ElementTree.fromstring(chart.read_text(encoding="utf-8"))


def test_an_empty_folder_has_a_summary(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = run(SUMMARY, "empty", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("# empty: 0 files\n")
    assert "No README" in done.stdout


def test_a_folder_that_is_none_is_one_line(tmp_path: Path) -> None:
    done = run(SUMMARY, "none", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("none is no folder, or may not be seen from here\n")


def test_links_are_not_followed_and_what_is_no_text_is_not_counted(tmp_path: Path) -> None:
    repository, secret = tmp_path / "r", tmp_path / "secret.py"
    repository.mkdir()
    secret.write_text("print('secret')\n")
    (repository / "link.py").symlink_to(secret)
    (repository / "README.md").symlink_to(secret)
    (repository / "gone.py").symlink_to("nowhere")
    (repository / "data.py").write_bytes(b"\0" * 10)
    (repository / "a.py").write_text("one\ntwo")
    done = run(SUMMARY, "r", cwd=tmp_path)
    assert "- Python: 2 lines in 1 files" in done.stdout
    assert "secret" not in done.stdout


def test_a_repository_cannot_start_a_program_by_its_configuration(tmp_path: Path) -> None:
    repository = tmp_path / "r"
    repository.mkdir()
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        subprocess.run(["git", *identity, "-C", str(repository), *arguments], check=True, capture_output=True)

    git("init", "-q")
    (repository / "a.py").write_text("1\n")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    for key in ("gpg.program", "core.fsmonitor", "core.pager", "pager.log", "core.hooksPath", "diff.external"):
        git("config", key, str(trap))
    git("config", "log.showSignature", "true")
    done = run(SUMMARY, "r", cwd=tmp_path)
    assert "Ada: first" in done.stdout
    assert not (tmp_path / "sprung").exists()
