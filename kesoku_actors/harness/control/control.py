"""Control of trio's scheduler: one run of a program, in which a strategy decides every step.

How: trio's loop takes what is in `runner.runq` as a batch in each of its passes. `runqueue` stands in its place, and
gives it one task at a time: the one that the strategy chose. Time is virtual: it jumps to the next deadline when
nothing is runnable, and, when the strategy says so, while work is. There are no file descriptors; what would wait for
one is an `Escape`.

Invariants: a run depends on the program and the choices alone. So tasks that one step made runnable are put in the
order in which they were spawned, as some of trio's own sets are ordered by addresses; and nothing that a strategy
raises crosses trio's loop: it is kept until the program is unwound.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from ctypes import py_object, pythonapi
from functools import cache
from typing import Any, Final

import outcome
import trio
from attrs import define, evolve, field

from kesoku_actors.harness.allow import Allow
from kesoku_actors.harness.control.canary import TRIED, broken_promise
from kesoku_actors.harness.control.current import Events
from kesoku_actors.harness.control.footprints import missing_method
from kesoku_actors.harness.control.livelock import Suspicion
from kesoku_actors.harness.control.privates import GLOBAL_RUN_CONTEXT, missing_name, unsupported
from kesoku_actors.harness.control.run import Limits, Program, Run, Step
from kesoku_actors.harness.control.runqueue import Hooks, RunQueue, batches_of_one
from kesoku_actors.harness.control.standins import VirtualClock, without_the_system
from kesoku_actors.harness.control.traps import trapped
from kesoku_actors.harness.control.watchdog import watched
from kesoku_actors.harness.errors import Deadlock, HarnessError, StepLimit
from kesoku_actors.harness.failures import leaves, was_raised
from kesoku_actors.harness.lanes import Lane, short_name
from kesoku_actors.harness.sites import site_of
from kesoku_actors.harness.strategy import Learns, Strategy

_MAIN: Final = 1
"""The number of the lane that is the program's main task: trio's own first task starts it first."""
_UNWINDING: Final = 10_000
"""Steps a program may take to unwind."""
_LONG_HEAP: Final = 1_000
"""With so many deadlines, living or not, they are looked after at each step: there trio clears away the dead ones."""


@define(eq=False)
class Control(trio.abc.Instrument):
    """One run. `pick` is called for every step; it has to be quick."""

    strategy: Strategy
    limits: Limits
    may_tick: bool
    keeps_trace: bool
    touched: list[Any] = field(factory=list)
    """What the current step touched so far; filled by whoever instruments, if it is kept."""
    keeps_touched: bool = False
    runner: Any = None
    clock: VirtualClock = field(init=False)
    suspicion: Suspicion = field(init=False)
    steps: int = 0
    lanes: list[Lane] = field(factory=list)
    trace: list[Step] = field(factory=list)
    choices: list[int] = field(factory=list)
    """Flat, as a run that keeps an object for each step is interrupted by the collection of garbage."""
    events: Events = field(factory=Events)
    refused: BaseException | None = None
    """What the strategy raised, or what keeps the run from being controlled."""
    deadlock: Deadlock | None = None
    last: Lane | None = None
    _is_fair: bool = False
    _aside_at: int = 0
    """Behind how many steps it is looked at whether the strategy still decides."""
    _by_task: dict[Any, Lane] = field(factory=dict)
    _runq: RunQueue = field(init=False)
    _deadlines: Any = field(init=False)
    _ready: list[Lane] = field(factory=list)
    """The lanes of what is in the queue, in the same order, as far as they are known."""
    _last_step: int = 0
    _ending: BaseException | None = None
    """What is thrown into every task, once the run is to end."""
    _thrown: set[Lane] = field(factory=set)
    _learns: Learns | None = None
    _sees_all: bool = False
    _strategy_chooses: Callable[..., int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.clock = VirtualClock(self)
        self.suspicion = Suspicion(self.limits.steps)
        self._learns = self.strategy if isinstance(self.strategy, Learns) else None
        self._sees_all = bool(getattr(self.strategy, "sees_all", False))
        self._strategy_chooses = self.strategy.choose
        self._aside_at = self.suspicion.at
        self.keeps_touched = self.keeps_trace or self._learns is not None

    @property
    def is_fair(self) -> bool:
        """Whether the strategy is set aside: whoever became runnable first runs, time passes when nobody can run."""
        return self._is_fair

    @is_fair.setter
    def is_fair(self, is_fair: bool) -> None:
        self._is_fair, self._aside_at = is_fair, 0

    @property
    def ending(self) -> BaseException | None:
        """What the run was made to end with; none when it ended by itself."""
        return self._ending

    @property
    def ended_at(self) -> int | None:
        """The step at which the run was made to end; none when it ended by itself."""
        return None if self._ending is None else self._last_step - _UNWINDING

    def before_run(self) -> None:
        try:
            self._take_over(GLOBAL_RUN_CONTEXT.runner)
        except AttributeError as missing:  # trio would log it, and go on without us
            self.refused = unsupported(missing)

    def _take_over(self, runner: Any) -> None:
        """Put ourselves in the place of trio's queue."""
        self.runner = runner
        self.runner.instruments = Hooks(self.runner.instruments.data)
        self._deadlines = self.runner.deadlines
        self.runner.runq = self._runq = RunQueue(self.pick, in_pieces=self.runner.is_guest)

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

    def pick(self) -> Any:
        """Choose the task of the next step and take it out of the queue, which is not empty.

        Returns none when time passes and the program goes on in pieces.
        """
        tasks, ready = self._runq, self._ready
        while True:
            may_tick = self._may_tick() if self._deadlines._heap else False
            steps, known, count = self.steps, len(ready), len(tasks)
            if count == known + 1:
                ready.append(self._by_task[tasks[known]])
            elif count > known:
                self._put_in_order(tasks, ready, known)
            if self.keeps_touched:
                self._hand_on_touched()
            ways, index = count + 1 if may_tick else count, 0
            if (steps < self._aside_at or self._asks(ready)) and (ways > 1 or self._sees_all):
                try:
                    index = self._strategy_chooses(ready, may_tick=may_tick, step=steps)
                    if not 0 <= index < ways:
                        raise HarnessError(f"{self.strategy!r} chose {index} of {ways} ways")
                    if ways > 1:
                        choices = self.choices
                        choices.append(index)
                        choices.append(ways)
                except BaseException as error:  # whatever it is, it must not cross trio's loop
                    self.refused, index = error, 0
                    self._end(StepLimit("the strategy gave up"))
            self.steps = steps + 1
            if index < count:
                break
            self._let_time_pass(ready)
            if self.runner.is_guest:
                return None
        self.last = lane = ready[index]
        if self.keeps_trace:
            self._keep(lane, [lane] if self.is_fair or self.suspicion.is_fair else ready)
        if self._ending is not None:
            self._throw_into(lane, self._ending)
        lane.steps += 1
        del ready[index], tasks[index]
        return lane.task

    def _let_time_pass(self, ready: list[Lane]) -> None:
        """Go on to the next deadline, although work is runnable."""
        self.clock.now = max(self.clock.now, self._deadlines.next_deadline())
        if self.keeps_trace:
            self._keep(None, ready)
        self.last = None

    def _put_in_order(self, tasks: deque[Any], ready: list[Lane], known: int) -> None:
        """Take note of tasks that one step made runnable, in the order in which they were spawned."""
        places = range(known, len(tasks))
        ready += sorted([self._by_task[tasks[place]] for place in places], key=_number)
        for place in places:
            tasks[place] = ready[place].task

    def _hand_on_touched(self) -> None:
        """Tell a strategy that learns what the last step touched; keep in the trace that and which faults happened."""
        touched, self.touched = self.touched, []
        if self._learns is not None and self.last is not None:
            self._learns.ran(self.last, touched)
        if self.keeps_trace:
            fired, self.events.fired_in_step = self.events.fired_in_step, []
            if self.trace and (touched or fired):
                self.trace[-1] = evolve(self.trace[-1], touched=tuple(touched), fired=tuple(fired))

    def _keep_for_ever(self) -> None:
        """Never give up the tasks that are left: one that goes on whatever is thrown into it would do so when it is
        thrown away, and nothing could end it there.
        """
        for lane in self.lanes:
            if not lane.ended:
                for kept in (lane.task, lane.task.coro):
                    pythonapi.Py_IncRef(py_object(kept))

    def _asks(self, ready: list[Lane]) -> bool:
        """Tell whether the strategy decides this step, too; not when the program is to end, to rest, or goes round."""
        if self._ending is not None:
            if self.steps >= self._last_step:
                self._keep_for_ever()
                raise self._ending  # the program goes on whatever is thrown into it
            return False
        suspicion = self.suspicion
        if self.steps >= suspicion.at:
            ending = suspicion.look(self.steps, self.lanes, ready, self.clock, len(self.events.notes))
            if ending is not None:
                self._end(ending)
                return False
        if self.is_fair:
            return False
        self._aside_at = suspicion.at
        return not suspicion.is_fair

    def _may_tick(self) -> bool:
        """Let what has come to its deadline be cancelled, and tell whether the next deadline is near enough."""
        deadlines, now = self._deadlines, self.clock.now
        heap = deadlines._heap
        if heap[0][0] <= now or len(heap) > _LONG_HEAP:
            deadlines.expire(now)
        if not self.may_tick or deadlines._active <= 0:
            return False
        coming: float = deadlines.next_deadline()
        return coming <= now + self.limits.longest_tick_s and coming <= self.clock.until

    def _keep(self, lane: Lane | None, ready: list[Lane]) -> None:
        site = site_of(lane.task.coro) if lane is not None else None
        lane_step = lane.steps if lane is not None else 0
        self.trace.append(Step(self.steps, lane, lane_step, self.clock.now, site, tuple(ready), ()))

    def _end(self, error: BaseException) -> None:
        """Unwind the program by throwing an error into its main task, then into every task that runs on."""
        self._ending, self._last_step, self._aside_at = error, self.steps + _UNWINDING, 0

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


