"""What a model reads when it lists and uses skills, and what its prompt says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesoku_actors.skills import Catalog, NoSuchSkill, Shelf, skill_tools, summary
from kesoku_actors.skills.folders import LARGEST_TEXT

from .conftest import Write


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(roots=(tmp_path / "skills",), host="linux")


def test_the_list_has_names_descriptions_and_tags_and_what_is_broken(write: Write, shelf: Shelf) -> None:
    write("tidy", "name: tidy\ndescription: Tidies up.\nmetadata: {tags: [home, 7]}")
    write("hidden", "name: hidden\ndescription: y\nmetadata: {platforms: [windows]}")
    broken = write("broken", "name: broken")
    list_skills, _ = skill_tools(shelf)
    assert list_skills() == {
        "skills": [{"name": "tidy", "description": "Tidies up.", "tags": ["home", "7"]}],
        "broken": [{"folder": str(broken), "reason": "SKILL.md: has no description; add a line description: ..."}],
    }


def test_without_skills_the_list_is_empty(shelf: Shelf) -> None:
    assert skill_tools(shelf)[0]() == {"skills": []}


def test_a_skill_begins_with_where_it_lies_and_how_to_name_its_files(write: Write, shelf: Shelf) -> None:
    folder = write("tidy", body="# Tidy\n\nRun `scripts/run.py`.")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "run.py").write_text("")
    answer = skill_tools(shelf)[1]("tidy")
    head, _, rest = answer.partition("# Tidy")
    assert f"SKILL DIRECTORY: {folder}\n" in head
    assert "ABSOLUTE PATHS IN EVERY COMMAND" in head
    assert f"Write {folder}/scripts/run.py, not scripts/run.py" in head
    assert answer.splitlines()[2].startswith("SKILL DIRECTORY")
    assert "Run `scripts/run.py`." in rest
    assert rest.endswith(f"Further files of this skill:\n- {folder}/scripts/run.py")
    assert "name: tidy" not in answer


def test_a_directory_with_spaces_is_quoted_as_a_shell_wants_it(write: Write, tmp_path: Path) -> None:
    folder = write("tidy up", "name: tidy\ndescription: d", root="my skills")
    (folder / "run me.py").write_text("")
    answer = skill_tools(Shelf(roots=(tmp_path / "my skills",), host="linux"))[1]("tidy")
    assert f"SKILL DIRECTORY: {folder}\n" in answer
    assert f"Write '{folder}/run me.py', not run me.py" in answer


def test_a_skill_is_read_as_it_is_now(write: Write, shelf: Shelf) -> None:
    write("tidy", body="old")
    _, use_skill = skill_tools(shelf)
    assert "old" in use_skill("tidy")
    write("tidy", body="new and longer")
    assert "new and longer" in use_skill("tidy")


def test_a_text_too_long_is_cut_and_says_so(write: Write, shelf: Shelf) -> None:
    write("tidy", body="word " * LARGEST_TEXT)
    answer = skill_tools(shelf)[1]("tidy")
    assert len(answer) < LARGEST_TEXT + 2_000
    assert "the rest is left out" in answer


@pytest.mark.parametrize("name", ["/etc", "../skills/tidy", "skills/../../secret", "tidy\x00"])
def test_a_name_is_never_a_path(write: Write, tmp_path: Path, shelf: Shelf, name: str) -> None:
    write("tidy")
    write("secret", root=".")
    with pytest.raises(NoSuchSkill):
        skill_tools(shelf)[1](name)


def test_the_prompt_names_skills_on_one_line_each_and_is_bounded(write: Write, shelf: Shelf) -> None:
    for number in range(60):
        write(f"s{number:02}", f"name: s{number:02}\ndescription: {'long ' * 200}")
    text = summary(shelf.read(), small=False)
    assert "- s00: long long" in text
    assert text.endswith("- and 36 more: call list_skills")
    assert len(text) < 24 * 220 + 300
    assert len(summary(shelf.read(), small=True)) < 150


def test_without_skills_the_prompt_says_nothing() -> None:
    assert summary(Catalog(), small=False) == summary(Catalog(), small=True) == ""
