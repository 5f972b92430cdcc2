"""The command line as a process of its own: descriptors, pipes, signals, and what starting it imports."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kesoku_actors import __version__
from kesoku_actors.cli.table import help_text
from kesoku_actors.invocation import PROGRAM

COMMAND = [sys.executable, "-m", "kesoku_actors"]

Shell = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("arguments", ["", "--help", "-h"])
def test_help_comes_from_the_table(shell: Shell, arguments: str) -> None:
    assert shell(f"$K {arguments}") == (0, help_text(PROGRAM) + "\n", "")


def test_version(shell: Shell) -> None:
    assert shell("$K --version") == (0, f"kesoku-actors {__version__}\n", "")


def test_the_quick_way_imports_nothing_of_the_standard_library_and_no_library(environ: dict[str, str]) -> None:
    source = "import sys; before = set(sys.modules); sys.argv = ['kesoku-actors', '--help']\n"
    source += "from kesoku_actors.__main__ import main; main()\n"
    source += "print('', *sorted(set(sys.modules) - before), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", source], env=environ, capture_output=True, text=True, check=True)
    assert done.stderr.split() == [
        "kesoku_actors",
        "kesoku_actors.__main__",
        "kesoku_actors.cli",
        "kesoku_actors.cli.table",
        "kesoku_actors.invocation",
    ]


def test_the_help_of_a_command_does_not_import_the_agent(environ: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "kesoku_actors", "chat", "--help"],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "click" in imported
    assert not imported & {"trio", "attrs", "attr", "cattrs", "apsw", "rich", "httpx2", "tomllib", "platformdirs"}


def test_a_closed_output_is_one_line_and_nothing_is_begun(shell: Shell, tmp_path: Path) -> None:
    for arguments in ("--help", "chat hello", "init"):
        code, _, errors = shell(f"$K {arguments} >&-")
        assert code == 2
        assert errors == "kesoku-actors: error: standard output is closed; open it, or send it to a file or /dev/null\n"
    assert list(tmp_path.iterdir()) == []


def test_a_closed_error_output_or_input_changes_no_answer(shell: Shell, tmp_path: Path) -> None:
    assert shell("$K init -c a.toml 2>&- <&-")[0] == 0
    assert shell("$K check -c a.toml 2>&- <&-")[:2] == (0, "ok: a.toml\n")
    code, output, errors = shell("$K check -c none.toml 2>&-")
    assert (code, output, errors) == (78, "", "")


def test_a_closed_input_without_a_prompt_is_one_line(shell: Shell) -> None:
    code, output, errors = shell("$K chat <&-")
    assert (code, output) == (2, "")
    assert errors.startswith("kesoku-actors: error: no prompt, and standard input is closed; ")


def test_a_reader_that_goes_away_is_no_error_worth_a_word(shell: Shell) -> None:
    for arguments in ("--help", "chat --help"):
        code, _, errors = shell(f"set -o pipefail; (sleep 0.2; $K {arguments}) | true")
        assert (code, errors) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_the_output_is_one_line(shell: Shell) -> None:
    for arguments in ("--help", "chat --help", "chat -l", "check", "model list", "init -c new.toml"):
        for unbuffered in ("", "1"):
            code, _, errors = shell(f"rm -f new.toml; $K {arguments} > /dev/full", PYTHONUNBUFFERED=unbuffered)
            assert code == 73
            assert errors == "kesoku-actors: error: standard output cannot be written: No space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("json", ["", "--json"])
def test_an_answer_that_does_not_fit_is_told_and_shown_by_the_next_chat(shell: Shell, json: str) -> None:
    code, _, errors = shell(f"$K chat --llm scripted {json} hello > /dev/full")
    assert code == 73
    assert errors.endswith("kesoku-actors: error: standard output cannot be written: No space left on device\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(("errors", "unbuffered"), [("2> /dev/full", ""), ("2> /dev/full", "1"), ("2> >(true)", "")])
def test_an_error_output_that_takes_nothing_changes_no_answer_and_no_exit_code(
    shell: Shell, errors: str, unbuffered: str
) -> None:
    code, output, _ = shell(f"$K chat --llm scripted hello {errors}", PYTHONUNBUFFERED=unbuffered)
    assert (code, bool(output)) == (0, True)
    assert shell(f"$K nope {errors}", PYTHONUNBUFFERED=unbuffered)[0] == 2


def test_input_that_is_not_utf8_is_one_line(shell: Shell) -> None:
    code, output, errors = shell(r"printf 'caf\xe9' | $K chat")
    assert (code, output) == (2, "")
    assert errors == "kesoku-actors: error: standard input is not UTF-8: byte 0xe9 at 3; convert it first\n"


def test_ctrl_c_while_the_prompt_is_read_is_quiet(environ: dict[str, str]) -> None:
    with subprocess.Popen(
        [*COMMAND, "chat", "-"], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        # The pipe takes more than it can hold only when the process reads it.
        process.stdin.write(b"x" * 1_000_000)
        process.stdin.flush()
        process.send_signal(2)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (130, b"", b"")


def test_a_chat_tells_each_warning_once(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[agent]\nllm = "scripted"\n[discord]\nenabled = true\nbot_token = "none"\n')
    code, _, errors = shell("$K chat -c config.toml hello")
    assert code == 0
    assert errors.count("discord.enabled: has no effect yet") == 1


def test_a_bound_in_money_without_a_price_is_refused_and_one_that_is_reached_ends_the_day(
    shell: Shell, tmp_path: Path
) -> None:
    config, scenario = tmp_path / "config.toml", tmp_path / "scenario.toml"
    scenario.write_text(
        'repeat = true\ninferences = [[{ say = "Six." }, { spend = { input = 9000, output = 1000 } }]]\n'
    )
    text = '[agent]\nllm = "scripted"\nmax_cost_per_day = 0.03\n[scripted]\nscenario_path = "scenario.toml"\n'
    config.write_text(text)
    code, _, errors = shell("$K check -c config.toml")
    assert code == 78
    assert "agent: max_cost_per_day is set and the price of 'scenario' (scripted) is not" in errors
    code, _, errors = shell("$K chat -c config.toml hello")
    assert code == 78
    assert "the price of 'scenario' (scripted) is not; say what it costs: [prices.\"scenario\"]" in errors
    config.write_text(text + '[prices."scenario"]\ninput = 1\noutput = 5\n')
    for _ in range(2):  # 0.014 each
        code, output, errors = shell("$K chat -c config.toml hello")
        assert (code, output) == (0, "Six.\n")
        assert " · tokens 10.0K · $0.014 · " in errors.splitlines()[-1]
    code, output, errors = shell("$K chat -c config.toml hello")
    assert (code, output) == (1, "")
    assert "$0.028 of the $0.03 for today (max_cost_per_day) are spent" in errors
    _, listed, _ = shell("$K history list -c config.toml")
    assert sum("9.0K in, 1.0K out" in line and " $0.014 " in line for line in listed.splitlines()) == 2
    _, page, _ = shell(f"$K history show -c config.toml {listed.splitlines()[-1].split()[0]}")
    assert "1 step · tokens 9000 in, 1000 out · $0.014" in page


def test_what_others_may_read_of_an_older_store_is_told_at_each_start(shell: Shell, tmp_path: Path) -> None:
    code, _, errors = shell("umask 000; $K chat --llm scripted hello")
    assert (code, "other users" in errors) == (0, False)
    data = tmp_path / "data" / "kesoku-actors"
    (data / "kesoku.db").chmod(0o644)
    data.chmod(0o755)
    _, _, errors = shell("$K chat --llm scripted hello")
    assert errors.count("other users") == 1
    assert f"{data / 'kesoku.db'} can be read by other users of this machine; keep them out: chmod go= " in errors
    data.chmod(0o777)
    (data / "sessions").chmod(0o750)
    _, _, errors = shell("$K chat --llm scripted hello")
    assert f"{data} can be written by other users" in errors
    assert f"{data / 'sessions'} can be read by other users" in errors
    assert errors.count("other users") == 3
    data.chmod(0o1777)
    assert shell("$K chat --llm scripted hello")[2].count("other users") == 2


def test_without_any_writable_home_init_is_one_line(shell: Shell) -> None:
    code, _, errors = shell("$K init", HOME="/proc/none", XDG_DATA_HOME="/proc/none")
    assert code == 73
    assert errors.startswith("kesoku-actors: error: cannot make the folder /proc/none/kesoku-actors: ")
    assert errors.count("\n") == 1


def test_a_shell_can_complete_commands_and_options(shell: Shell) -> None:
    complete = {"_KESOKU_ACTORS_COMPLETE": "bash_complete", "COMP_WORDS": "kesoku-actors ch", "COMP_CWORD": "1"}
    assert shell("$K", **complete)[1].split() == ["plain,chat", "plain,check"]
    complete |= {"COMP_WORDS": "kesoku-actors chat --ll", "COMP_CWORD": "2"}
    assert shell("$K", **complete)[1].split() == ["plain,--llm"]
    code, script, _ = shell("$K", _KESOKU_ACTORS_COMPLETE="zsh_source")
    assert code == 0
    assert "kesoku-actors" in script


def test_a_sessions_folder_that_cannot_be_made_is_named_before_anything_begins(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[agent]\nllm = "scripted"\n[workspace]\nsessions_dir = "/proc/none/sessions"\n')
    code, output, errors = shell("$K chat -c c.toml hello")
    assert (code, output) == (73, "")
    assert errors.startswith("kesoku-actors: error: cannot make the folder /proc/none/sessions: ")
    assert errors.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.toml"]


def test_a_worker_that_crashes_leaves_its_cause_on_the_error_output(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(
        '[agent]\nllm = "scripted"\n[scripted]\nscenario_path = "s.toml"\n'
        '[workspace]\ndb_path = "k.db"\nsessions_dir = "sessions"\n'
        '[shell]\nsandbox = "off"\n'
    )
    spoil = 'call = "run_shell_command", arguments = { command = "cd ../.. && mv sessions gone && touch sessions" }'
    (tmp_path / "s.toml").write_text(f"repeat = true\ninferences = [[{{ {spoil} }}]]\n")
    code, _, errors = shell("$K chat -c c.toml hello")
    assert code == 1
    told = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    crash = next(entry for entry in told if entry["event"] == "a part of the program crashed")
    assert crash["level"] == "error"
    assert "workers" in crash["path"]
    assert crash["error"].startswith(("FileExistsError: ", "NotADirectoryError: "))
    assert "Traceback" not in errors


def test_a_store_that_cannot_be_used_is_told_once(shell: Shell) -> None:
    code, _, errors = shell(
        "mkdir -p data/kesoku-actors; mkfifo data/kesoku-actors/kesoku.db.lock; $K chat --llm scripted hello"
    )
    assert code == 73
    assert errors.count("is not a file") == 1


def test_a_session_goes_on_with_the_model_that_was_chosen_in_it_unless_another_is_named(
    shell: Shell, tmp_path: Path
) -> None:
    code, _, _ = shell("$K chat --llm scripted hello")
    assert code == 0
    with closing(sqlite3.connect(tmp_path / "data" / "kesoku-actors" / "kesoku.db")) as database, database:
        database.execute(
            "INSERT INTO channels (chatbot_id, channel_id, llm) SELECT chatbot_id, channel_id, 'scripted' FROM sessions"
        )
    (tmp_path / "config.toml").write_text('[agent]\nllm = "openai"\n[openai]\nbase_url = "http://127.0.0.1:9/v1"\n')
    moved = "mkdir -p data/kesoku-actors; cp config.toml data/kesoku-actors/config.toml"
    code, output, errors = shell(f"{moved}; $K chat -z hello")
    assert (code, bool(output)) == (0, True)
    assert "scenario (scripted) answers, as it was chosen in this session with /llm" in errors
