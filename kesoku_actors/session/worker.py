"""The worker: one session's actor. It feeds the turn machine and performs its effects; it decides nothing.

Everything that happens to it becomes an event in one queue: what its latch heard, what tools say, what its own
tasks (inference, commit, timer) come back with. No effect is awaited by the loop. At its end there is no
checkpoint between the last look at the queue and the latch and the detaching of both (B3).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import trio

from kesoku_actors.actors import Cell
from kesoku_actors.errors import NotFound
from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.brain import Brain, line_of
from kesoku_actors.session.hands import Hands, WorkerParts
from kesoku_actors.session.inlet import Inlet
from kesoku_actors.session.replay import Recorded
from kesoku_actors.session.turn import begin, step
from kesoku_actors.store import Registered, RegisterWorker, WorkerKey
from kesoku_actors.store.again import until_answered
from kesoku_actors.values import frozen


@frozen(kw_only=True)
class WorkerEnd:
    """How a worker ended: `clean` as the machine said, `again` when something came at the last moment."""

    clean: bool
    again: bool


async def worker(cell: Cell[None], *, key: WorkerKey, parts: WorkerParts, ended: Callable[[WorkerEnd], None]) -> None:
    """Work on one session until nothing is left that can become a turn, then call `ended` and return."""
    inlet, kept = Inlet(look_again=partial(parts.tools.look_again, key.session_id)), False
    parts.gateway.latches.attach(key.session_id, inlet)
    parts.tools.attach(key.session_id, inlet.tool)
    try:
        registered = await _registered(key, parts)
        cell.started()
        if registered is None:
            ended(WorkerEnd(clean=True, again=False))
            return
        history = await parts.histories.take(parts.gateway, key.session_id, is_new=not registered.has_history)
        brains = line_of(parts.brain_for(registered.channel), parts.failover)
        async with trio.open_nursery() as nursery:
            hands = Hands(
                key=key,
                parts=parts,
                inlet=inlet,
                nursery=nursery,
                channel=registered.channel,
                brains=brains,
                history=history,
            )
            # The machine gives a turn back only when it is known which of its calls have started (C7).
            cell.on_stop = partial(parts.tools.hold, key.session_id, partial(inlet.put, v.ShutdownRequested()))
            if cell.stopping.is_set():
                cell.on_stop()
            state = begin(key, parts.limits)
            due: v.Event | None = _resumed(registered, brains, parts)
            del registered  # as the store had it then; the worker may be here for long
            clean: bool | None = None
            try:
                while clean is None:
                    with inlet.alarm:
                        while clean is None:
                            event, due = due or await inlet.next(), None
                            state, effects = step(state, event)
                            if parts.record is not None:
                                parts.record(Recorded(key=key, event=event, effects=effects))
                            hands.tell(event)
                            for effect in effects:
                                if isinstance(effect, v.Finish):
                                    clean = effect.clean
                                else:
                                    hands.perform(effect)
                    if clean is None:
                        due = inlet.rang()
            finally:
                hands.let_go()
            parts.gateway.latches.detach(key.session_id, inlet)
            parts.tools.detach(key.session_id)
            if clean:
                parts.histories.leave(key.session_id, history)
                kept = True
            ended(WorkerEnd(clean=clean, again=bool(inlet.events)))
            if nursery.child_tasks:
                nursery.cancel_scope.cancel()
    finally:
        parts.gateway.latches.detach(key.session_id, inlet)
        parts.tools.detach(key.session_id)
        if not kept:
            parts.histories.forget(key.session_id)


async def _registered(key: WorkerKey, parts: WorkerParts) -> Registered | None:
    """Register the worker; none where its session was cleared while it was on its way (M7)."""
    register = partial(parts.gateway.store.register, RegisterWorker(key=key))
    try:
        return await until_answered(register, parts.log, "register")
    except NotFound:
        return None


def _resumed(registered: Registered, brains: tuple[Brain, ...], parts: WorkerParts) -> v.Resumed:
    began = registered.returned_began
    stale = began is not None and parts.world.clock.wall() - began > parts.resume_within_s
    return v.Resumed(registered, stale, tuple(brain.label for brain in brains))
