"""Control of trio's scheduler: one run of a program, in which a strategy decides every step.

How: trio's loop takes what is in `runner.runq` as a batch in each of its passes. `_RunQueue` stands in its place, and
gives each pass exactly one task: the one that the strategy chose. Time is virtual: it jumps to the next deadline when
nothing is runnable, and, when the strategy says so, while work is. There are no file descriptors; what would wait for
one is an `Escape`.

Invariants: a run depends on the program and the choices alone. So tasks that one step made runnable are put in the
order in which they were spawned, as some of trio's own sets are ordered by addresses; and nothing that a strategy
raises crosses trio's loop: it is kept until the program is unwound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator
from functools import cache
from typing import Any, Final

import outcome
import trio
from attrs import define, evolve, field, frozen
from trio._core import _run

from kesoku_actors.harness.allow import Allow
from kesoku_actors.harness.control.canary import TRIED, broken_promise
from kesoku_actors.harness.control.current import Events
from kesoku_actors.harness.control.livelock import Suspicion
from kesoku_actors.harness.control.standins import VirtualClock, without_the_system
from kesoku_actors.harness.control.traps import trapped
from kesoku_actors.harness.control.watchdog import watched
from kesoku_actors.harness.errors import Deadlock, StepLimit, UnsupportedTrio
from kesoku_actors.harness.failures import leaves
from kesoku_actors.harness.faults import Fire
from kesoku_actors.harness.lanes import Lane, short_name
from kesoku_actors.harness.notes import Note
from kesoku_actors.harness.schedule import Choice, Schedule
from kesoku_actors.harness.sites import Site, site_of
from kesoku_actors.harness.strategy import Learns, Strategy

Program = Callable[[], Awaitable[object]]

_MAIN: Final = 1
"""The number of the lane that is the program's main task: trio's own first task starts it first."""
_UNWINDING: Final = 10_000
"""Steps a program may take to unwind."""


@frozen(kw_only=True)
class Limits:
    """Where a run ends, whatever the program does."""

    steps: int = 20_000
    longest_tick_s: float = 10.0
    """Time that may pass at once while work is runnable: an uncapped tick sets off watchdogs that mean hours."""
    stuck_s: float = 10.0
    """Real seconds of the processor that one step may take; infinite: nobody watches, as when a person steps."""


@frozen
class Step:
    """One step of a run, as it is kept for a trace."""

    number: int
    lane: Lane | None
    """None: time passed."""
    lane_step: int
    time: float
    site: Site | None
    """Where the lane was when it was chosen."""
    ready: tuple[Lane, ...]
    touched: tuple[Any, ...]
    fired: tuple[Fire, ...] = ()
    """Faults that happened in this step."""


@define(kw_only=True, eq=False)
class Run:
    """What came of one run."""

    schedule: Schedule
    steps: int
    error: BaseException | None
    """How the program ended; none when it returned."""
    lanes: tuple[Lane, ...]
    trace: tuple[Step, ...]
    """Empty unless it was asked for."""
    seconds: float
    """Of virtual time."""
    notes: tuple[Note, ...] = ()
    asked: Counter[str] = field(factory=Counter)
    """How often each fault was asked for."""
    fired: tuple[Fire, ...] = ()
    """The faults that happened."""
    ended_at: int | None
    """The step at which the harness ended the program, when it did not end by itself."""


@define(eq=False)
class _RunQueue:
    """In place of `runner.runq`: a pass of the loop gets one task."""

    control: _Control
    tasks: list[Any] = field(factory=list)

    def append(self, task: Any) -> None:
        self.tasks.append(task)

    def __bool__(self) -> bool:
        return bool(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Any]:
        if self.tasks and (task := self.control.pick(self.tasks)) is not None:
            yield task

    def clear(self) -> None:
        pass


@define(eq=False)
class _Control(trio.abc.Instrument):
    """One run. `pick` is called for every step; it has to be quick."""

    strategy: Strategy
    limits: Limits
    may_tick: bool
    keeps_trace: bool
    touched: list[Any] = field(factory=list)
    """What the current step touched so far; filled by whoever instruments."""
    runner: Any = None
    clock: VirtualClock = field(init=False)
    suspicion: Suspicion = field(init=False)
    steps: int = 0
    lanes: list[Lane] = field(factory=list)
    trace: list[Step] = field(factory=list)
    choices: list[Choice] = field(factory=list)
    events: Events = field(factory=Events)
    refused: BaseException | None = None
    """What the strategy raised."""
    deadlock: Deadlock | None = None
    last: Lane | None = None
    is_fair: bool = False
    """Whether the strategy is set aside: whoever became runnable first runs, and time passes when nobody can run."""
    _by_task: dict[Any, Lane] = field(factory=dict)
    _ready: list[Lane] = field(factory=list)
    _known: int = 0
    """How many of the ready ones had been ready before the last step."""
    _last_step: int = 0
    _ending: BaseException | None = None
    """What is thrown into every task, once the run is to end."""
    _thrown: set[Lane] = field(factory=set)
    _learns: Learns | None = None
    _sees_all: bool = False

    def __attrs_post_init__(self) -> None:
        self.clock = VirtualClock(self)
        self.suspicion = Suspicion(self.limits.steps)
        self._learns = self.strategy if isinstance(self.strategy, Learns) else None
        self._sees_all = bool(getattr(self.strategy, "sees_all", False))

    @property
    def ended_at(self) -> int | None:
        """The step at which the run was made to end; none when it ended by itself."""
        return None if self._ending is None else self._last_step - _UNWINDING

    def before_run(self) -> None:
        self.runner = _run.GLOBAL_RUN_CONTEXT.runner
        self.runner.runq = _RunQueue(self)

    def task_spawned(self, task: Any) -> None:
        parent = self._by_task.get(task.parent_nursery.parent_task) if task.parent_nursery is not None else None
        name = short_name(task.name)
        is_root = parent is None or parent.parent is None  # trio's own first task stands above the program's
        label = name if parent is None or is_root else parent.child_label(name)
        number = len(self.lanes)
        is_program = number == _MAIN or (parent is not None and parent.is_program)
        lane = Lane(number=number, name=task.name, label=label, parent=parent, task=task, is_program=is_program)
        self._by_task[task] = lane
        self.lanes.append(lane)

    def task_exited(self, task: Any) -> None:
        self._by_task[task].ended = True

    def pick(self, tasks: list[Any]) -> Any:
        """Return the task of the next step and take it out; none when time passes instead."""
        by_task, ready = self._by_task, self._ready
        fresh = [by_task[task] for task in tasks[len(ready) :]]
        if len(fresh) > 1:
            fresh.sort(key=_number)
        ready += fresh
        if len(fresh) > 1:
            tasks[:] = [lane.task for lane in ready]
        if self._learns is not None and self.last is not None:
            self._learns.ran(self.last, self.touched)
        touched, self.touched = self.touched, []
        if self.keeps_trace and self.trace and (touched or self.events.fired_in_step):
            self.trace[-1] = _with_touched(self.trace[-1], touched, self.events.fired_in_step)
            self.events.fired_in_step = []
        count = len(ready)
        may_tick = self.may_tick and not self.is_fair and self._may_tick()
        index = self._choose(ready, count, may_tick)
        self.steps += 1
        if index == count:
            self.clock.now = max(self.clock.now, self.runner.deadlines.next_deadline())
            self._keep(None, ready)
            self.last = None
            return None
        lane = ready[index]
        self._keep(lane, [lane] if self.is_fair or self.suspicion.is_fair else ready)
        if self._ending is not None:
            self._throw_into(lane, self._ending)
        lane.steps += 1
        self.last = lane
        del ready[index]
        del tasks[index]
        return lane.task

    def _choose(self, ready: list[Lane], count: int, may_tick: bool) -> int:
        if self._ending is not None:
            if self.steps >= self._last_step:
                raise self._ending  # the program goes on whatever is thrown into it
            return 0
        suspicion = self.suspicion
        if self.steps >= suspicion.at:
            ending = suspicion.look(self.steps, self.lanes, ready, self.clock, len(self.events.notes))
            if ending is not None:
                self._end(ending)
                return 0
        if self.is_fair or suspicion.is_fair:
            return 0
        ways = count + may_tick
        if ways == 1 and not self._sees_all:
            return 0
        try:
            index = self.strategy.choose(ready, may_tick=may_tick, step=self.steps)
            if not 0 <= index < ways:
                raise IndexError(f"{self.strategy!r} chose {index} of {ways} ways")
        except BaseException as error:  # whatever it is, it must not cross trio's loop
            self.refused = error
            self._end(StepLimit("the strategy gave up"))
            return 0
        if ways > 1:
            self.choices.append(Choice(index, ways))
        return index

    def _may_tick(self) -> bool:
        deadlines = self.runner.deadlines
        return bool(deadlines._active) and deadlines.next_deadline() - self.clock.now <= self.limits.longest_tick_s

    def _keep(self, lane: Lane | None, ready: list[Lane]) -> None:
        if self.keeps_trace:
            site = site_of(lane.task.coro) if lane is not None else None
            lane_step = lane.steps if lane is not None else 0
            self.trace.append(Step(self.steps, lane, lane_step, self.clock.now, site, tuple(ready), ()))

    def _end(self, error: BaseException) -> None:
        """Unwind the program by throwing an error into its main task, then into every task that runs on."""
        self._ending, self._last_step = error, self.steps + _UNWINDING

        def throw() -> None:
            raise error

        main = self.runner.main_task
        if main is not None and main._abort_func is not None:
            self._thrown.add(self._by_task[main])
            main._attempt_abort(throw)

    def _throw_into(self, lane: Lane, error: BaseException) -> None:
        """Let the lane's next step raise, once; its clean-up may take steps."""
        task = lane.task
        may_throw = lane.is_program and lane.steps > 0 and task._next_send_fn == task.coro.send
        if not may_throw or lane in self._thrown:
            return
        self._thrown.add(lane)
        task._next_send = outcome.Error(error)

    def deadlocked(self) -> None:
        """Nothing is runnable, and no time will come."""
        if self.deadlock is None:
            blocked = [lane for lane in self.lanes if not lane.ended and lane.is_program]
            self.deadlock = Deadlock([f"{lane.label} at {site_of(lane.task.coro)}" for lane in blocked])
            self._end(self.deadlock)
        if not self.runner.runq:
            self._wake_all(self._ending or self.deadlock)
        if not self.runner.runq:
            raise self.deadlock  # nobody lets go: trio ends the run as a whole

    def _wake_all(self, error: BaseException) -> None:
        """Throw into tasks that are blocked where no cancellation reaches them, the youngest first."""

        def throw() -> None:
            raise error

        for lane in reversed(self.lanes):
            if not lane.ended and lane.is_program and lane.task._abort_func is not None:
                lane.task._attempt_abort(throw)
                if self.runner.runq:
                    return


