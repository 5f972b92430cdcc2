"""The commented example: it is what the defaults are, and leaves nothing out."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import attrs

from kesoku_actors.app.locations import example_config
from kesoku_actors.app.sections import DiscordChannels, ModelPrice
from kesoku_actors.app.settings import SECTIONS, load_settings

REPOSITORY = Path(__file__).parents[2]
COMMENTED = re.compile(r"^# (?=\[|[a-z_]+ = )", re.MULTILINE)


def test_the_example_says_what_the_defaults_are(tmp_path: Path) -> None:
    (tmp_path / "example.toml").write_text(example_config())
    example = load_settings(tmp_path / "example.toml", environ={})
    assert example == load_settings(None, environ={}, home=tmp_path)
    assert example.warnings == ()


def test_the_example_holds_every_key() -> None:
    data = tomllib.loads(COMMENTED.sub("", example_config()))
    assert data.keys() == {*SECTIONS, "prices"}
    for name, section in SECTIONS.items():
        assert data[name].keys() == {key.name for key in attrs.fields(section)}
    assert data["discord"]["channels"][0].keys() == {key.name for key in attrs.fields(DiscordChannels)}
    [price] = data["prices"].values()
    assert price.keys() == {key.name for key in attrs.fields(ModelPrice)}


def test_what_is_commented_out_is_valid_too(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(COMMENTED.sub("", example_config()))
    path.chmod(0o600)
    load_settings(path, environ={})


def test_the_example_in_the_repository_is_the_one_that_init_writes() -> None:
    assert (REPOSITORY / "config" / "config.example.toml").read_text() == example_config()