def execute(
    program: Program,
    strategy: Strategy,
    *,
    limits: Limits | None = None,
    may_tick: bool = True,
    trace: bool = False,
    observe: Callable[[Control], None] | None = None,
    allow: Allow | None = None,
) -> Run:
    """Run a program once under a strategy that has been told to begin, and return what came of it.

    Raises what the strategy raised, a `KeyboardInterrupt` from outside, and `UnsupportedTrio`. The program's own
    exceptions are in the result; so are `Stuck`, the first `Escape` and what the run was made to end with, also when
    the program swallowed them or raised something else meanwhile: a run that was cut off is never one that passed.
    """
    check_trio()
    return _execute(program, strategy, limits or Limits(), may_tick, trace, observe, allow or Allow())


def _execute(
    program: Program,
    strategy: Strategy,
    limits: Limits,
    may_tick: bool,
    trace: bool,
    observe: Callable[[Control], None] | None,
    allow: Allow,
) -> Run:
    control = Control(strategy, limits, may_tick, trace)
    if observe is not None:
        observe(control)
    error: BaseException | None = None
    with (
        without_the_system(),
        batches_of_one(),
        watched(control, control.limits.stuck_s) as watch,
        trapped(allow) as guard,
    ):
        try:
            trio.run(program, clock=control.clock, instruments=[control])
        except BaseException as raised:
            error = raised
        if control.trace and control.events.fired_in_step:
            control.trace[-1] = evolve(control.trace[-1], fired=tuple(control.events.fired_in_step))
        for undo in reversed(control.events.undo):
            undo()
        for found in (control.ending, watch.error, guard.escaped):
            if found is not None and (error is None or type(found) not in {type(leaf) for leaf in leaves(error)}):
                error = found
    if control.refused is not None:
        raise control.refused
    if error is not None and any(isinstance(end, KeyboardInterrupt) and not was_raised(end) for end in leaves(error)):
        raise error
    return Run(
        choices=tuple(control.choices),
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
        raise unsupported("it may take its batches in another way")
    if (missing := missing_name() or missing_method()) is not None:
        raise unsupported(f"it has no `{missing}`")
    if (promise := _broken_promise()) is not None:
        raise unsupported(f"it does not do as this harness relies on: {promise}")


@cache
def _broken_promise() -> str | None:
    return broken_promise(lambda program, strategy: _execute(program, strategy, Limits(), True, False, None, Allow()))
