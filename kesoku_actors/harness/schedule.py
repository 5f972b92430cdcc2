"""A schedule as it was recorded, and the token that it is written as. Pure.

A schedule is the list of choices of one run: at each decision with more than one way to go on, the index of the lane
that ran among those that were ready, or the number of ready lanes for "time passes". Beside each choice stands how many
ways there were, so that a replay notices at once when a program is no longer the one that was recorded.

A token is `ka1.FINGERPRINT.PAYLOAD`: the fingerprint of what was run, and the schedule, compressed. It holds letters,
digits, `-`, `_` and dots, and can be pasted anywhere.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from typing import Final

from attrs import frozen

from kesoku_actors.harness.errors import HarnessError

VERSION: Final = "ka1"


class BadToken(HarnessError):
    """What should be a token is none."""


@frozen
class Choice:
    """One decision: what was chosen, of how many ways."""

    index: int
    ways: int


@frozen
class Schedule:
    """The choices of a run, in order."""

    choices: tuple[Choice, ...] = ()

    def token(self, fingerprint: str) -> str:
        """Return the schedule as a token."""
        payload = zlib.compress(_packed(self), 9)
        return f"{VERSION}.{fingerprint}.{base64.urlsafe_b64encode(payload).decode().rstrip('=')}"


def fingerprint_of(source: str) -> str:
    """Return the fingerprint of a program's source."""
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def schedule_of(token: str) -> tuple[str, Schedule]:
    """Return the fingerprint and the schedule of a token. Raises `BadToken`."""
    parts = token.strip().split(".")
    if len(parts) != 3:
        raise BadToken(f"a token is {VERSION}.FINGERPRINT.PAYLOAD, not {token[:60]!r}")
    version, fingerprint, payload = parts
    if version != VERSION:
        raise BadToken(f"the token is of version {version!r}; this harness reads {VERSION}")
    try:
        packed = zlib.decompress(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, binascii.Error, zlib.error):
        raise BadToken("the token is damaged; copy it whole") from None
    return fingerprint, _unpacked(packed)


def _packed(schedule: Schedule) -> bytes:
    """Two numbers for each choice, each in as many bytes as it needs."""
    packed = bytearray()
    for choice in schedule.choices:
        for number in (choice.index, choice.ways):
            while number >= 0x80:
                packed.append(number & 0x7F | 0x80)
                number >>= 7
            packed.append(number)
    return bytes(packed)


def _unpacked(packed: bytes) -> Schedule:
    numbers: list[int] = []
    number, shift = 0, 0
    for byte in packed:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            numbers.append(number)
            number, shift = 0, 0
    if shift or len(numbers) % 2:
        raise BadToken("the token is damaged; copy it whole")
    return Schedule(tuple(Choice(index, ways) for index, ways in zip(numbers[::2], numbers[1::2], strict=True)))
