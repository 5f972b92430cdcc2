"""A supervision tree does what a small pure model of Erlang's rules says, whatever happens to its actors.

Machine and model share no code: the model knows neither tasks nor time that passes while something starts. It is a
recursion over the tree that notes who goes up and down, and whose mailbox closes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import trio
from attrs import define, field
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from trio.testing import wait_all_tasks_blocked

from kesoku_actors.actors import (
    ActorStopped,
    ChildSpec,
    Restart,
    Strategy,
    SupervisorSpec,
    System,
    SystemFailed,
    run_system,
)
from kesoku_actors.actors.testing import Crash, Echo, Finish, Probe, ProbeCrash
from tests.properties.guest import GuestRun

# --- the model


@define(eq=False)
class Leaf:
    """An actor."""

    name: str
    restart: Restart
    significant: bool
    parent: Branch | None = field(default=None, repr=False)
    alive: bool = False
    broken: bool = False
    """It crashes before it is ready."""
    fate: str = ""
    """What became of the asks that were queued when it ended: the next life answered them, or there was none."""


@define(eq=False)
class Branch:
    """A supervisor."""

    name: str
    restart: Restart
    significant: bool
    strategy: Strategy
    intensity: int
    period: float
    children: list[Leaf | Branch]
    parent: Branch | None = field(default=None, repr=False)
    alive: bool = False
    past: list[float] = field(factory=list)


Node = Leaf | Branch


def leaves_of(node: Node) -> Iterator[Leaf]:
    if isinstance(node, Leaf):
        yield node
    else:
        for child in node.children:
            yield from leaves_of(child)


@define
class Model:
    root: Branch
    now: float = 0.0
    trace: list[tuple[str, str]] = field(factory=list)
    failed: bool = False

    def start(self, node: Node) -> bool:
        """Start a child; False when it ended before it was ready."""
        if isinstance(node, Leaf):
            self.trace.append(("up", node.name))
            node.alive = not node.broken
            if node.broken:
                self.trace.append(("down", node.name))
            else:
                node.fate = node.fate or "answered"
            return node.alive
        node.alive, node.past = True, []
        if all(self.start(child) for child in node.children):
            return True
        self.stop(node)
        return False

    def stop(self, node: Node) -> None:
        """Stop a child for good."""
        if isinstance(node, Leaf):
            if node.alive:
                self.trace.append(("down", node.name))
            node.alive = False
            node.fate = node.fate or "stopped"
        else:
            for child in reversed(node.children):
                self.stop(child)
            node.alive = False

    def pause(self, node: Node) -> None:
        """Stop a child that starts again with its group: an actor's mailbox stays open."""
        fate = node.fate if isinstance(node, Leaf) else ""
        self.stop(node)
        if isinstance(node, Leaf):
            node.fate = fate

    def end(self, leaf: Leaf, *, crashed: bool) -> None:
        """An actor ends by itself."""
        leaf.alive = False
        leaf.fate = ""
        self.trace.append(("down", leaf.name))
        self.ended(leaf, crashed=crashed)

    def ended(self, node: Node, *, crashed: bool) -> None:
        """Do what the rules say about a child that is down."""
        parent = node.parent
        if parent is None:
            self.failed = crashed
            return
        again = node.restart is Restart.PERMANENT or (node.restart is Restart.TRANSIENT and crashed)
        if not again:
            self.stop(node)
            if node.significant:
                self.stop(parent)
                self.ended(parent, crashed=False)
            return
        parent.past = [*(time for time in parent.past if self.now - time < parent.period), self.now]
        if len(parent.past) > parent.intensity:
            self.stop(parent)
            self.ended(parent, crashed=True)
            return
        place = parent.children.index(node)
        first, last = {
            Strategy.ONE_FOR_ONE: (place, place + 1),
            Strategy.ONE_FOR_ALL: (0, len(parent.children)),
            Strategy.REST_FOR_ONE: (place, len(parent.children)),
        }[parent.strategy]
        group = parent.children[first:last]
        for sibling in reversed(group):
            if sibling is not node and sibling.alive:
                (self.stop if sibling.restart is Restart.TEMPORARY else self.pause)(sibling)
        for sibling in group:
            if sibling.restart is not Restart.TEMPORARY and not self.start(sibling):
                self.ended(sibling, crashed=True)
                return


# --- random trees

restarts = st.sampled_from(Restart)


@st.composite
def nodes(draw: st.DrawFn, depth: int, names: Iterator[int]) -> Node:
    restart = draw(restarts)
    significant = restart is not Restart.PERMANENT and draw(st.booleans())
    name = f"n{next(names)}"
    if depth == 0 or draw(st.integers(0, 2)) > 0:
        return Leaf(name, restart, significant)
    return draw(branches(depth, names, name, restart, significant))


@st.composite
def branches(
    draw: st.DrawFn,
    depth: int,
    names: Iterator[int],
    name: str = "root",
    restart: Restart = Restart.PERMANENT,
    significant: bool = False,
) -> Branch:
    branch = Branch(
        name,
        restart,
        significant,
        draw(st.sampled_from(Strategy)),
        draw(st.integers(0, 3)),
        draw(st.sampled_from([5.0, 30.0])),
        [draw(nodes(depth - 1, names)) for _ in range(draw(st.integers(1, 4)))],
    )
    for child in branch.children:
        child.parent = branch
    return branch


trees = st.builds(lambda: iter(range(1000))).flatmap(lambda names: branches(2, names))


