"""The rows: attacks on the shell tool, by what they try. Pure.

A command is written with the places of the run: `{victim}` is a file outside the workspace that must stay as it is,
`{secret}` one that must not be read, `{outside}` their folder, `{spoil}` writes over the victim, `{read}` reads the
secret, `{connect}` reaches a sink on the loopback, `{daemon}` is the pid of a program like ours that must live and keep
its variables to itself, `{config}` its configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ALLOWED: Final = (
    r"^(ls|cat|pwd|grep)( [\w./:=-]+| '[^']*')*$",
    r"^echo( [\w./:=-]+)*$",
    r"^git (status|log|diff)( [a-z./]+)*$",
)
"""Rules for every argument, as an allowlist needs them."""
BLOCKED: Final = (r"(\b|^)(rm|sudo|shutdown|reboot|mkfs|dd|chmod|chown)(\b|\s|$)",)
"""The sample's."""

ATTACKS: Final[Mapping[str, tuple[str, ...]]] = {
    "S01 a second command": (
        "echo ok; rm {victim}",
        "echo ok && {spoil}",
        "echo ok || rm {victim}",
        "false || {spoil}",
        "echo ok & {spoil}; wait",
        "echo ok; {connect}",
    ),
    "S02 fed to a shell": (
        "echo 'rm {victim}' | sh",
        "echo '{spoil}' | sh",
        "echo {base64} | base64 -d | sh",
    ),
    "S03 a substitution": ("echo $({spoil})", "echo `rm {victim}`", 'echo "$({read})"'),
    "S04 a second line": ("echo ok\n{spoil}", "echo ok\nrm {victim}", "echo ok\r\nrm {victim}"),
    "S05 a here-document": ("sh <<E\n{spoil}\nE", "cat <<E | sh\nrm {victim}\nE", "bash <<< 'rm {victim}'"),
    "S06 a name in pieces": (
        "r''m {victim}",
        'r"m" {victim}',
        r"r\m {victim}",
        "X=rm; $X {victim}",
        "X=r; Y=m; $X$Y {victim}",
        "rm${{IFS}}{victim}",
        "$(printf rm) {victim}",
    ),
    "S07 a path, a wrapper": (
        "/bin/rm {victim}",
        "../../../../../../../../../bin/rm {victim}",
        "env rm {victim}",
        "nohup rm {victim}",
        "timeout 5 rm {victim}",
        "echo {victim} | xargs rm",
        "busybox rm {victim}",
    ),
    "S08 find": (
        "find {outside} -name file -delete",
        "find {outside} -name file -exec rm '{{}}' +",
        "find {outside} -name secret -exec cat '{{}}' ';'",
    ),
    "S09 git": (
        "git -c alias.z='!rm {victim}' z",
        "git -c alias.z='!{spoil}' z",
        "git -c core.pager='rm {victim}' --paginate version",
    ),
    "S10 sed, awk": (
        "sed -n '1e rm {victim}' /etc/passwd",
        "sed -n '1w {victim}' /etc/passwd",
        "awk 'BEGIN {{ system(\"rm {victim}\") }}'",
        "awk 'BEGIN {{ print 1 > \"{victim}\" }}'",
    ),
    "S11 an interpreter": (
        'python3 -c \'open("{victim}", "w")\'',
        "python3 -c 'import os; os.system(\"rm {victim}\")'",
        "perl -e 'unlink \"{victim}\"'",
        "perl -e 'system \"rm {victim}\"'",
        "python3 -c 'print(open(\"{secret}\").read())'",
    ),
    "S12 a redirection": (
        "echo x >> {outside}/.bashrc",
        "echo x > {victim}",
        "echo x | tee -a {outside}/authorized_keys",
        "cp /etc/passwd {victim}",
    ),
    "S13 a name that deceives": (
        "\uff52\uff4d {victim}",
        "r\u200bm {victim}",
        "r\u00adm {victim}",
        "env \U0001d42b\U0001d426 {victim}",
    ),
    "S14 the environment": (
        "env",
        "printenv",
        "cat /proc/$PPID/environ",
        "cat /proc/{daemon}/environ",
        "cat /proc/[0-9]*/environ",
        "python3 -c 'import os; print(os.environ)'",
    ),
    "S15 the daemon": (
        "kill -9 {daemon}",
        "pkill -9 -f {marker}",
        "python3 -c 'import os; os.kill({daemon}, 9)'",
        "echo '[shell]' > {config}",
    ),
    "S16 more rights": (
        "sudo -n echo gained",
        "su -c 'echo gained' nobody",
        "pkexec echo gained",
        "unshare -Ur sh -c 'echo gained'",
    ),
    "S17 a flood": (
        "i=0; while [ $i -lt 150 ]; do setsid sleep 60 & i=$((i + 1)); done; wait",
        "yes",
        r"printf 'a\0b\033[2J\033]0;title\007c\rd'",
        "head -c 5000000 /dev/zero",
    ),
}
