"""Names of platforms, and where a skill runs. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_NAMES: Final[Mapping[str, str]] = {
    "darwin": "macos",
    "mac": "macos",
    "mac os": "macos",
    "mac os x": "macos",
    "os x": "macos",
    "osx": "macos",
    "gnu/linux": "linux",
    "linux2": "linux",
    "cygwin": "windows",
    "nt": "windows",
    "win": "windows",
    "win32": "windows",
    "win64": "windows",
}
"""What else a platform is called; a name that is not here stands for itself."""


def platform(name: str) -> str:
    """Return the one name of a platform: `linux`, `macos`, `windows`, or what it is called, in small letters."""
    plain = name.strip().casefold()
    return _NAMES.get(plain, plain)


def host_platform(sys_platform: str) -> str:
    """Return the platform of a `sys.platform`, which may end in a version: `freebsd14` is `freebsd`."""
    known = platform(sys_platform)
    return known if known != sys_platform else re.sub(r"[0-9.]+$", "", sys_platform)


def runs_on(platforms: tuple[str, ...] | None, host: str) -> bool:
    """Return whether a skill is for `host`: `None` is for all, and an empty list for none."""
    return platforms is None or host in platforms
