"""Programs that run other programs, and where these stand among their arguments. Pure tables.

A wrapper's own options are listed by what they take, so that the program behind them is the program and nothing else
is: `timeout -k 5 10 grep rm f` runs `grep`. Where an option is not listed, both readings count.
"""

from __future__ import annotations

import re
from typing import Final

from kesoku_actors.values import frozen


@frozen(kw_only=True)
class Wrapper:
    """How a program finds the command among its arguments."""

    flags: str = ""
    """Letters of options that take nothing."""
    valued: str = ""
    """Letters of options that take a value, attached or as the next word."""
    long: frozenset[str] = frozenset()
    """Long options whose value may be the next word."""
    skip: int = 0
    """How many words stand before the command."""
    assigns: bool = False
    """Whether assignments may stand there too."""
    script: str = ""
    """The letter of an option whose value a shell reads; a long one is `--command`."""
    open_ended: bool = False
    """Whether not all of its options are listed."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PLAIN: Final = Wrapper()
_OPEN: Final = Wrapper(open_ended=True)
_OTHERS: Final = (
    "bwrap capsh catchsegv choom chpst chronic coresched dbus-run-session dumb-init eatmydata entr fakeroot firejail "
    "gosu hyperfine i386 i486 i586 i686 linux32 linux64 ltrace nocache nsenter numactl perf pipesz proot rlwrap runcon "
    "setuidgid softlimit strace su-exec systemd-inhibit systemd-run tini torsocks tsocks uclampset uname26 unbuffer "
    "unshare valgrind x86_64 xvfb-run"
)
WRAPPERS: Final = {
    **dict.fromkeys(_OTHERS.split(), _OPEN),
    "builtin": _PLAIN,
    "busybox": _PLAIN,
    "chroot": Wrapper(skip=1, long=_names("--userspec --groups")),
    "chrt": Wrapper(flags="abdfioRrmpv", valued="TPD", skip=1),
    "command": Wrapper(flags="p"),
    "coproc": _PLAIN,
    "doas": Wrapper(flags="Lns", valued="aCu"),
    "env": Wrapper(flags="iv0", valued="uCa", long=_names("--unset --chdir --argv0"), assigns=True, script="S"),
    "exec": Wrapper(flags="cl", valued="a"),
    "flock": Wrapper(
        flags="sxenouFv", valued="wE", long=_names("--wait --timeout --conflict-exit-code"), skip=1, script="c"
    ),
    "ionice": Wrapper(flags="t", valued="cnpPu", long=_names("--class --classdata")),
    "nice": Wrapper(flags="0123456789", valued="n", long=_names("--adjustment")),
    "nohup": _PLAIN,
    "pkexec": Wrapper(long=_names("--user")),
    "prlimit": Wrapper(valued="p", flags="cdefilmnqrstuvxy"),
    "runuser": Wrapper(
        flags="flmpP", valued="ugGsw", long=_names("--user --group --supp-group --shell --session-command"), script="c"
    ),
    "script": Wrapper(flags="aefqr", valued="BEIOTmot", script="c"),
    "setarch": Wrapper(flags="3BFILRSTXZv", long=_names("--uname-2.6"), open_ended=True),
    "setpriv": Wrapper(
        flags="d",
        long=_names(
            "--ambient-caps --apparmor-profile --bounding-set --egid --euid --groups --inh-caps --landlock-access "
            "--landlock-rule --pdeathsig --regid --reuid --rgid --ruid --securebits --selinux-label"
        ),
    ),
    "setsid": Wrapper(flags="cfw"),
    "sg": Wrapper(skip=1, script="c"),
    "sshpass": Wrapper(flags="eVv", valued="dfpP"),
    "start-stop-daemon": Wrapper(
        flags="bCKSTmoqtv",
        valued="acdgIkNnPpRrsux",
        long=_names("--exec --startas --pidfile --user --group --chuid --name"),
    ),
    "stdbuf": Wrapper(valued="ioe", long=_names("--input --output --error")),
    "su": Wrapper(flags="flmpP", valued="gGsw", script="c"),
    "sudo": Wrapper(
        flags="ABbEeHhiKklNnPSsVv",
        valued="CDghpRrTtUu",
        long=_names("--chdir --chroot --close-from --group --host --prompt --role --type --user"),
        assigns=True,
    ),
    "taskset": Wrapper(flags="ac", valued="p", skip=1),
    "time": Wrapper(flags="apqvV", valued="fo", long=_names("--format --output")),
    "timeout": Wrapper(flags="fpv", valued="ks", long=_names("--kill-after --signal"), skip=1),
    "toybox": _PLAIN,
    "xargs": Wrapper(
        flags="0oprtxeil",
        valued="adEILnPs",
        long=_names("--arg-file --delimiter --max-args --max-chars --max-lines --max-procs --process-slot-var"),
    ),
}
"""By the name of the program."""

SHELLS: Final = _names("ash bash bsh csh dash fish ksh mksh posh rbash sh tcsh yash zsh")
SHELL_OPTIONS_WITH_VALUE: Final = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
JOINING: Final = {
    "eval": Wrapper(),
    "parallel": _OPEN,
    "sem": _OPEN,
    "ssh": Wrapper(flags="46AaCfGgKkMNnqsTtVvXxYy", valued="BbcDEeFIiJLlmOopPQRSWw", skip=1),
    "tmux": Wrapper(skip=1, open_ended=True),
    "trap": Wrapper(),
    "watch": Wrapper(flags="bcCdegprtwx", valued="nqs", long=_names("--interval --equexit --shotsdir")),
}
"""Programs that give their arguments, put together, to a shell."""
CODE: Final = re.compile(
    r"(?:python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|tclsh|gawk|mawk|nawk|awk|Rscript|osascript|expect)[\d.]*"
)
"""Interpreters: their arguments and what they are fed is code of another language."""
SED: Final = _names("sed gsed")
EDITORS: Final = _names("vi vim view nvim ex ed less more man gdb")

_RUN: Final = re.compile(r"run$")
_EXEC: Final = re.compile(r"-(?:exec|execdir|ok|okdir)$|-[xX]$|--exec(?:-batch)?$")
BEHIND: Final = {
    "find": _EXEC,
    "fd": _EXEC,
    "fdfind": _EXEC,
    **dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "hatch", "rustup", "conda", "mamba", "micromamba"), _RUN),
    "npx": re.compile(r"--$"),
    "git": re.compile(r"run$"),
}
"""Programs that run the words behind a mark among their arguments; up to `;` or `+` where it is one of `find`."""
VALUES: Final = {
    "git": re.compile(
        r"(?:foreach|-x|--exec|--extcmd|--upload-pack|--receive-pack|--open-files-in-pager|--pager|--editor|"
        r"--(?:env|tree|index|parent|msg|commit|tag-name)-filter)(?:=|$)"
    ),
    "split": re.compile(r"--filter(?:=|$)"),
    "sort": re.compile(r"--compress-program(?:=|$)"),
    "tar": re.compile(
        r"--checkpoint-action=exec=|--(?:to-command|use-compress-program|rsh-command|info-script|new-volume-script)(?:=|$)"
        r"|-I$|-F$"
    ),
    "rsync": re.compile(r"-\w*e$|--(?:rsh|rsync-path)(?:=|$)"),
    "scp": re.compile(r"-S$"),
    "man": re.compile(r"-P$|--pager(?:=|$)|-H"),
    "fd": re.compile(r"--exec(?:-batch)?="),
    "fdfind": re.compile(r"--exec(?:-batch)?="),
    "rg": re.compile(r"--pre(?:=|$)|--hostname-bin(?:=|$)"),
    "make": re.compile(r"SHELL="),
    "start-stop-daemon": re.compile(r"--(?:exec|startas)(?:=|$)|-[xa]$"),
    "entr": re.compile(r"-s$"),
}
"""Programs that give a value to a shell: what is behind the mark in the same word, or the next word."""
RUNNERS: Final = frozenset({*WRAPPERS, *SHELLS, *JOINING, *BEHIND, *VALUES})
"""All that run what their arguments name; each may be meant by a name with wildcards."""
GIT_KEYS: Final = re.compile(
    r"(?:core\.(?:pager|editor|sshcommand|fsmonitor|gitproxy|askpass|hookspath|alternaterefscommand)|sequence\.editor|"
    r"pager\..+|diff\.external|diff\..+\.(?:command|textconv)|(?:diff|merge)tool\..+\.(?:cmd|path)|merge\..+\.driver|"
    r"filter\..+\.(?:clean|smudge|process)|credential\.(?:.+\.)?helper|gpg\.(?:.+\.)?program|"
    r"uploadpack\.packobjectshook|interactive\.difffilter|sendemail\..*cmd|browser\..+\.cmd|man\..+\.cmd|"
    r"trailer\..+\.(?:command|cmd)|remote\..+\.(?:uploadpack|receivepack))",
    re.I,
)
"""Settings of git whose value is a command; those of an alias begin with `!`."""
COMMAND_VARIABLES: Final = _names(
    "BROWSER EDITOR FCEDIT GIT_ASKPASS GIT_EDITOR GIT_EXTERNAL_DIFF GIT_PAGER GIT_PROXY_COMMAND GIT_SEQUENCE_EDITOR "
    "GIT_SSH GIT_SSH_COMMAND LESSCLOSE LESSOPEN MANPAGER PAGER PROMPT_COMMAND RSYNC_RSH SHELL SSH_ASKPASS SUDO_ASKPASS "
    "SVN_SSH VISUAL"
)
"""Variables whose value some program runs."""
SAME: Final = {("find", "-delete"): "rm"}
"""Arguments with which a program does what another one is for."""
LOADER: Final = re.compile(r"ld(?:-[\w.-]+)?\.so(?:\.\d+)?")
"""The loader of programs, under the names it has."""
