"""What a person should know of a policy before it decides anything. Pure.

An allowlist is only as strict as its weakest pattern, so each is tried on calls that no careful pattern lets pass: of
programs that run what their arguments say, and of harmless looking ones with an option that writes or runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kesoku_actors.tools.shell.policy import Mode, ShellPolicy, first_match
from kesoku_actors.tools.shell.programs import WRAPPERS

_INTERPRETERS: Final = (
    "awk bundle cargo crontab docker fd find gawk gdb git go make mawk nix node npm npx perl php pip pip3 python "
    "python3 ruby sed tar uv uvx vi vim"
)
_ANYTHING: Final = (
    *(f"{name} -c anything" for name in (*_INTERPRETERS.split(), *WRAPPERS)),
    "awk 1 anything",
    "find . -delete",
    "find . -exec anything",
    "find . -fprint anything",
    "gawk 1 anything",
    "git archive --output=anything",
    "git diff --no-index --output=anything",
    "git diff --output=anything",
    "git format-patch -o anything",
    "git grep --open-files-in-pager=anything",
    "git log --output=anything",
    "git show --output=anything",
    "sed -i 1d anything",
    "sed 1d anything -i",
    "sed -n 1wanything",
    "sed 1wanything",
    "tar -cf anything anything",
    "tar -xf anything",
)
_WRITES: Final = (
    "cp anything anything",
    "curl -o anything",
    "csplit anything 1",
    "date -s anything",
    "dd of=anything",
    "iconv -o anything",
    "install anything anything",
    "less -o anything",
    "ln anything anything",
    "man -P anything anything",
    "mv anything anything",
    "patch anything",
    "rg --pre anything",
    "rsync -e anything",
    "shuf -o anything",
    "sort --compress-program=anything",
    "sort -o anything",
    "sort anything -o anything",
    "split anything",
    "tee anything",
    "tree -o anything",
    "truncate -s0 anything",
    "uniq anything anything",
    "wget -O anything",
    "xxd anything anything",
    "yq -i anything",
)
"""Calls with which programs do more than look."""


def warnings(policy: ShellPolicy) -> tuple[str, ...]:
    """Return what a person should know of this policy at start, a sentence each."""
    match policy.mode:
        case Mode.ALLOWLIST:
            return tuple(_of_an_allowlist(policy))
        case Mode.BLOCKLIST:
            return tuple(_of_a_blocklist(policy))


def _of_an_allowlist(policy: ShellPolicy) -> Iterator[str]:
    if policy.use_shell:
        yield "shell: use_shell is ignored with an allowlist; the checked words run without a shell"
    if names := _passing(policy, _ANYTHING):
        yield (
            f"shell: an allowlist with {names} allows anything, as these run programs or write files through their "
            "arguments; give rules for every argument, up to an end with $"
        )
    if names := _passing(policy, _WRITES):
        yield f"shell: an allowlist with {names} can write files or run programs; give rules for every argument"
    if not policy.allowlist_patterns:
        yield "shell: the allowlist is empty, so every command is refused"


def _passing(policy: ShellPolicy, calls: tuple[str, ...]) -> str:
    """The programs of those `calls` that an allowlist lets pass, for a sentence."""
    return ", ".join(sorted({call.split()[0] for call in calls if first_match(policy.allowlist_patterns, (call,))}))


def _of_a_blocklist(policy: ShellPolicy) -> Iterator[str]:
    if policy.sandboxed:
        return
    yield (
        "shell: a blocklist is a guard rail, not a boundary: what programs and scripts in files do in turn is not seen"
    )
    if not policy.blocklist_patterns and not policy.forbidden_patterns:
        yield "shell: the blocklist is empty, so no command is refused"
