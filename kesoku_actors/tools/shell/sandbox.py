"""A command inside bubblewrap, as words to run. Pure (T2).

What is inside: the session's folder, writable, and the read-only folders (skills), all at their own absolute paths; the
system's programs and libraries, read-only; of /etc only what programs cannot do without; a private /tmp, /dev and
/proc. What is not inside: any home, configuration, database, other session, process of ours or other, and (unless it is
asked for) any network. No capability, no way to gain one, no user namespace of its own. It ends with its command, and
both end with whoever started them, so nothing inside survives.

Whether that holds on this machine is found out by `sandbox_trial`, never assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from kesoku_actors.values import frozen

SYSTEM: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Beside /usr; on most systems links into it."""
CONFIGURATION: Final = (
    "alternatives",
    "ca-certificates",
    "group",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "perl",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "protocols",
    "python3",
    "services",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
)
"""What of /etc is inside: names, zones, certificates, where programs and libraries are. No key and no password."""
NETWORK_CONFIGURATION: Final = ("gai.conf", "host.conf", "hosts", "resolv.conf")
"""What else with a network."""
SCRATCH_BYTES: Final = 2 * 2**30
"""What /tmp may hold; it is memory."""
SHARED_BYTES: Final = 512 * 2**20
"""What /dev/shm may hold."""

_ISOLATION: Final = (
    *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"),
    *("--cap-drop", "ALL", "--new-session", "--die-with-parent", "--hostname", "sandbox"),
)
NO_NESTING: Final = "--disable-userns"
"""Known to bubblewrap 0.8 and later, and not to one that is set-user-id."""


@frozen(kw_only=True)
class Sandbox:
    """A sandbox that was tried on this machine and held."""

    program: Path
    """The bubblewrap."""
    network: bool = False
    system: tuple[str, ...]
    """The words that put the system inside, as `system_words` makes them."""
    nesting: bool = False
    """Whether what is inside may make user namespaces, because this bubblewrap cannot forbid it."""

    def enclosed(self, argv: Iterable[str], *, workspace: Path, read_only: Iterable[Path] = ()) -> tuple[str, ...]:
        """Return the words that run `argv` inside; `workspace` and `read_only` are absolute, what is missing is left.

        `workspace` comes last: a session's folder beneath a read-only one is writable all the same.
        """
        return (
            str(self.program),
            *_ISOLATION,
            *(() if self.network else ("--unshare-net",)),
            *(() if self.nesting else (NO_NESTING,)),
            *self.system,
            # The kernel's settings are files of root, and root inside is root to them, whatever else it may not do.
            *("--proc", "/proc", "--ro-bind-try", "/proc/sys", "/proc/sys"),
            *("--dev", "/dev", "--size", str(SHARED_BYTES), "--tmpfs", "/dev/shm"),
            *(
                "--remount-ro",
                "/dev",
                "--size",
                str(SCRATCH_BYTES),
                "--tmpfs",
                "/tmp",
                "--symlink",
                "../tmp",
                "/var/tmp",
            ),
            *(word for folder in read_only for word in ("--ro-bind-try", str(folder), str(folder))),
            *("--bind", str(workspace), str(workspace), "--remount-ro", "/", "--chdir", str(workspace), "--"),
            *argv,
        )


def environment_inside(environment: Mapping[str, str], workspace: Path) -> dict[str, str]:
    """Return `environment` as it is inside, where the only home is the session's folder."""
    return {**environment, "HOME": str(workspace), "TMPDIR": "/tmp"}


def system_words(links: Mapping[str, str], *, network: bool, further: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the words that put the system inside, with `further` names of /etc.

    `links` has the targets of those paths of `SYSTEM` that are links, and of each path of /etc that is one.
    """
    return (
        *("--ro-bind", "/usr", "/usr"),
        *(
            word
            for path in SYSTEM
            for word in (("--symlink", links[path], path) if path in links else ("--ro-bind-try", path, path))
        ),
        *(
            word
            for name in (*CONFIGURATION, *further, *(NETWORK_CONFIGURATION if network else ()))
            for path in (f"/etc/{name}",)
            for word in ("--ro-bind-try", links.get(path, path), path)
        ),
    )
