"""Hints name the program as their reader called it, so that they can be typed as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Shell

CALLED = "scripts/kesoku-actors"
IN_A_CHECKOUT = {"KESOKU_ACTORS_CALLED": CALLED}


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("--help", "Try: {} chat"),
        ("chat --help", "Usage: {} chat "),
        ("chat", 'as an argument, {} chat "..."'),
        ("chat --nothing", "(see {} chat --help)"),
        ("nothing", "(see {} --help)"),
        ("chat -r ../x hello", "list them: {} chat -l"),
        ("chat -r 123 hello", "list them: {} history list"),
        ("history show last", "begin one: {} chat"),
        ("history export 123", "list them: {} history list"),
        ("trace 123", "list them: {} history list"),
        ("check -c none.toml", "write one with: {} init -c none.toml"),
        ("init", "then try: {} chat"),
        ("model list", "fetch it: {} model pull smollm2"),
    ],
)
def test_a_hint_says_what_its_reader_can_type(shell: Shell, tmp_path: Path, arguments: str, hint: str) -> None:
    _, output, errors = shell(f"$K {arguments}", **IN_A_CHECKOUT)
    assert hint.format(CALLED) in output + errors
