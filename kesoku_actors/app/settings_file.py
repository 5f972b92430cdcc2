"""Reading one configuration file: bytes, then text, then parsed TOML with the line of every key.

What is not a readable TOML file raises `ConfigError` with file, line and column. A byte order mark and CRLF line
ends are accepted. Only a regular file of bounded size is read: a pipe would hang, a device would never end.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import field

from kesoku_actors.app.settings_lines import Lines, find_lines
from kesoku_actors.errors import ConfigError
from kesoku_actors.values import frozen

LARGEST_FILE: Final = 1 << 20
"""Bytes."""
_PLACE: Final = re.compile(
    r"^(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$", re.S
)
_TWICE: Final = re.compile(r"Cannot declare \('(?P<table>\w+)',\) twice")


@frozen(kw_only=True)
class ConfigFile:
    """A configuration file as it was read."""

    path: Path
    data: Mapping[str, Any] = field(repr=False)
    lines: Lines = field(repr=False)
    readable_by_others: bool = False


def read_config_file(path: Path, program: str) -> ConfigFile:
    """Return what `path` holds; `program` is how its reader calls us. Raises `ConfigError`."""
    content, mode = _read(path, program)
    text = _decode(path, content).replace("\r\n", "\n")
    try:
        data = tomllib.loads(text)
        lines = find_lines(text)
    except RecursionError:
        raise ConfigError(f"{path}: is nested too deeply; a configuration needs three levels") from None
    except ValueError as error:  # a TOMLDecodeError, or a whole number of thousands of digits
        raise ConfigError(_syntax_error(path, text, str(error))) from None
    return ConfigFile(path=path, data=data, lines=lines, readable_by_others=bool(mode & 0o044))


def _read(path: Path, program: str) -> tuple[bytes, int]:
    try:
        # Without O_NONBLOCK the open of a named pipe waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise ConfigError(f"{path}: is not a regular file; name a TOML file")
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path}: does not exist; write one with: {program} init -c {path}") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder; name the TOML file in it") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{str(path)!r}: cannot be read: {reason}") from None
    if len(content) > LARGEST_FILE:
        raise ConfigError(f"{path}: is larger than {LARGEST_FILE:,} bytes; this is no configuration")
    return content, mode


def _decode(path: Path, content: bytes) -> str:
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}:{line}: is not UTF-8 (byte 0x{content[error.start]:02x}); save the file as UTF-8"
        ) from None


def _syntax_error(path: Path, text: str, reason: str) -> str:
    place = _PLACE.match(reason)
    if place is None:
        return f"{path}: is not valid TOML: {reason}"
    if (twice := _TWICE.fullmatch(place["what"])) is not None:
        again = f"{place['what']}: put these keys under the first [{twice['table']}]"
        return f"{path}:{place['line']}:{place['column']}: is not valid TOML: {again}"
    if place["line"] is None:
        return f"{path}:{text.count(chr(10)) + 1}: is not valid TOML: {place['what']} at the end of the file"
    return f"{path}:{place['line']}:{place['column']}: is not valid TOML: {place['what']}"
