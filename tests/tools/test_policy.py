"""What the shell's policy lets run (T2, S01 to S13, field failures 79 and 80)."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from kesoku_actors.tools.shell import ShellPolicy, warnings
from kesoku_actors.tools.shell.policy import Refused, Run, judge
from kesoku_actors.tools.shell.words import NotPlain, plain_words

ALLOWED = r"^(echo|ls|pwd|cat|git|uv|grep|find|python|sed|awk)(\s|$)"
BLOCKED = r"(\b|^)(rm|sudo|shutdown|reboot|mkfs|dd|chmod|chown)(\b|\s|$)"

allowlist = ShellPolicy(mode="allowlist", allowlist_patterns=(ALLOWED,), blocklist_patterns=(BLOCKED,))
blocklist = ShellPolicy(mode="blocklist", allowlist_patterns=(ALLOWED,), blocklist_patterns=(BLOCKED,))


def refusal(policy: ShellPolicy, command: str) -> str:
    verdict = judge(policy, command)
    assert isinstance(verdict, Refused), f"{command!r} may run as {verdict}"
    return verdict.reason


@pytest.mark.parametrize(
    "command",
    [
        "echo ok; rm x",
        "echo ok && rm x",
        "echo ok || rm x",
        "echo ok & rm x",
        "echo cm0gLXJmCg== | base64 -d | sh",
        "echo $(rm x)",
        "echo `rm x`",
        'echo "$(rm x)"',
        'echo "`rm x`"',
        "echo ok\nrm x",
        "echo ok\r\nrm x",
        "cat <<EOF\nrm x\nEOF",
        "r''m x",
        'r"m" x',
        r"r\m x",
        "X=rm; $X x",
        "rm${IFS}x",
        "X=1 echo ok",
        "/bin/rm x",
        "../bin/rm x",
        "./ls",
        "bin/echo x",
        "env rm x",
        "nohup rm x",
        "echo x > ~/.bashrc",
        "echo x >> .ssh/authorized_keys",
        "cat < /etc/passwd",
        "grep x y 2>&1",
        "echo *",
        "echo {a,b}",
        "echo ~root",
        "echo a # b",
        "( echo a )",
        "{ echo a; }",
        "! echo a",
        "if echo a; then echo b; fi",
        "echo 'open",
        'echo "open',
        "echo open\\",
        "",
        "   ",
        "echo a\0b",
        "echo a\x1b[2J",
        "sudo ls",
    ],
)
def test_an_allowlist_refuses_all_but_one_plain_allowed_command(command):
    refusal(allowlist, command)


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("echo ok", ("echo", "ok")),
        ("ls", ("ls",)),
        ("/bin/ls -l", ("/bin/ls", "-l")),
        ("  echo \t spaced  out ", ("echo", "spaced", "out")),
        ("echo 'a; b | c $(d)'", ("echo", "a; b | c $(d)")),
        ('echo "it\'s \\"so\\""', ("echo", 'it\'s "so"')),
        (r"echo a\ b \$HOME", ("echo", "a b", "$HOME")),
        ("echo ''", ("echo", "")),
        ("git commit -m 'first try (ü)'", ("git", "commit", "-m", "first try (ü)")),
    ],
)
def test_an_allowlist_runs_exactly_the_words_it_checked(command, argv):
    assert judge(allowlist, command) == Run(argv=argv)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("\uff45cho x", "FULLWIDTH LATIN SMALL LETTER E"),
        ("ec\u200bho x", "ZERO WIDTH SPACE"),
        ("еcho x", "CYRILLIC SMALL LETTER IE"),
        ("echo \u202egnp.exe", "RIGHT-TO-LEFT OVERRIDE"),
        ("echo \x07", "U+0007"),
    ],
)
def test_a_refusal_names_the_character_nobody_sees(command, name):
    assert name in refusal(allowlist, command)


def test_a_forbidden_pattern_refuses_what_the_allowlist_allows():
    policy = ShellPolicy(mode="allowlist", allowlist_patterns=(ALLOWED,), forbidden_patterns=(r"git push",))
    assert "git push" in refusal(policy, "git push origin")
    assert judge(policy, "git status") == Run(argv=("git", "status"))


@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "  rm x",
        "/bin/rm x",
        "../bin/rm x",
        "r''m x",
        'r"m" x',
        r"r\m x",
        "rm${IFS}-rf x",
        "echo ok; rm x",
        "echo ok && rm x",
        "echo ok | sudo tee x",
        "echo ok\nrm x",
        "echo ok &\n  rm x",
        "r\\\nm x",
        "echo $(rm x)",
        "echo `rm x`",
        'echo "$(rm x)"',
        "(rm x)",
        "{ rm x; }",
        "! rm x",
        "A=1 B=2 rm x",
        "2>/dev/null rm x",
        "> out rm x",
        "env A=1 rm x",
        "nohup rm x",
        "timeout 5 rm x",
        "ls | xargs -n 1 rm",
        "busybox rm x",
        "find . -exec rm {} +",
        "sh -c 'rm x'",
        'bash -lc "rm x"',
        "if true; then rm x; fi",
        "while true; do rm x; done",
        "cat <<EOF | sh\nrm x\nEOF",
        "/usr/bin/sudo id",
        "eval rm x",
        "exec rm x",
    ],
)
def test_a_blocklist_finds_a_blocked_program_wherever_one_may_be_named(command):
    assert "blocked by the pattern" in refusal(blocklist, command)


@pytest.mark.parametrize(
    "command",
    [
        "git rm --cached f",
        'echo "rm"',
        "echo rm",
        "cat rm.txt",
        "grep x y 2>&1",
        "npm install",
        "ls -l | sort > out.txt",
        "python -c 'print(1)'",
        "for f in *.txt; do echo $f; done",
        "docker run --rm image",
        "ls /usr/share/doc/sudo",
    ],
)
def test_a_blocklist_lets_harmless_commands_run_as_they_are(command):
    assert judge(blocklist, command) == Run(argv=("/bin/sh", "-c", command))


def test_without_a_shell_a_blocklist_runs_plain_words_only():
    policy = ShellPolicy(mode="blocklist", use_shell=False, blocklist_patterns=(BLOCKED,))
    assert judge(policy, "echo 'a b'") == Run(argv=("echo", "a b"))
    assert "use_shell is off" in refusal(policy, "echo a | cat")


def test_a_person_is_told_what_the_policy_does_not_do():
    assert any("not a boundary" in said for said in warnings(blocklist))
    told = " ".join(warnings(allowlist))
    assert "use_shell is ignored" in told
    assert "python" in told
    assert "ls" not in told.split("with", 1)[1].split("allows")[0]


def test_a_very_long_command_is_refused_and_a_long_one_judged():
    assert "characters" in refusal(blocklist, "echo " + "a" * 100_000)
    assert "blocked" in refusal(blocklist, "env " * 5_000 + "rm")


SHELL = shutil.which("sh")
special = st.sampled_from("\"'\\$`;&|<>(){}[]*?~!#=^%-+,.:/@ \t\n")
commands = st.lists(st.one_of(special, st.sampled_from(["a", "B", "1", "é", "echo", "IFS", "rm"])), max_size=14).map(
    "".join
)


@settings(max_examples=250, deadline=None)
@given(commands)
@example("'a'\\''b'")
@example('"\\$\\`\\"\\\\\\a"')
@example("a=b")
@example("-n")
def test_what_is_accepted_as_plain_is_read_the_same_by_a_real_shell(command):
    command = "printf %s\\\\n " + command
    try:
        words = plain_words(command)
    except NotPlain:
        assume(False)
        raise
    assert words[0] == "printf"
    # The shell hands its own reading to a program that shows the words apart; nothing else may happen in it.
    script = command.replace("printf", 'set -f; show() { for w in "$@"; do printf "%s\\0" "$w"; done; }; show', 1)
    shown = subprocess.run([SHELL, "-c", script], capture_output=True, check=True, env={"PATH": "/nowhere"})
    assert shown.stderr == b""
    assert tuple(shown.stdout.decode().split("\0")[:-1]) == words[1:]
