"""A network in memory: hosts, connections in virtual time, and what goes wrong with them.

    a, b = world.net.host("a"), world.net.host("b")
    listener = await b.listen(80)           # a `trio.abc.Listener`
    stream = await a.connect("b", 80)       # a `trio.abc.HalfCloseableStream`
    world.net.partition("a", "b")           # nothing arrives any more ...
    world.net.heal()                        # ... until now; nothing was lost
    world.net.reset("a", "b")               # both ends break

A stream keeps the order of its bytes and may deliver them in any pieces; each piece takes between `delay_s` seconds.
Nothing listens: the connection is refused at once; a partition: it waits until the heal.
"""

from __future__ import annotations

import operator
import random
from collections import Counter, deque
from collections.abc import Callable

import trio
from attrs import define, field

from kesoku_actors.harness.clocks import WorldClock
from kesoku_actors.harness.control.footprints import touched
from kesoku_actors.harness.control.privates import ConflictDetector

Pair = frozenset[str]


@define(eq=False)
class _Way:
    """One direction of a connection: pieces on their way, each with the time it arrives."""

    net: Network
    pair: Pair
    label: str
    """What a report calls it."""
    pieces: deque[tuple[float, bytes]] = field(factory=deque)
    is_ended: bool = False
    is_broken: bool = False
    is_abandoned: bool = False
    """Whether its sender closed the connection, and so does not read any more either."""
    last_due: float = 0.0

    def put(self, data: bytes) -> None:
        low, high = self.net.delay_s
        self.last_due = max(self.last_due, trio.current_time() + self.net.rng.uniform(low, high))
        self.pieces.append((self.last_due, data))
        touched(self.label, "sends to")
        self.net.changed()

    async def take(self, most: int | None, check: Callable[[], None]) -> bytes:
        has_waited = False
        while True:
            await trio.lowlevel.checkpoint()
            check()
            if self.is_broken:
                raise trio.BrokenResourceError("the connection was reset")
            is_open = self.pair not in self.net.parted
            if is_open and self.pieces and self.pieces[0][0] <= trio.current_time():
                due, data = self.pieces.popleft()
                if most is not None and len(data) > most:
                    self.pieces.appendleft((due, data[most:]))
                touched(self.label, "receives from")
                return data[:most]
            if is_open and self.is_ended and not self.pieces:
                touched(self.label, "finds the end of", writes=False)
                return b""
            if not has_waited:
                touched(self.label, "has to wait to receive from", writes=False)
                has_waited = True
            with trio.move_on_at(self.pieces[0][0] if is_open and self.pieces else float("inf")):
                await self.net.change()

    def broken(self) -> None:
        touched(self.label, "breaks")
        self.is_broken = True
        self.pieces.clear()
        self.net.changed()


