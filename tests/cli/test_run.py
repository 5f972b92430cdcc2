"""One command in this process: what it prints, and what its errors become."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from kesoku_actors.app.locations import example_config
from kesoku_actors.cli.exit_codes import EXIT_CODES
from kesoku_actors.cli.run import run
from kesoku_actors.cli.table import COMMANDS, help_text
from kesoku_actors.invocation import PROGRAM

Command = Callable[[str], int]


@pytest.fixture
def raising(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command of a plugin-like module whose body is the given source."""

    def raising(body: str) -> int:
        source = f"import click\nfrom kesoku_actors.errors import *\n@click.command()\ndef command():\n    {body}\n"
        (tmp_path / "outside_command.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(__import__("sys").modules, "outside_command", raising=False)
        monkeypatch.setitem(COMMANDS, "outside", ("outside_command", "A command from outside."))
        return run(["outside"])

    return raising


@pytest.mark.parametrize(
    ("body", "code", "line"),
    [
        ("pass", 0, ""),
        ("return 1", 1, ""),
        ("raise ConfigError('one\\ntwo')", 78, "error: one\nkesoku-actors: error: two"),
        ("raise NotFound('no session x')", 2, "error: no session x"),
        ("raise PeerError('\\x1b[31mred')", 1, r"error: \x1b[31mred"),
        ("raise ExceptionGroup('', [ExceptionGroup('', [PeerError('deep')])])", 1, "error: deep"),
        ("raise KeyboardInterrupt", 130, ""),
        ("raise BaseExceptionGroup('', [KeyboardInterrupt()])", 130, ""),
        ("raise BaseExceptionGroup('', [KeyboardInterrupt(), Fault('the disk')])", 1, "error: the disk"),
        (
            "raise BaseExceptionGroup('', [Fault('expected'), ZeroDivisionError('a\\nb')])",
            70,
            "error: ZeroDivisionError: a b; this is a bug, run again with KESOKU_TRACEBACK=1 to see where",
        ),
    ],
)
def test_what_a_command_raises_becomes_one_line_and_an_exit_code(
    raising: Command, capfd: pytest.CaptureFixture[str], body: str, code: int, line: str
) -> None:
    assert raising(body) == code
    assert capfd.readouterr().err == (f"kesoku-actors: {line}\n" if line else "")
    assert code in EXIT_CODES


def test_a_traceback_is_shown_when_it_is_asked_for(
    raising: Command, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KESOKU_TRACEBACK", "1")
    assert raising("raise ConfigError('here')") == 78
    assert "Traceback (most recent call last)" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["caht"], "no command 'caht'; did you mean 'chat'? (see kesoku-actors --help)"),
        (["-c", "x", "chat"], "No such option '-c' (see kesoku-actors --help)"),
        (["chat", "--jsno"], "No such option '--jsno'"),
        (["chat", "a", "b"], "Got unexpected extra argument (b) (see kesoku-actors chat --help)"),
        (["chat", "-r", "A", "-z"], "-r, -z and -l exclude each other"),
        (["chat", "-l", "hello"], "-l takes no prompt"),
        (["model"], "Missing command: list, pull (see kesoku-actors model --help)"),
        (["check", "c.toml"], "c.toml is no program; a configuration goes behind -c: check -c c.toml"),
        (["model", "pull"], "Missing argument 'NAME'"),
        (["model", "pull", "gpt-5"], "no model named 'gpt-5'"),
    ],
)
def test_what_is_not_understood_is_one_line_and_exit_2(
    capfd: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run(arguments) == 2
    captured = capfd.readouterr()
    assert captured.err.startswith("kesoku-actors: error: ")
    assert captured.err.count("\n") == 1
    assert words in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_has_help_with_the_exit_codes(capfd: pytest.CaptureFixture[str], name: str) -> None:
    assert run([name, "--help"]) == 0
    text = capfd.readouterr().out
    assert text.startswith(f"Usage: kesoku-actors {name} ")
    for code, meaning in EXIT_CODES.items():
        assert f"{code:>3}  {meaning}\n" in text
    assert name in help_text(PROGRAM)


def test_click_shows_the_same_help_as_the_quick_way(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["--help", "chat"]) == 0
    assert capfd.readouterr().out == help_text(PROGRAM) + "\n"


def test_init_writes_a_file_only_its_owner_can_read_and_says_what_next(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new" / "deep" / "config.toml"
    before = os.umask(0)
    try:
        assert run(["init", "-c", str(path)]) == 0
    finally:
        os.umask(before)
    assert path.read_text() == example_config()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["config.toml"]
    out = capfd.readouterr().out
    assert out.count("\n") == 1
    assert f'try: kesoku-actors chat -c {path} "' in out
    assert run(["check", "-c", str(path)]) == 0
    assert capfd.readouterr().out == f"ok: {path}\n"


def test_init_replaces_nothing_unless_forced(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.toml"
    path.write_text("mine")
    assert run(["init", "-c", str(path)]) == 2
    assert path.read_text() == "mine"
    assert "exists already; add --force to replace it" in capfd.readouterr().err
    assert run(["init", "-c", str(path), "--force"]) == 0
    assert path.read_text() == example_config()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["link", "dead link", "fifo", "device"])
def test_init_replaces_nothing_but_a_regular_file(tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str) -> None:
    path, target = tmp_path / "config.toml", tmp_path / "target"
    if kind == "link":
        target.write_text("mine")
    if "link" in kind:
        path.symlink_to(target)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        try:
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes devices")
    before = path.lstat()
    assert run(["init", "-c", str(path), "--force"]) == 2
    assert path.lstat() == before
    assert not target.exists() or target.read_text() == "mine"
    assert capfd.readouterr().err.count("\n") == 1


def test_init_where_nothing_can_be_written_leaves_nothing_behind(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file" / "config.toml", Path("/proc/none/config.toml"), tmp_path / ("x" * 250)):
        assert run(["init", "-c", str(place)]) == 73
        assert capfd.readouterr().err.count("\n") == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_check_names_every_problem_on_a_line_of_its_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[agent]\nlm = "x"\nmax_steps = 0\n')
    assert run(["check", "-c", str(path)]) == 78
    assert capfd.readouterr().err.splitlines() == [
        f"kesoku-actors: error: {path}:2: agent.lm: unknown key, did you mean 'llm'?",
        f"kesoku-actors: error: {path}:3: agent.max_steps: must be from 1 to 100,000, not 0",
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            '[agent]\nllm = "gpt"',
            2,
            "agent.llm: there is no model 'gpt'; present: gemini, claude, openai, local, scripted, auto",
        ),
        ('[agent]\nllm = "openai"', 2, "agent.llm: 'openai' cannot answer: no key is set; set "),
        (
            '[agent]\nfailover = ["local", "gpt"]',
            2,
            "agent.failover[2]: there is no model 'gpt'; present: gemini, claude, ",
        ),
        ('[local]\nmodel_path = "none.gguf"', 2, "local.model_path: the model file {folder}/none.gguf does not exist"),
        ('[scripted]\nscenario_path = "none"', 2, "scripted.scenario_path: scenario {folder}/none: cannot be read"),
        ('[scripted]\nscenario_path = "."', 2, "scripted.scenario_path: scenario {folder}: "),
    ],
)
def test_check_finds_the_model_that_a_chat_would_miss(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, line: int, words: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = tmp_path / "config.toml"
    path.write_text(text)
    assert run(["check", "-c", str(path)]) == 78
    errors = capfd.readouterr().err
    assert errors.startswith(f"kesoku-actors: error: {path}:{line}: {words.format(folder=tmp_path)}")


def test_an_empty_name_of_a_configuration_is_told_as_such(capfd: pytest.CaptureFixture[str]) -> None:
    for command in ("chat", "check", "init"):
        assert run([command, "-c", ""]) == 2
        assert "-c needs the name of a file" in capfd.readouterr().err


def test_warnings_are_told_and_stop_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    original = Path(__file__).parents[1] / "app" / "original-config.toml"
    assert run(["check", "-c", str(original)]) == 0
    captured = capfd.readouterr()
    assert captured.err.startswith(f"kesoku-actors: warning: {original}: still the sample's placeholder")
    assert captured.out == f"ok: {original}\n"


def test_model_list_says_which_models_there_are(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run(["model", "list"]) == 0
    assert capfd.readouterr().out == "smollm2  98 MB  not here; fetch it: kesoku-actors model pull smollm2\n"


def test_check_tries_what_only_trying_shows(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[tools]\nmodules = ["nothere.py"]\n')
    assert run(["check", "-c", str(path)]) == 0
    assert "warning: tools: nothere.py" in capfd.readouterr().err
    path.write_text('[tools.rules]\nrun_shel_command = "always"\n')
    assert run(["check", "-c", str(path)]) == 78
    told = capfd.readouterr().err
    assert "tools.rules.run_shel_command" in told
    assert "run_shell_command" in told


def test_a_price_of_a_model_that_is_not_here_is_told_with_the_nearest_that_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.toml"
    price = "input = 1\noutput = 2\n"
    path.write_text(f'[prices."gemini-2.5-falsh"]\n{price}[prices."claude-3-5-sonnet-20241022"]\n{price}')
    assert run(["check", "-c", str(path)]) == 0
    told = [line for line in capfd.readouterr().err.splitlines() if "prices" in line]
    assert told == [
        'kesoku-actors: warning: prices."gemini-2.5-falsh": no model of this configuration is called that; '
        "did you mean 'gemini-2.5-flash'?"
    ]


def test_a_bound_in_money_needs_the_price_of_the_model_that_auto_would_choose(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    path = tmp_path / "config.toml"
    path.write_text("[agent]\nmax_cost_per_day = 5.0\n")
    assert run(["check", "-c", str(path)]) == 0
    capfd.readouterr()
    path.write_text('[agent]\nmax_cost_per_day = 5.0\n[openai]\napi_key = "k"\n')
    assert run(["check", "-c", str(path)]) == 78
    assert "max_cost_per_day is set and the price of 'gpt-4.1-mini' (openai) is not" in capfd.readouterr().err
