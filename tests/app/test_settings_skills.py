"""C09: folders of skills are taken from the file's place, and none lies where the model may write."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesoku_actors.app.settings import Settings, load_settings
from kesoku_actors.errors import ConfigError

ELSEWHERE = '[workspace]\ndb_path = "../data/kesoku.db"\nsessions_dir = "../sessions"\n'


def load(folder: Path, text: str) -> Settings:
    path = folder / "config.toml"
    path.write_text(text)
    return load_settings(path, environ={})


def test_further_folders_start_at_the_file_and_a_tilde_at_the_users_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    skills = load(tmp_path, '[skills]\nroots = ["team/../ours", "~/skills", "/opt/skills"]\n').skills
    assert skills.roots == (tmp_path / "ours", tmp_path / "me" / "skills", Path("/opt/skills"))
    assert skills.shipped


@pytest.mark.parametrize(
    ("roots", "words"),
    [
        ('["sessions"]', "roots[1]: must not lie inside sessions_dir"),
        ('["ours", "sessions/x"]', "roots[2]: must not lie inside sessions_dir"),
        ('["way"]', "roots[1]: must not lie inside sessions_dir"),
        ('["."]', "roots[1]: must not hold sessions_dir"),
        ('["data"]', "roots[1]: must not hold the database"),
        ('["config.toml"]', "is not a folder"),
        ('["config.toml/skills"]', "config.toml is not a folder"),
        ("[7]", "roots[1]: must be a string in quotes"),
        ('"ours"', "roots: must be a list"),
    ],
)
def test_a_folder_that_cannot_serve_is_refused_at_its_place(tmp_path: Path, roots: str, words: str) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "way").symlink_to(tmp_path / "sessions")
    with pytest.raises(ConfigError, match=r"config\.toml:4: skills\.roots") as problem:
        load(tmp_path, f'[workspace]\ndb_path = "data/kesoku.db"\n[skills]\nroots = {roots}\n')
    assert words in str(problem.value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f'{ELSEWHERE}skills_dir = "."\n', "config.toml:4: workspace.skills_dir"),
        (f'{ELSEWHERE}[skills]\nroots = ["x", "."]\n', "config.toml:5: skills.roots[2]"),
    ],
)
def test_no_folder_of_skills_holds_the_configuration(tmp_path: Path, text: str, key: str) -> None:
    (tmp_path / "settings").mkdir()
    with pytest.raises(ConfigError) as problem:
        load(tmp_path / "settings", text)
    assert f"{key}: must not hold the folder of the configuration" in str(problem.value)
