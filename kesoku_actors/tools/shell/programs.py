"""Programs that run other programs, and where these stand among their arguments. Pure."""

from __future__ import annotations

import re
from typing import Final

_WRAPPERS: Final = (
    "ash bash bsh builtin busybox bwrap capsh catchsegv choom chpst chronic chroot chrt command coresched dash "
    "dbus-run-session doas dumb-init eatmydata entr env eval exec fakeroot firejail flock gosu hyperfine i386 "
    "i486 i586 i686 ionice ksh ld.so linux32 linux64 ltrace mksh nice nocache nohup nsenter numactl parallel perf "
    "pipesz pkexec prlimit proot rlwrap runcon runuser script sem setarch setpriv setsid setuidgid sg sh "
    "softlimit ssh sshpass start-stop-daemon stdbuf strace su su-exec sudo systemd-inhibit systemd-run taskset "
    "tcsh time timeout tini tmux torsocks toybox trap tsocks uclampset uname26 unbuffer unshare valgrind watch "
    "x86_64 xargs xvfb-run zsh"
)
WRAPPERS: Final = frozenset(_WRAPPERS.split())
"""Programs that run what their arguments name; which of the arguments, only they know."""
VALUE: Final = re.compile(r"-[^=]*=")
"""Where the value of a wrapper's long option begins."""
_EDITOR: Final = re.compile(r".*!")
_EXEC: Final = re.compile(r"-(?:exec|execdir|ok|okdir)$|-[xX]$|--exec(?:-batch)?(?:=|$)")
_RUN: Final = re.compile(r"run$")
MARKS: Final = {
    "find": _EXEC,
    "fd": _EXEC,
    "fdfind": _EXEC,
    "git": re.compile(r"[\w-]+\.[\w.-]+=!?|!|(?:foreach|-x|--exec|--extcmd)$|--(?:exec|extcmd|upload-pack)="),
    "gdb": re.compile(r".*!|(?:shell|pipe|--args)$"),
    "sed": re.compile(r"(?:[^-].*[^A-Za-z-]|[^A-Za-z-])?e$"),
    "split": re.compile(r"--filter(?:=|$)"),
    "sort": re.compile(r"--compress-program(?:=|$)"),
    "tar": re.compile(
        r".*exec=|--(?:to-command|use-compress-program|rsh-command|info-script|new-volume-script)(?:=|$)|-[IF]$"
    ),
    "rsync": re.compile(r"-\w*e$|--(?:rsh|rsync-path)(?:=|$)"),
    "man": re.compile(r"-P$|--pager(?:=|$)"),
    **dict.fromkeys(("vi", "vim", "view", "nvim", "ex", "ed", "less"), _EDITOR),
    **dict.fromkeys(("uv", "poetry", "pipx", "rustup", "conda"), _RUN),
}
"""Programs that run what follows a mark among their arguments: in the rest of the marked word, or in the next one."""
DOES_THE_SAME: Final = {("find", "-delete"): "rm"}
"""Arguments with which a program does what another one is for."""
LOADER: Final = re.compile(r"ld(?:-[\w.-]+)?\.so(?:\.\d+)?")
"""The loader of programs, under the names it has."""