def _number(lane: Lane) -> int:
    return lane.number


def _with_touched(step: Step, touched: Collection[Any], fired: Collection[Fire]) -> Step:
    return evolve(step, touched=tuple(touched), fired=tuple(fired))


def execute(
    program: Program,
    strategy: Strategy,
    *,
    limits: Limits | None = None,
    may_tick: bool = True,
    trace: bool = False,
    observe: Callable[[_Control], None] | None = None,
    allow: Allow | None = None,
) -> Run:
    """Run a program once under a strategy that has been told to begin, and return what came of it.

    Raises what the strategy raised, and `UnsupportedTrio`. The program's own exceptions are in the result; so are
    `Stuck` and the first `Escape`, also when the program swallowed them.
    """
    check_trio()
    return _execute(program, strategy, limits or Limits(), may_tick, trace, observe, allow or Allow())


def _execute(
    program: Program,
    strategy: Strategy,
    limits: Limits,
    may_tick: bool,
    trace: bool,
    observe: Callable[[_Control], None] | None,
    allow: Allow,
) -> Run:
    control = _Control(strategy, limits, may_tick, trace)
    if observe is not None:
        observe(control)
    error: BaseException | None = None
    with without_the_system(), watched(control, control.limits.stuck_s) as watch, trapped(allow) as guard:
        try:
            trio.run(program, clock=control.clock, instruments=[control])
        except BaseException as raised:
            error = raised
        if control.trace and control.events.fired_in_step:
            control.trace[-1] = evolve(control.trace[-1], fired=tuple(control.events.fired_in_step))
        for undo in reversed(control.events.undo):
            undo()
        for found in (watch.error, guard.escaped):
            if found is not None and (error is None or type(found) not in {type(leaf) for leaf in leaves(error)}):
                error = found
    if control.refused is not None:
        raise control.refused
    return Run(
        schedule=Schedule(tuple(control.choices)),
        steps=control.steps,
        error=error,
        lanes=tuple(control.lanes),
        trace=tuple(control.trace),
        seconds=control.clock.now,
        notes=tuple(control.events.notes),
        asked=control.events.asked,
        fired=tuple(control.events.fired),
        ended_at=control.ended_at,
    )


def check_trio() -> None:
    """Raise `UnsupportedTrio` unless the installed trio schedules as this module knows it."""
    version = tuple(int(part) for part in trio.__version__.split(".")[:2])
    if not TRIED[0] <= version <= TRIED[1]:
        oldest, newest = (".".join(map(str, one)) for one in TRIED)
        raise UnsupportedTrio(f"this harness knows trio {oldest} to {newest}; installed is {trio.__version__}")
    if (promise := _broken_promise()) is not None:
        raise UnsupportedTrio(f"trio {trio.__version__} does not do as this harness relies on: {promise}")


@cache
def _broken_promise() -> str | None:
    return broken_promise(lambda program, strategy: _execute(program, strategy, Limits(), True, False, None, Allow()))
