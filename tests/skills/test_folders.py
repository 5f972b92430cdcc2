"""What lies in a folder of skills: each thing is a skill or has its reason, and none breaks the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kesoku_actors.skills import Catalog, NoSuchSkill, Shelf
from kesoku_actors.skills.folders import MOST_FILES, MOST_SKILLS, list_files
from kesoku_actors.skills.front_matter import LARGEST_HEADER

from .conftest import Write


def shelf(*roots: Path, host: str = "linux") -> Shelf:
    return Shelf(roots=roots, host=host)


def names(catalog: Catalog) -> list[str]:
    return [skill.name for skill in catalog.skills]


def reasons(catalog: Catalog) -> dict[str, str]:
    return {left.folder.name: left.reason for left in catalog.broken}


def test_a_folder_with_a_header_is_a_skill(write: Write, tmp_path: Path) -> None:
    folder = write("tidy", "name: tidy\ndescription: Tidies up.\nmetadata:\n  tags: [home]")
    [skill] = shelf(tmp_path / "skills").read().skills
    assert (skill.name, skill.header.description, skill.header.tags) == ("tidy", "Tidies up.", ("home",))
    assert (skill.folder, skill.file) == (folder, folder / "SKILL.md")


def test_a_root_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert shelf(tmp_path / "none").read() == Catalog()


def test_a_root_that_is_no_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be read" in reasons(shelf(tmp_path / "file").read())["file"]


def test_the_file_is_skill_md_or_else_the_first_with_a_header(write: Write, tmp_path: Path) -> None:
    write("a", "name: chosen\ndescription: d")
    write("a", "name: other\ndescription: d", file="A.md")
    write("b", "name: small\ndescription: d", file="skill.md")
    (write("c", "name: second\ndescription: d", file="Notes.MD") / "About.md").write_text("# No header\n")
    assert names(shelf(tmp_path / "skills").read()) == ["chosen", "second", "small"]


def test_a_broken_skill_md_is_not_hidden_by_another_file(write: Write, tmp_path: Path) -> None:
    write("a", "name: x")
    write("a", "name: other\ndescription: d", file="A.md")
    assert reasons(shelf(tmp_path / "skills").read()) == {
        "a": "SKILL.md: has no description; add a line description: ..."
    }


def test_one_broken_skill_breaks_no_other(write: Write, tmp_path: Path) -> None:
    write("bad-yaml", "name: [x")
    write("bomb", "a: &a [*a]")
    write("large", "name: x\ndescription: y\n" + "# z\n" * (LARGEST_HEADER // 4))
    (write("bytes") / "SKILL.md").write_bytes(b"---\nname: \xff\n---\n")
    (write("plain") / "SKILL.md").write_text("# No header\n")
    (tmp_path / "skills" / "empty").mkdir()
    (tmp_path / "skills" / "odd" / "SKILL.md").mkdir(parents=True)
    os.mkfifo(write("pipe", file="x.txt") / "SKILL.md")
    write("good")
    catalog = shelf(tmp_path / "skills").read()
    assert names(catalog) == ["good"]
    told = reasons(catalog)
    assert sorted(told) == ["bad-yaml", "bomb", "bytes", "empty", "large", "odd", "pipe", "plain"]
    assert told["empty"] == "holds no SKILL.md"
    assert "not a regular file" in told["pipe"]
    assert "larger than" in told["large"]


def test_a_folder_whose_name_cannot_be_shown_is_told_of_in_signs_that_can(write: Write, tmp_path: Path) -> None:
    (write("good") / "a\nb.txt").write_text("")
    for name in (b"\xff", b"a\x1b[31m"):
        os.mkdir(os.fsencode(tmp_path / "skills") + b"/" + name)
    catalog = shelf(tmp_path / "skills").read()
    assert sorted(reasons(catalog)) == ["\\udcff", "a\\x1b[31m"]
    assert all(str(left.folder).isprintable() for left in catalog.broken)
    assert list_files(catalog.skills[0]) == ((), False)


def test_what_is_private_or_no_folder_is_no_skill(write: Write, tmp_path: Path) -> None:
    for folder in (".git", "__pycache__"):
        write(folder)
    (tmp_path / "skills" / "README.md").write_text("---\nname: x\ndescription: y\n---\n")
    assert shelf(tmp_path / "skills").read() == Catalog()


def test_no_link_leads_out(write: Write, tmp_path: Path) -> None:
    outside = write("outside", root="elsewhere")
    root = write("inside").parent
    (root / "linked").symlink_to(outside)
    (root / "again").symlink_to(root / "inside")
    (root / "file").mkdir()
    (root / "file" / "SKILL.md").symlink_to(outside / "SKILL.md")
    (root / "loop").symlink_to(root / "loop")
    (root / "gone").symlink_to(root / "nothing")
    (root / "README").symlink_to(root / "inside" / "SKILL.md")
    catalog = shelf(root).read()
    told = reasons(catalog)
    assert "link out of the folder of skills" in told["linked"]
    assert "link out of the skill's folder" in told["file"]
    assert str(outside / "SKILL.md") in told["file"]
    assert told["again"] == f"is a link to {root / 'inside'}, which is here already"
    assert told["loop"] == told["gone"] == "is a link that leads nowhere"
    assert names(catalog) == ["inside"]


def test_a_root_may_be_reached_by_a_link_and_is_named_as_it_is(write: Write, tmp_path: Path) -> None:
    folder = write("tidy")
    (tmp_path / "link").symlink_to(folder.parent)
    [skill] = shelf(tmp_path / "link").read().skills
    assert skill.folder == folder


def test_the_first_root_with_a_name_has_it(write: Write, tmp_path: Path) -> None:
    mine = write("tidy", "name: Tidy\ndescription: mine")
    write("tidy", "name: tidy\ndescription: shipped", root="shipped")
    write("other", "name: tidy\ndescription: another", root="shipped")
    catalog = shelf(tmp_path / "skills", tmp_path / "shipped").read()
    assert [skill.header.description for skill in catalog.skills] == ["mine"]
    assert reasons(catalog) == dict.fromkeys(("other", "tidy"), f"its name is taken by {mine}")


def test_a_skill_is_hidden_where_it_does_not_run_and_takes_no_name(write: Write, tmp_path: Path) -> None:
    for folder, listed in (("a", "[macOS]"), ("b", "[Windows, Linux]"), ("c", "[]"), ("d", "[linux]")):
        name = "shared" if folder in "ab" else folder
        write(folder, f"name: {name}\ndescription: {folder}\nmetadata:\n  platforms: {listed}")
    catalog = shelf(tmp_path / "skills").read()
    assert [skill.header.description for skill in catalog.skills] == ["d", "b"]
    assert {left.name: left.reason for left in catalog.hidden} == {
        "shared": "is for macos; this is linux",
        "c": "is for no platform; this is linux",
    }
    assert names(shelf(tmp_path / "skills", host="macos").read()) == ["shared"]


def test_of_too_many_folders_the_rest_is_told_of(tmp_path: Path) -> None:
    for number in range(MOST_SKILLS + 1):
        (tmp_path / "skills" / f"{number:03}").mkdir(parents=True)
    catalog = shelf(tmp_path / "skills").read()
    assert len(catalog.broken) == MOST_SKILLS + 1
    assert f"more than {MOST_SKILLS} folders" in catalog.broken[-1].reason


def test_a_change_is_seen_and_only_a_change(write: Write, tmp_path: Path) -> None:
    folder, here = write("tidy"), shelf(tmp_path / "skills", tmp_path / "later")
    assert here.is_stale()
    first = here.read()
    assert not here.is_stale()
    assert here.read() is first

    write("tidy", "name: tidy\ndescription: Another text.")
    assert here.is_stale()
    assert [skill.header.description for skill in here.read().skills] == ["Another text."]

    write("new", root="later")
    assert here.is_stale()
    assert names(here.read()) == ["new", "tidy"]

    (folder / "SKILL.md").unlink()
    assert here.is_stale()
    assert names(here.read()) == ["new"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("csv-profil", "did you mean 'csv-profile'?"),
        ("profile", "did you mean 'csv-profile'?"),
        ("xyzzy", "there are: csv-profile, tidy"),
        ("", "there are: csv-profile, tidy"),
        ("../../../etc", "there are: csv-profile, tidy"),
        ("broken", "cannot be used: SKILL.md: has no description"),
        ("Nowhere", "cannot be used: is for no platform"),
        ("x" * 5_000, "there are: csv-profile, tidy"),
    ],
)
def test_a_name_that_is_none_is_answered_with_what_is_close(
    write: Write, tmp_path: Path, asked: str, told: str
) -> None:
    write("csv-profile")
    write("tidy")
    write("broken", "name: broken")
    write("nowhere", "name: nowhere\ndescription: y\nmetadata:\n  platforms: []")
    with pytest.raises(NoSuchSkill) as problem:
        shelf(tmp_path / "skills").read().find(asked)
    assert told in str(problem.value)
    assert len(str(problem.value)) < 300


def test_a_name_is_found_however_a_model_writes_it(write: Write, tmp_path: Path) -> None:
    write("csv-profile")
    catalog = shelf(tmp_path / "skills").read()
    assert {catalog.find(name).name for name in ("csv-profile", "CSV_Profile", " csv profile ")} == {"csv-profile"}


def test_files_are_listed_without_links_and_private_ones_and_within_a_bound(write: Write, tmp_path: Path) -> None:
    folder = write("tidy")
    (folder / "scripts" / "__pycache__").mkdir(parents=True)
    for name in ("scripts/run.py", "notes.txt", ".hidden", "scripts/__pycache__/run.pyc"):
        (folder / name).write_text("")
    (folder / "away").symlink_to("/etc/passwd")
    (folder / "far").symlink_to("/etc")
    [skill] = shelf(tmp_path / "skills").read().skills
    assert list_files(skill) == (("notes.txt", "scripts/run.py"), False)
    for number in range(MOST_FILES):
        (folder / f"{number:04}").write_text("")
    files, more = list_files(skill)
    assert (len(files), more) == (MOST_FILES, True)
