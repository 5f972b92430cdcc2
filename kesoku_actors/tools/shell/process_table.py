"""The kernel's table of processes, as far as ending a command needs it; without /proc the table is empty.

A pid is reused, a pid with its start time is not: whoever keeps a pid keeps its start time beside it.

A process that left its session, its parent and its environment is still found, by a limit that it inherited and that
Linux does not enforce: the soft limit of resident memory, set to a number that only this call has. Adopting such
processes (as a child subreaper) would tell that they are somebody's, but not whose among commands that run side by
side, nor would it outlive us; the limit tells both. Whoever changes its own limits is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Final

from attrs import field

from kesoku_actors.tools.shell.kernel import MACHINE, Kernel
from kesoku_actors.values import frozen

YOUNG_S: Final = 1.0
"""In less time no machine gives all its pids, which are 32,768 at least."""
CALL_VARIABLE: Final = "KESOKU_CALL"
"""Every command's environment names its call, so that a process that left its group and parent is still found."""
_VARIABLE: Final = f"{CALL_VARIABLE}=".encode()
_LIMIT_BASE: Final = 2**52
"""KiB; far above any memory there is, so nothing that plans by the limit is held back."""
_LIMIT: Final = re.compile(rb"^Max resident set\s+(\d+)", re.M)
_SHELL: Final = ("/bin/sh", "-c")
_SET_LIMIT: Final = "{{ {first}; ulimit -S -m {limit}; :; }} 2>/dev/null; "
"""On one line with what follows, whose lines keep their numbers; the last word leaves no failure behind."""
_NEAR: Final = 64
"""So many pids are tried one by one in less time than it takes to list all there are."""

_ENDED: Final = "ZXx"


@frozen(kw_only=True)
class Process:
    """One living process."""

    pid: int
    parent: int
    group: int
    session: int
    start: float
    """Clock ticks since boot."""
    name: str


def marked(argv: tuple[str, ...], call_id: str, first: str = ":") -> tuple[str, ...]:
    """Return the words that run `argv` in the same process, with the limit by which all it starts is found.

    `first` is what the shell does before, quietly: lines of ours, nothing of the model's. Words that are a shell's are
    run by that shell itself: starting another one first is a quarter of what a short command costs.
    """
    before = _SET_LIMIT.format(first=first, limit=_limit(call_id))
    if argv[:-1] == _SHELL:
        return (*_SHELL, before + argv[-1])
    return (*_SHELL, f'{before}exec "$@"', _SHELL[0], *argv)


def _limit(call_id: str) -> int:
    """The limit of a call, in KiB."""
    return _LIMIT_BASE + int.from_bytes(sha256(call_id.encode()).digest()[:6])


def living_marks(kernel: Kernel = MACHINE) -> frozenset[int | str]:
    """Return the marks of calls that living processes bear, of whatever program; the table is read once."""
    living = (pid for pid in kernel.pids() if pid != kernel.own_pid() and process(pid, kernel) is not None)
    return frozenset(mark for pid in living for mark in _marks(pid, kernel))


def marked_calls(call_ids: Iterable[str], marks: frozenset[int | str]) -> tuple[str, ...]:
    """Return those of `call_ids` whose mark is among these."""
    return tuple(call_id for call_id in call_ids if marks & {call_id, _limit(call_id)})


def _marks(pid: int, kernel: Kernel) -> Iterator[int | str]:
    if (limit := _limit_of(pid, kernel)) >= _LIMIT_BASE:
        yield limit
        return
    for variable in kernel.read(pid, "environ").split(b"\0"):
        if variable.startswith(_VARIABLE):
            yield variable.removeprefix(_VARIABLE).decode("utf-8", "replace")


def process(pid: int, kernel: Kernel = MACHINE) -> Process | None:
    """Return the process `pid`; none when it is gone, a zombie or not to be read."""
    found = _look_up(pid, kernel)
    return found[0] if found is not None and found[1] not in _ENDED else None


def start_time(pid: int, kernel: Kernel = MACHINE) -> float | None:
    """Return when `pid` started, in clock ticks since boot, also of one that has ended and waits to be read (a zombie).

    None when nobody can tell.
    """
    found = _look_up(pid, kernel)
    return found[0].start if found is not None else None


def _look_up(pid: int, kernel: Kernel) -> tuple[Process, str] | None:
    """The process and the letter of its state."""
    if not (stat := kernel.read(pid, "stat").decode("utf-8", "replace")):
        return None
    # The name stands in parentheses and may itself hold any character.
    name = stat[stat.index("(") + 1 : stat.rindex(")")]
    state, parent, group, session, *rest = stat[stat.rindex(")") + 2 :].split()
    numbers = Process(
        pid=pid, parent=int(parent), group=int(group), session=int(session), start=float(rest[15]), name=name
    )
    return numbers, state


@frozen(kw_only=True)
class Family:
    """The processes of one command: its session, what bears one of its marks, and the descendants of these."""

    leader: int | None
    """The command's own pid, which is its session; without one the marks alone tell."""
    call_id: str
    is_young: bool = False
    """Whether the leader started less than `YOUNG_S` ago: then only pids that were given since need a look."""
    kernel: Kernel = field(default=MACHINE, eq=False, repr=False)

    def members(self) -> tuple[Process, ...]:
        """Return those that live, the leader first."""
        kernel = self.kernel
        pids = kernel.pids() if self.leader is None or not self.is_young else _pids_since(self.leader, kernel)
        table = {found.pid: found for pid in pids if (found := process(pid, kernel)) is not None}
        members = {found.pid for found in table.values() if self.leader in (found.session, found.pid)}
        members |= {pid for pid in table if self._marks(pid)}
        members.discard(kernel.own_pid())  # we bear a mark ourselves when a command of another program started us
        members |= _descendants(members, table)
        return tuple(table[member] for member in sorted(members, key=lambda member: (member != self.leader, member)))

    def newest_marked(self) -> Iterator[int]:
        """Yield those that bear the mark, newest first and each as soon as it is found: it may be about to leave."""
        for pid in sorted(self.kernel.pids(), reverse=True):
            if pid != self.kernel.own_pid() and self._marks(pid):
                yield pid

    def _marks(self, pid: int) -> bool:
        limit = _limit_of(pid, self.kernel)
        if limit >= _LIMIT_BASE:
            return limit == _limit(self.call_id)
        return _VARIABLE + self.call_id.encode() in self.kernel.read(pid, "environ").split(b"\0")


def _limit_of(pid: int, kernel: Kernel) -> int:
    """The soft limit of a process's resident memory, in KiB; 0 when it has none or nobody can tell."""
    found = _LIMIT.search(kernel.read(pid, "limits"))
    return int(found[1]) // 1024 if found is not None else 0


def _pids_since(first: int, kernel: Kernel) -> Iterable[int]:
    """The pids that were given since `first` was, where not all have been given since."""
    if (last := kernel.last_pid()) is None:
        return kernel.pids()
    if last < first:  # they began again at the lowest
        return [pid for pid in kernel.pids() if pid >= first or pid <= last]
    if last - first < _NEAR:
        return range(first, last + 1)
    return [pid for pid in kernel.pids() if first <= pid <= last]


def _descendants(roots: set[int], table: Mapping[int, Process]) -> set[int]:
    children: dict[int, list[int]] = {}
    for found in table.values():
        children.setdefault(found.parent, []).append(found.pid)
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in seen:
                seen.add(child)
                waiting.append(child)
    return seen
