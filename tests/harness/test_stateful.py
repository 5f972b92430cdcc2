"""State machines of Hypothesis over a program under control: what a rule can do, and how a failure is told."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable

import pytest
import trio
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from kesoku_actors.harness import stateful
from kesoku_actors.harness.control import Limits
from kesoku_actors.harness.errors import Deadlock, Escape, StepLimit
from kesoku_actors.harness.stateful import StateMachine

from .programs import pause

Machine = Callable[[], RuleBasedStateMachine]


def run(machine: Machine, *, examples: int = 60, steps: int = 8) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        database=None,
        deadline=None,
        derandomize=True,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=chosen)  # type: ignore[arg-type]  # any callable makes one


def told(machine: Machine, **options: int) -> str:
    """Run a machine that fails; return its last failing example."""
    with pytest.raises(Exception) as caught:  # noqa: PT011  # which one, is for the test
        run(machine, **{"examples": 400, **options})
    return "\n".join(getattr(caught.value, "__notes__", ()))


def documented() -> type[StateMachine]:
    """Return the machine of the documentation."""
    found: dict[str, object] = {}
    lines = (stateful.__doc__ or "").splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("    class Shop"))
    last = next(number for number, line in enumerate(lines) if "TestShop" in line)
    exec(textwrap.dedent("\n".join(lines[first : last + 1])), {**globals()}, found)
    shop = found["Shop"]
    assert isinstance(shop, type)
    assert issubclass(shop, StateMachine)
    return shop


def test_the_machine_of_the_documentation_fails_in_few_rules() -> None:
    said = told(documented(), examples=60, steps=5)
    assert said.count("state.comes(") == 2
    assert "state.all_have_gone()" in said


class Counter(StateMachine):
    """Adds up; two may read the same sum, if the first is held behind what it read."""

    lock_it = False

    def __init__(self) -> None:
        super().__init__()
        self.total = self.expected = 0
        self.lock = trio.Lock()

    async def add(self, amount: int) -> None:
        if self.lock_it:
            await self.lock.acquire()
        seen = self.total
        await pause()
        self.total = seen + amount
        if self.lock_it:
            self.lock.release()

    async def later(self, amount: int) -> None:
        await pause(6)
        await self.add(amount)

    @rule(amount=st.integers(1, 9))
    def adds_at_once_and_later(self, amount: int) -> None:
        self.start_soon(self.add, amount)
        self.start_soon(self.later, amount)
        self.expected += 2 * amount
        self.settle()

    @invariant()
    def nothing_is_lost(self) -> None:
        assert self.total == self.expected, "an amount was lost"


class LockedCounter(Counter):
    lock_it = True


def test_a_failure_tells_its_rules_and_whom_to_hold() -> None:
    said = told(Counter, examples=200, steps=4)
    assert said.count("state.adds_at_once_and_later(amount=1)") in (1, 2)
    assert "# hold `main/" in said
    assert said.count("# hold ") == 1


def test_a_machine_whose_program_is_right_passes() -> None:
    run(LockedCounter)


class Turns(StateMachine):
    """Two tasks that take turns, unless one goes on by itself."""

    async def start(self) -> None:
        self.order: list[int] = []

    async def goes(self, number: int) -> None:
        for _ in range(2):
            self.order.append(number)
            await pause()

    @rule()
    def both_go(self) -> None:
        self.order.clear()
        for number in (1, 2):
            self.start_soon(self.goes, number)
        self.settle()
        assert self.order != [1, 1, 2, 2], "the first was through before the second began"


def test_a_failure_tells_when_the_order_is_the_other_one() -> None:
    assert "# the task that ran last goes on until it waits\nstate.both_go()" in told(Turns, steps=2)


class Doors(StateMachine):
    """An actor that hands out numbers, and rules that use what it handed out."""

    numbers = Bundle("numbers")

    async def start(self) -> None:
        self.asks, self.asked = trio.open_memory_channel[trio.MemorySendChannel[int]](0)
        self.given: list[int] = []
        self.start_soon(self.live, name="giver")

    async def live(self) -> None:
        async for reply in self.asked:
            self.given.append(len(self.given))
            await reply.send(self.given[-1])

    async def ask(self) -> int:
        sender, receiver = trio.open_memory_channel[int](1)
        await self.asks.send(sender)
        return await receiver.receive()

    @rule(target=numbers)
    def asks_for_one(self) -> int:
        return self.do(self.ask)

    @precondition(lambda self: len(getattr(self, "given", ())) > 1)
    @rule(one=numbers, other=numbers)
    def every_number_was_given(self, one: int, other: int) -> None:
        assert {one, other} <= set(self.given)


def test_rules_get_what_the_program_returns_as_bundles_and_preconditions_see_it() -> None:
    run(Doors)


class Once(StateMachine):
    """A machine that does one thing."""

    cleaned_up = 0

    def __init__(self, thing: Callable[[Once], object]) -> None:
        super().__init__()
        self.thing = thing

    @rule()
    def does_it(self) -> None:
        self.thing(self)


def once(thing: Callable[[Once], object], *, steps: int = 1) -> None:
    run(lambda: Once(thing), examples=3, steps=steps)


def test_what_a_function_raises_is_raised_in_the_rule_and_the_program_lives_on() -> None:
    async def fails() -> None:
        await pause()
        raise KeyError("it")

    def thing(machine: Once) -> None:
        for _ in range(2):
            with pytest.raises(KeyError, match="it"):
                machine.do(fails)

    once(thing, steps=3)


def test_what_a_task_raises_ends_the_machine_where_it_goes_on() -> None:
    async def fails() -> None:
        raise KeyError("it")

    def thing(machine: Once) -> None:
        machine.start_soon(fails)
        machine.settle()

    with pytest.raises(KeyError, match="it"):
        once(thing)


def test_what_can_never_end_is_a_deadlock_with_its_line() -> None:
    async def waits_for_ever() -> None:
        await trio.Event().wait()

    with pytest.raises(Deadlock, match=r"main/waits_for_ever at test_stateful.py:\d+ in waits_for_ever"):
        once(lambda machine: machine.do(waits_for_ever))


def test_what_never_rests_ends_at_the_step_limit() -> None:
    async def polls() -> None:
        for number in iter(int, 1):
            await pause(number + 1)

    class Impatient(Once):
        limits = Limits(steps=300)

    def thing(machine: Once) -> None:
        machine.start_soon(polls)
        machine.settle()

    with pytest.raises(StepLimit, match="steps"):
        run(lambda: Impatient(thing), examples=1, steps=1)


def test_time_passes_as_far_as_it_is_let() -> None:
    seen: list[str] = []

    async def sleeps() -> None:
        await trio.sleep(5)
        seen.append("slept")

    def thing(machine: Once) -> None:
        seen.clear()
        machine.start_soon(sleeps)
        machine.start_soon(pause, 8)
        for within_s in (0, 4, 0.5):
            machine.settle(within_s)
            assert seen == []
        machine.settle(1)
        assert seen == ["slept"]

    run(lambda: Once(thing), examples=150, steps=1)


def test_a_rule_may_do_what_the_program_may_not() -> None:
    async def looks_at_the_clock() -> float:
        return time.time()

    def thing(machine: Once) -> None:
        assert time.time() > 0
        machine.settle()
        assert time.time() > 0
        machine.do(looks_at_the_clock)

    with pytest.raises(Escape, match=r"`time.time` is reached at test_stateful.py:\d+ in looks_at_the_clock"):
        once(thing)


def test_a_machine_cleans_up_behind_itself() -> None:
    cleaned: list[str] = []

    async def holds_something() -> None:
        try:
            await trio.sleep_forever()
        finally:
            cleaned.append("cleaned")

    def thing(machine: Once) -> None:
        machine.start_soon(holds_something)
        machine.settle()
        assert cleaned == []

    run(lambda: Once(thing), examples=1, steps=1)
    assert cleaned == ["cleaned"]


class Stored(StateMachine):
    """A program with a world: rows on its disk, and a fault that the schedule decides about."""

    async def start(self) -> None:
        self.rows, self.failed = 0, 0
        self.database = self.world.disk.connect("it.db")
        self.database.execute("CREATE TABLE t (n)")

    async def insert(self) -> None:
        await pause()
        if self.world.fault("insert fails"):
            self.failed += 1
            return
        self.database.execute("INSERT INTO t VALUES (1)")
        self.rows += 1

    @rule()
    def inserts(self) -> None:
        self.do(self.insert)
        assert self.database.execute("SELECT count(*) FROM t").get == self.rows

    @rule()
    def has_had_no_fault(self) -> None:
        assert not getattr(self, "failed", 0), "a fault happened"


def test_faults_of_the_world_are_drawn_and_shrink() -> None:
    said = told(Stored, examples=600, steps=4)
    assert "a fault happened" not in said
    assert "# let the fault `insert fails` happen the 1st time it may" in said
    assert said.count("state.inserts()") == 1