class SupervisionMachine(RuleBasedStateMachine):
    """The tree runs on virtual time; after every rule it settles, and model and tree are compared."""

    def __init__(self) -> None:
        super().__init__()
        self.guest = GuestRun()
        self.trace: list[tuple[str, str]] = []
        self.probes: dict[str, Probe] = {}
        self.answers: list[tuple[str, str]] = []
        self.asked = 0
        self.error: SystemFailed | None = None
        self.left = False
        self.system: System | None = None

    @initialize(root=trees, data=st.data())
    def start(self, root: Branch, data: st.DataObject) -> None:
        self.model = Model(root)
        self.leaves = {leaf.name: leaf for leaf in leaves_of(root)}
        self.probes = {name: Probe(name, self.trace) for name in self.leaves}
        if data.draw(st.integers(0, 9)) == 0:
            self.toggle(data.draw(st.sampled_from(list(self.leaves.values()))))
        if not self.model.start(root):
            self.model.failed = True
        self.do(self._start)

    def do(self, job: Any) -> None:
        async def settle() -> None:
            await job()
            await wait_all_tasks_blocked()

        self.guest.do(settle)

    async def _start(self) -> None:
        self.guest.nursery.start_soon(self._live, self.spec_of(self.model.root))

    async def _live(self, spec: SupervisorSpec) -> None:
        try:
            async with run_system(spec) as self.system:
                await trio.sleep_forever()
        except SystemFailed as failure:
            self.error = failure
        finally:
            self.left = True

    def spec_of(self, branch: Branch) -> SupervisorSpec:
        children: list[ChildSpec | SupervisorSpec] = []
        for child in branch.children:
            if isinstance(child, Branch):
                children.append(self.spec_of(child))
            else:
                spec = self.probes[child.name].spec(restart=child.restart, significant=child.significant)
                children.append(spec)
        return SupervisorSpec(
            id=branch.name,
            strategy=branch.strategy,
            intensity=branch.intensity,
            period_s=branch.period,
            children=tuple(children),
            restart=branch.restart,
            significant=branch.significant,
        )

    def toggle(self, leaf: Leaf) -> None:
        leaf.broken = not leaf.broken
        self.probes[leaf.name].fails_to_start = ProbeCrash(leaf.name) if leaf.broken else None

    def alive(self) -> list[Leaf]:
        return [leaf for leaf in self.leaves.values() if leaf.alive]

    @precondition(lambda self: self.alive())
    @rule(data=st.data(), crashed=st.booleans(), askers=st.integers(0, 3))
    def an_actor_ends_with_asks_behind_it(self, data: st.DataObject, crashed: bool, askers: int) -> None:
        leaf = data.draw(st.sampled_from(self.alive()))
        probe = self.probes[leaf.name]
        self.model.end(leaf, crashed=crashed)
        expected = leaf.fate

        async def ask() -> None:
            try:
                await probe.ref.ask(Echo("?"))
            except ActorStopped:
                self.answers.append((expected, "stopped"))
            else:
                self.answers.append((expected, "answered"))

        async def act() -> None:
            probe.ref.tell_nowait(Crash(ProbeCrash(leaf.name)) if crashed else Finish())
            for _ in range(askers):
                self.guest.nursery.start_soon(ask)

        self.asked += askers
        self.do(act)

    @rule(data=st.data())
    def an_actor_breaks_or_is_mended(self, data: st.DataObject) -> None:
        self.toggle(data.draw(st.sampled_from(list(self.leaves.values()))))

    @rule(seconds=st.sampled_from([1.0, 4.0, 10.0, 40.0]))
    def time_passes(self, seconds: float) -> None:
        async def sleep() -> None:
            await trio.sleep(seconds)

        self.model.now += seconds
        self.do(sleep)

    @precondition(lambda self: self.alive())
    @rule(data=st.data())
    def an_actor_that_runs_answers(self, data: st.DataObject) -> None:
        probe = self.probes[data.draw(st.sampled_from(self.alive())).name]

        async def ask() -> None:
            assert await probe.ref.ask(Echo("well")) == "well"

        self.do(ask)

    @precondition(lambda self: self.system is not None and not self.left)
    @rule()
    def the_system_is_asked_to_stop(self) -> None:
        assert self.system is not None
        self.do(self.system.stop)
        if self.model.root.alive:
            self.model.stop(self.model.root)

    @invariant()
    def actors_went_up_and_down_in_the_order_of_the_model(self) -> None:
        if self.probes:
            assert self.trace == self.model.trace

    @invariant()
    def mailboxes_are_closed_exactly_for_those_who_are_gone(self) -> None:
        for leaf in self.leaves.values() if self.probes else ():
            statistics: list[Any] = []

            async def look(name: str = leaf.name, found: list[Any] = statistics) -> None:
                found.append(self.probes[name].mailbox.statistics())

            self.do(look)
            assert statistics[0].closed is not leaf.alive
            assert (statistics[0].waiting, statistics[0].unanswered) == (0, 0)

    @invariant()
    def no_asker_is_stranded_and_queued_asks_meet_the_next_life(self) -> None:
        assert len(self.answers) == self.asked
        assert all(expected == outcome for expected, outcome in self.answers)

    @invariant()
    def system_fails_exactly_when_the_root_gives_up(self) -> None:
        if self.probes:
            assert (self.error is not None) == self.model.failed

    def teardown(self) -> None:
        if self.probes and self.model.root.alive:
            self.model.stop(self.model.root)
        self.guest.close()
        if self.probes:
            assert self.trace == self.model.trace


def test_supervisor_follows_the_rules_whatever_happens_to_its_children() -> None:
    run_state_machine_as_test(
        SupervisionMachine, settings=settings(max_examples=150, stateful_step_count=25, deadline=None)
    )
