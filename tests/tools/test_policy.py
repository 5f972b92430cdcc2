"""What the shell's policy lets run (T2, S01 to S13, field failures 79 and 80)."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from kesoku_actors.tools.shell import ShellPolicy, warnings
from kesoku_actors.tools.shell.policy import Refused, Run, judge
from kesoku_actors.tools.shell.words import NotPlain, plain_words

ALLOWED = r"^(echo|ls|pwd|cat|git|uv|grep|find|python|sed|awk)(\s|$)"
BLOCKED = r"(\b|^)(rm|sudo|shutdown|reboot|mkfs|dd|chmod|chown)(\b|\s|$)"

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
        "$'rm' x",
        '$"rm" x',
        "rm$IFS-rf$IFS~",
        "X=rm; $X x",
        "X=/bin/rm && $X x",
        "env -S 'rm x'",
        "xargs -I{} rm {} < list",
        "trap 'rm x' EXIT",
        "alias ll='rm x'",
        "true | while read f; do rm $f; done",
        "python -c \"import os; os.system('rm x')\"",
        "echo ok\rrm x",
        "dd if=/dev/zero of=x",
        "chmod 777 ~/.bashrc",
        "sudo -u root id",
        "2>&1 rm x",
        ">&2 rm x",
        ">| out rm x",
        "echo \\>& rm x",
        "> 'a b' rm x",
        "A='a; b' rm x",
        "if(rm x)then :; fi",
        "choom -n 0 -- rm x",
        "setarch -R rm x",
        "linux64 rm x",
        "i386 rm x",
        'sg root "rm x"',
        "start-stop-daemon --start --exec /bin/rm -- x",
        "start-stop-daemon --start --exec=/bin/rm -- x",
        "ld.so /bin/rm x",
        "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
        "/lib/ld-musl-x86_64.so.1 /bin/rm x",
        "runuser -u nobody rm x",
        "chroot / rm x",
        "unshare rm x",
        "nsenter -t 1 rm x",
        "flock lock rm x",
        "watch -n1 -t -g rm x",
        'script -c "rm x" /dev/null',
        'su -c"rm x"',
        "taskset 1 rm x",
        "chrt -b 0 rm x",
        "ionice -c3 rm x",
        "stdbuf -o0 rm x",
        "parallel rm ::: x",
        "pipesz -- rm x",
        "coresched rm x",
        "uclampset rm x",
        "catchsegv rm x",
        "uv run rm x",
        "conda run -n base rm x",
        'split --filter="rm x" f',
        'env split --filter "rm x" f',
        'tar --checkpoint=1 --checkpoint-action=exec="rm x" -cf /dev/null f',
        "sort --compress-program=rm f",
        'rsync -e "rm x" a: b',
        'git -c alias.z="!rm x" z',
        "git -c core.pager='rm x' log",
        "git -c alias.z='!f() { rm x; }; f' z",
        'vi -c ":!rm x" -c q',
        'sed -n "1e rm x" f',
        "sed '/a/e rm x' f",
        "awk 'BEGIN{system(\"rm x\")}'",
        "perl -e 'system \"rm x\"'",
        'python -c \'import subprocess; subprocess.run(["rm", "x"])\'',
        "ruby -e '%x(rm x)'",
        "perl -e 'qx(rm x)'",
        'node -e \'require("child_process").execFileSync("rm", ["x"])\'',
        "python -c 'import os; os.posix_spawnp(\"rm\", [])'",
        'echo "rm x" | sh',
        "$(echo rm) x",
        "true && `printf rm` x",
        "echo 'rm x' | /bin/bash -s; true",
        "printf 'rm x' |& dash",
        "find . -delete",
        "find . -execdir env rm x +",
        "/bin/r? x",
        "/bin/[r]m x",
        "/bin/* x",
        "env /bin/r? x",
        "r?m x && /bin/?m x",
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
        "ls -la",
        "git rm -r --cached f && git commit -m 'rm f'",
        "if git rm f; then echo done; fi",
        "for f in rm dd; do git rm $f; done",
        "find . -name '*.rm'",
        "FORMAT=dd-mm date",
        "curl -sS https://example.org 2>/dev/null | head -n 1",
        "make 2>&1 | tee log",
        "cat > script.sh <<EOF\n# rm is not used here\necho hi\nEOF",
        "echo add chmodded",
        'git commit -m "rm old files"',
        'git commit -m "do not run rm"',
        'echo "please rm it"',
        "python -c \"print('rm')\"",
        "python -c \"print(len('rm'))\"",
        "find . -name rm",
        "find . -name 'r*' -print",
        "command -v sudo",
        "[ -f x ] && ls *",
        "time ls *",
        "echo rm | grep sh",
        "x=$(echo rm); echo $x `echo rm`",
        "echo rm | sh-format x",
        "case $1 in\n  -h) echo help;;\n  *) echo no;;\nesac",
        "sh -c 'ls dir/*'",
        "./*.sh",
        "sed -e 's/a/rm/' f",
        "echo a 'rm x' | /bin/bash -s; true",
        "split --filter='gzip -c' f",
        "tar -cf rm.tar rm",
        "echo failed >&2",
        ">&2 echo rm",
        "git -c user.name=me rm f",
        "vi rm",
    ],
)
def test_a_blocklist_lets_harmless_commands_run_as_they_are(command):
    assert judge(blocklist, command) == Run(argv=("/bin/sh", "-c", command))


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
