"""`kesoku-actors skills list`: every folder of skills, and what became of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kesoku_actors import skills

Shell = Callable[..., tuple[int, str, str]]
SHIPPED = ["csv-profile", "repository-summary"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of one's own skills: a good one, one for elsewhere, a broken one."""
    root = tmp_path / "data" / "kesoku-actors" / "skills"
    headers = {
        "tidy": "name: tidy\ndescription: Tidies up.\nmetadata: {tags: [home]}",
        "far": "name: far\ndescription: y\nmetadata: {platforms: [windows]}",
        "bad": "name: [",
        "csv": "name: CSV-profile\ndescription: Mine.",
    }
    for folder, header in headers.items():
        (root / folder).mkdir(parents=True)
        (root / folder / "SKILL.md").write_text(f"---\n{header}\n---\nText.\n")
    return root


def rows(output: str) -> dict[str, dict[str, object]]:
    found = [json.loads(line) for line in output.splitlines()]
    return {str(row["name"] or Path(row["folder"]).name): row for row in found}


def test_the_shipped_skills_are_there_without_a_configuration(shell: Shell) -> None:
    code, output, errors = shell("$K skills list --json")
    assert (code, errors) == (0, "")
    assert list(rows(output)) == SHIPPED
    for row in rows(output).values():
        assert row["state"] == "usable"
        assert (Path(str(row["folder"])) / "SKILL.md").is_file()
        assert Path(str(row["folder"])).is_absolute()


def test_each_row_tells_its_state_and_reason(shell: Shell, root: Path) -> None:
    _, output, _ = shell("$K skills list --json")
    found = rows(output)
    assert found["tidy"] == {
        "state": "usable",
        "name": "tidy",
        "description": "Tidies up.",
        "tags": ["home"],
        "folder": str(root / "tidy"),
    }
    assert (found["far"]["state"], found["far"]["reason"]) == ("hidden", "is for windows; this is linux")
    assert (found["bad"]["state"], found["bad"]["folder"]) == ("broken", str(root / "bad"))
    assert "not YAML" in str(found["bad"]["reason"])
    assert found["CSV-profile"]["description"] == "Mine."
    assert found["csv-profile"]["reason"] == f"its name is taken by {root / 'csv'}"


def test_for_people_it_is_text_that_no_terminal_obeys(shell: Shell, root: Path) -> None:
    (root / "bad").rename(root / "\x1b[31mred")
    code, output, _ = shell("$K skills list")
    assert code == 0
    assert "tidy  [home]\n    Tidies up.\n" in output
    assert "hidden: far\n    is for windows; this is linux\n" in output
    assert "\x1b" not in output


def test_without_any_it_says_where_to_put_one(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[skills]\nshipped = false\n")
    code, output, _ = shell("$K skills list -c config.toml")
    assert (code, output) == (0, f"There are no skills; put a folder with a SKILL.md into {tmp_path / 'skills'}\n")


def test_a_folder_that_others_may_write_in_is_warned_of_before_a_chat(shell: Shell, root: Path) -> None:
    root.chmod(0o775)
    _, _, errors = shell("$K chat --llm scripted hello")
    assert f"{root} can be written by other users" in errors


def test_ones_own_folder_may_be_the_shipped_one(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "skills").symlink_to(Path(skills.__file__).parent / "shipped")
    (tmp_path / "config.toml").touch()
    found = [json.loads(line) for line in shell("$K skills list --json -c config.toml")[1].splitlines()]
    assert [(row["name"], row["state"]) for row in found] == [(name, "usable") for name in SHIPPED]
