"""What the shell's policy lets run (T2, S01 to S13, field failures 79 and 80)."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from kesoku_actors.tools.shell import ShellPolicy, warnings
from kesoku_actors.tools.shell.patterns import load
from kesoku_actors.tools.shell.policy import Refused, Run, judge
from kesoku_actors.tools.shell.words import NotPlain, plain_words

ALLOWED = r"^(echo|ls|pwd|cat|git|uv|grep|find|python|sed|awk)(\s|$)"
BLOCKED = r"(\b|^)(rm|sudo|shutdown|reboot|mkfs|dd|chmod|chown)(\b|\s|$)"

COMMANDS = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))
README = Path(__file__).parents[2] / "README.rst"

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


@pytest.mark.parametrize("command", COMMANDS["blocked"])
def test_a_blocklist_finds_a_blocked_program_wherever_one_may_be_named(command):
    assert "blocked by the pattern" in refusal(blocklist, command)
    assert "blocked by the pattern" in refusal(evolve(blocklist, sandboxed=True), command)


@pytest.mark.parametrize("command", COMMANDS["hidden"])
def test_what_nobody_can_know_is_refused_unless_a_sandbox_holds_it(command):
    reason = refusal(blocklist, command)
    assert reason.startswith("nobody can tell wh")
    assert "there is no sandbox" in reason
    assert judge(evolve(blocklist, sandboxed=True), command) == Run(argv=("/bin/sh", "-c", command))


@pytest.mark.parametrize("command", COMMANDS["harmless"])
def test_a_blocklist_lets_harmless_commands_run_as_they_are(command):
    assert judge(blocklist, command) == Run(argv=("/bin/sh", "-c", command))


def test_where_nothing_is_blocked_nothing_has_to_be_known():
    assert isinstance(judge(ShellPolicy(), "$X y"), Run)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("\uff52\uff4d x", "FULLWIDTH LATIN SMALL LETTER R"),
        ("r\u200bm x", "ZERO WIDTH SPACE"),
        ("ls; env r\u00adm x", "SOFT HYPHEN"),
        ("sh -c '\U0001d42bm x'", "MATHEMATICAL BOLD SMALL R"),
        ("rm\u00a0x", "NO-BREAK SPACE"),
        ("r\x08m x", "U+0008"),
    ],
)
def test_a_program_whose_name_deceives_is_refused_in_both_modes_and_the_character_is_named(command, name):
    assert name in refusal(blocklist, command)
    assert name in refusal(evolve(blocklist, sandboxed=True), command)
    refusal(allowlist, command)


def test_a_forbidden_pattern_says_what_a_person_wants_said():
    forbidden = (load(r"git push", "Pushing is for people; leave the commits here."), r"npm publish")
    for mode in ("allowlist", "blocklist"):
        policy = ShellPolicy(mode=mode, allowlist_patterns=(".+$",), forbidden_patterns=forbidden)
        assert refusal(policy, "git push origin") == "Pushing is for people; leave the commits here."
        assert refusal(policy, "npm publish") == "it is forbidden by the pattern npm publish"
    assert refusal(policy, "ls && env git push") == "Pushing is for people; leave the commits here."


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("find . -delete", "'rm'"),
        ("find . -exec rm '{}' +", "'rm"),
        ("git -c alias.z='!rm x' z", "'rm x'"),
        ("git -c core.pager='less' log", "'less'"),
        ("awk 'BEGIN { system(\"id\") }'", "'id'"),
        ("python -c 'import os; os.system(\"id\")'", "'id'"),
        ("sed '1e id' f", "'id'"),
        ("sed 's/a/b/e' f", "nobody can tell"),
        ("find . -exec '{}' +", "nobody can tell"),
    ],
)
def test_what_an_allowed_program_runs_has_to_be_allowed_too(command, why):
    assert why in refusal(allowlist, command)


def test_what_an_allowed_program_runs_may_be_allowed_too_or_with_all_its_arguments():
    assert isinstance(judge(allowlist, "find . -exec grep x '{}' +"), Run)
    assert isinstance(judge(allowlist, "uv run python x.py"), Run)
    spelled_out = ShellPolicy(mode="allowlist", allowlist_patterns=(r"^find \. -delete$",))
    assert isinstance(judge(spelled_out, "find . -delete"), Run)


def test_without_a_shell_a_blocklist_runs_plain_words_only():
    policy = ShellPolicy(mode="blocklist", use_shell=False, blocklist_patterns=(BLOCKED,))
    assert judge(policy, "echo 'a b'") == Run(argv=("echo", "a b"))
    assert "use_shell is off" in refusal(policy, "echo a | cat")


def test_a_blocklist_is_called_what_it_is():
    (told,) = warnings(blocklist)
    assert "guard rail, not a boundary" in told
    assert warnings(evolve(blocklist, sandboxed=True)) == ()
    assert any("the blocklist is empty" in said for said in warnings(ShellPolicy()))


def test_an_allowlist_says_what_it_ignores_and_what_it_lets_do_anything():
    ignored, open_ended = warnings(allowlist)
    assert "use_shell is ignored" in ignored
    assert open_ended.split("with ")[1].split(" allows")[0].split(", ") == "awk find git python sed uv".split()  # noqa: SIM905
    (empty,) = warnings(ShellPolicy(mode="allowlist", use_shell=False))
    assert "every command is refused" in empty


def readme_allowlist() -> tuple[str, ...]:
    (example,) = re.findall(r"^    allowlist_patterns = .*$", README.read_text(), re.M)
    return tuple(tomllib.loads(example.strip())["allowlist_patterns"])


@pytest.mark.parametrize(
    "attack",
    [
        "git diff --no-index --output=/home/x/.bashrc a b",
        "git diff --output=x",
        "git log --output=x",
        "git log -1 --output=x",
        "git log --oneline --ext-diff",
        "git -c core.pager='touch x' log",
        "git status -c x",
        "git 'log --oneline' --output=x",
        "lsof",
        "grepx",
        "cat x > y",
    ],
)
def test_the_documented_allowlist_lets_nothing_be_written(attack):
    refusal(ShellPolicy(mode="allowlist", allowlist_patterns=readme_allowlist()), attack)


def test_the_documented_allowlist_lets_its_commands_run_and_needs_no_warning():
    policy = ShellPolicy(mode="allowlist", use_shell=False, allowlist_patterns=readme_allowlist())
    assert warnings(policy) == ()
    for command in ("ls -la", "cat a b", "grep -rn 'x y' .", "git status", "git log --oneline -5", "git log --stat"):
        assert isinstance(judge(policy, command), Run)


@pytest.mark.parametrize(
    ("pattern", "programs"),
    [
        (r"^(ls|cat|grep|git (log|diff|status))(\s|$)", "git"),
        (r"^git show", "git"),
        (r"^git archive .*$", "git"),
        (r"^sort(\s|$)", "sort"),
        (r"^(ls|find \.)(\s|$)", "find"),
        (r"^tar -[cx]f ", "tar"),
        (r"^sed -n ", "sed"),
        (r"^(uniq|tee) ", "tee, uniq"),
    ],
)
def test_a_pattern_that_leaves_the_arguments_of_a_writing_program_open_is_warned_of(pattern, programs):
    told = warnings(ShellPolicy(mode="allowlist", use_shell=False, allowlist_patterns=(pattern,)))
    assert [f"an allowlist with {programs} " in sentence for sentence in told] == [True]


RULES = (r"^git (status|log|diff)( [a-z./]+)*$", r"^(echo|ls|cat)(\s|$)")
strict = ShellPolicy(mode="allowlist", use_shell=False, allowlist_patterns=RULES)


@pytest.mark.parametrize(
    "attack",
    [
        "find . -delete",
        "find . -exec touch {} +",
        "git -c alias.z='!touch x' z",
        "git -c core.pager='touch x' log",
        "sed -n '1e touch x' f",
        "sed 'w out' f",
        "awk 'BEGIN { system(\"touch x\") }'",
        'python -c \'open("x", "w")\'',
        "perl -e 'unlink \"x\"'",
    ],
)
def test_a_program_that_runs_its_arguments_is_warned_of_or_refused(attack):
    name = attack.split()[0]
    if isinstance(judge(allowlist, attack), Run):
        assert name in warnings(allowlist)[1]
    refusal(strict, attack)
    assert warnings(strict) == ()


@pytest.mark.parametrize(
    "command",
    [
        "env a " * 10_000,
        "x;" * 30_000,
        "echo " + "a " * 30_000,
        "sh -c " * 10_000,
        "find " + " ".join(map(str, range(10_000))),
        "".join(map(chr, range(33, 20_000))),
        "A=$b " * 13_000,
    ],
)
def test_a_long_command_is_judged_in_time_that_grows_no_faster_than_it(command):
    # With a reading for every word and a search that goes back, each of these would take minutes.
    policy = ShellPolicy(blocklist_patterns=(BLOCKED, r".*(\brm\b.*)+!$", r"(a+)+b"))
    assert isinstance(judge(policy, command), Run | Refused)


def test_what_hides_behind_very_many_words_is_found_or_the_command_is_refused():
    refusal(blocklist, "env " * 5_000 + "rm")
    refusal(blocklist, "env " + "A=1 " * 9_000 + "rm x")
    refusal(blocklist, "$(" * 40 + "rm x" + ")" * 40)
    refusal(blocklist, "sudo " * 5 + "rm x")
    refusal(blocklist, "echo a; " * 5_000 + "rm")
    assert "characters" in refusal(blocklist, "echo " + "a" * 100_000)


SHELL = shutil.which("sh")
special = st.sampled_from("\"'\\$`;&|<>(){}[]*?~!#=^%-+,.:/@ \t\n")
commands = st.lists(st.one_of(special, st.sampled_from(["a", "B", "1", "é", "echo", "IFS", "rm"])), max_size=14).map(
    "".join
)


@settings(max_examples=120, deadline=None)
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


SPELLINGS = (
    "rm x",
    "r''m x",
    r"r\m x",
    '"rm" x',
    "'r'm x",
    "/bin/rm x",
    "$'rm' x",
    r"$'\x72m' x",
    "rm${IFS}x",
    "/bin/r? x",
    "?m x",
)
SIMPLE = (
    "env {}",
    "env -i A=1 {}",
    "timeout -k 1 5 {}",
    "nice -n 3 {}",
    "nohup {}",
    "setsid -f {}",
    "stdbuf -oL {}",
    "time -p {}",
    "xargs -n1 {}",
    "sudo -n {}",
    "exec {}",
    "command {}",
    "> f {}",
    "2>&1 {}",
    "busybox {}",
    "flock /tmp/l {}",
    "find . -exec {} ;",
    "strace -f -e open {}",
    "eval {}",
)
"""Keep one simple command one."""
COMPOUND = (
    "ls; {}",
    "ls && {}",
    "ls || {}",
    "ls & {}",
    "ls | {}",
    "ls\n{}",
    "! {}",
    "( {} )",
    "{{ {}; }}",
    "$({})",
    "echo $({})",
    "cat <({})",
    "if ls; then {}; fi",
    "if {}; then ls; fi",
    "while {}; do ls; done",
    "for i in a; do {}; done",
    "case a in a) {};; esac",
    "f() {{ {}; }}; f",
    "cat <<E\n$({})\nE",
    "sh <<'E'\n{}\nE",
    "{} # and a comment",
    "coproc {}",
)
wrapped = st.sampled_from(SPELLINGS).flatmap(
    lambda spelled: st.tuples(
        st.just(spelled),
        st.lists(st.sampled_from(SIMPLE), max_size=3),
        st.sampled_from(["", "A=1 ", "A='b c' B=$(ls) "]),
        st.lists(
            st.one_of(st.sampled_from(COMPOUND), st.sampled_from(["sh -c", "bash -lc", "eval", "trap", "su -c"])),
            max_size=3,
        ),
    )
)


@settings(max_examples=300, deadline=None)
@given(wrapped)
def test_however_it_is_quoted_and_wrapped_a_blocked_program_is_seen(parts):
    command, simple, prefix, compound = parts
    for template in simple:
        command = template.format(command)
    command = prefix + command
    for template in compound:
        command = template.format(command) if "{}" in template else f"{template} {shlex.quote(command)}"
    refusal(blocklist, command)


PIECES = (
    "rm",
    "rm x",
    "r''m",
    "r\\m",
    '"rm"',
    "echo",
    "cat",
    "sh",
    "sh -c",
    "bash -c",
    "env",
    "eval",
    "xargs",
    "timeout 2",
    "nice",
    "command",
    "exec",
    "X=rm",
    "$X",
    "${X}",
    "${Y:-rm}",
    "x",
    "'",
    '"',
    "\\",
    ";",
    "&",
    "&&",
    "(",
    ")",
    "{ ",
    "; }",
    "$(",
    "`",
    "\n",
    "<",
    ">",
    "<<E\n",
    "\nE\n",
    "<<<",
    "if true; then",
    "fi",
    "while",
    "do",
    "done",
    "case a in a)",
    ";;",
    "esac",
    "[[",
    "]]",
    "((",
    "))",
    "!",
    "#",
    "$'",
    "<(",
    "&>",
    ">&",
    "2>&1",
    "f()",
    "function f",
    "f",
    "$",
    "{",
    "}",
    "*",
    "[",
    "]",
    "=",
    "a=b",
    "-c",
    " ",
    "\t",
    "for i in rm a; do",
    "$i",
    "time",
    "\\\n",
    "-n",
    "trap",
    "0",
    "select",
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from((*PIECES, "|", "||")), max_size=8),
    st.sampled_from(["rm x", ";rm", "|rm", "\nrm x", "$(rm)"]),
)
def test_what_a_real_shell_runs_out_of_scraps_is_refused(scraps, end):
    command = " ".join(scraps) + end
    if isinstance(judge(blocklist, command), Refused):
        return
    for shell in filter(None, map(shutil.which, ("sh", "bash"))):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "bin", "rm")
            program.parent.mkdir()
            program.write_text(f"#!/bin/sh\n: > {folder}/ran\n")
            program.chmod(0o700)
            Path(folder, "here").mkdir()
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    [shell, "-c", command],
                    cwd=f"{folder}/here",
                    env={"PATH": f"{program.parent}:/usr/bin:/bin"},
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    start_new_session=True,
                    timeout=5,
                )
            assert not Path(folder, "ran").exists(), f"{shell} runs it"