@define(eq=False)
class Connection(trio.abc.HalfCloseableStream):
    """One end of a connection."""

    incoming: _Way
    outgoing: _Way
    is_closed: bool = False
    has_sent_eof: bool = False
    _sending: ConflictDetector = field(factory=lambda: ConflictDetector("another task sends"))
    _receiving: ConflictDetector = field(factory=lambda: ConflictDetector("another task receives"))

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send; returns before it arrives. Raises trio's `BrokenResourceError`, `ClosedResourceError`."""
        with self._sending:
            self._check()
            await trio.lowlevel.checkpoint()
            self._check()
            if self.has_sent_eof:
                raise trio.ClosedResourceError("the end was sent")
            if self.outgoing.is_broken or self.incoming.is_abandoned:
                raise trio.BrokenResourceError("the other end is closed, or the connection broken")
            if data:
                self.outgoing.put(bytes(data))

    async def wait_send_all_might_not_block(self) -> None:
        """Return at once: there is always room."""
        with self._sending:
            self._check()
            await trio.lowlevel.checkpoint()
            self._check()

    async def send_eof(self) -> None:
        """Say that nothing more comes."""
        with self._sending:
            self._check()
            await trio.lowlevel.checkpoint()
            self._check()
            self.has_sent_eof = self.outgoing.is_ended = True
            touched(self.outgoing.label, "closes")
            self.incoming.net.changed()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return what arrives next; empty at the end."""
        if max_bytes is not None and operator.index(max_bytes) < 1:
            raise ValueError("max_bytes must be at least 1")
        with self._receiving:
            self._check()
            return await self.incoming.take(max_bytes, self._check)

    async def aclose(self) -> None:
        """Close this end; the other one reads what is on its way, then the end."""
        self.is_closed = self.outgoing.is_ended = self.outgoing.is_abandoned = True
        touched(self.outgoing.label, "closes")
        self.incoming.net.changed()
        await trio.lowlevel.checkpoint()

    def _check(self) -> None:
        if self.is_closed:
            raise trio.ClosedResourceError("this end is closed")


@define(eq=False)
class Listener(trio.abc.Listener[Connection]):
    """A port that is open."""

    host: Host
    port: int
    waiting: deque[Connection] = field(factory=deque)
    is_closed: bool = False

    @property
    def label(self) -> str:
        """What a report calls it."""
        return f"port {self.port} of {self.host.name}"

    async def accept(self) -> Connection:
        """Return the next connection. Raises trio's `ClosedResourceError`."""
        has_waited = False
        while True:
            await trio.lowlevel.checkpoint()
            if self.is_closed:
                raise trio.ClosedResourceError("the port was closed")
            if self.waiting:
                touched(self.label, "receives from")
                return self.waiting.popleft()
            if not has_waited:
                touched(self.label, "has to wait to receive from", writes=False)
                has_waited = True
            await self.host.net.change()

    async def aclose(self) -> None:
        """Close the port."""
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Close the port, now."""
        self.is_closed = True
        self.host.ports.pop(self.port, None)
        self.host.net.changed()


@define(eq=False)
class Host:
    """A machine of the network, with a clock of its own."""

    name: str
    net: Network
    clock: WorldClock
    ports: dict[int, Listener] = field(factory=dict)

    async def listen(self, port: int) -> Listener:
        """Open a port. Raises `OSError` when it is open already."""
        await trio.lowlevel.checkpoint()
        if port in self.ports:
            raise OSError(98, f"port {port} of {self.name} is open already")
        listener = self.ports[port] = Listener(self, port)
        return listener

    async def connect(self, host: str, port: int) -> Connection:
        """Connect to a port; waits while a partition stands between. Raises `ConnectionRefusedError`."""
        pair = frozenset((self.name, host))
        await trio.sleep(self.net.rng.uniform(*self.net.delay_s))
        while pair in self.net.parted:
            await self.net.change()
        listener = self.net.host(host).ports.get(port)
        if listener is None:
            raise ConnectionRefusedError(111, f"nothing listens at port {port} of {host}")
        label = self.net.label(self.name, host, port)
        there, back = _Way(self.net, pair, label), _Way(self.net, pair, f"{label}, the way back")
        self.net.ways += (there, back)
        touched(listener.label, "sends to")
        listener.waiting.append(Connection(there, back))
        self.net.changed()
        return Connection(back, there)


@define(eq=False)
class Network:
    """The network of a run."""

    clock: WorldClock
    rng: random.Random
    delay_s: tuple[float, float] = (0.0, 0.0)
    """The shortest and the longest way of a piece."""
    hosts: dict[str, Host] = field(factory=dict)
    parted: set[Pair] = field(factory=set)
    ways: list[_Way] = field(factory=list)
    _waiting: trio.lowlevel.ParkingLot = field(factory=trio.lowlevel.ParkingLot)
    _made: Counter[str] = field(factory=Counter)

    def host(self, name: str) -> Host:
        """Return a host; it is made when it is first named."""
        if name not in self.hosts:
            self.hosts[name] = Host(name, self, self.clock.another())
        return self.hosts[name]

    def partition(self, one: str, other: str) -> None:
        """Let nothing arrive between two hosts."""
        self.parted.add(frozenset((one, other)))

    def heal(self) -> None:
        """End every partition."""
        self.parted.clear()
        self.changed()

    def reset(self, one: str, other: str) -> None:
        """Break the connections between two hosts."""
        for way in self.ways:
            if way.pair == {one, other}:
                way.broken()

    def reset_all(self) -> None:
        """Break every connection and close every port: the power went."""
        for way in self.ways:
            way.broken()
        for host in self.hosts.values():
            for listener in list(host.ports.values()):
                listener.close()

    def changed(self) -> None:
        """Wake whoever waits for anything."""
        self._waiting.unpark_all()

    async def change(self) -> None:
        """Wait for the next change."""
        await self._waiting.park()

    def label(self, one: str, other: str, port: int) -> str:
        """Return what a report calls the next connection between these two."""
        label = f"connection {one} to {other}:{port}"
        self._made[label] += 1
        return label if self._made[label] == 1 else f"{label} #{self._made[label]}"
