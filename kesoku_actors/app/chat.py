"""One prompt, one answer: the whole daemon for one turn of one session, in this process.

It works for its own session and no other (C2), so that several chats and a later daemon share a store one after the
other. What it did not finish is taken up by the next chat of that session.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterable, AsyncIterator
from functools import partial
from typing import Final

import trio
from attrs import evolve

from kesoku_actors.actors import SystemFailed, run_system
from kesoku_actors.adapters.terminal import (
    ChatOutcome,
    ChatState,
    View,
    ViewKind,
    fitting_kind,
    make_view,
    run_terminal,
)
from kesoku_actors.app.attachments import attach, metadata_of
from kesoku_actors.app.chat_request import ChatRequest
from kesoku_actors.app.chat_sessions import talked_in
from kesoku_actors.app.config_context import use_settings
from kesoku_actors.app.house import House, build_house
from kesoku_actors.app.interrupts import Interrupts
from kesoku_actors.app.locations import Unwritable
from kesoku_actors.app.plan import plan_run
from kesoku_actors.app.prelude import Prelude, most_telling, prepare, stderr_log, warm
from kesoku_actors.app.signals import WINDOW_CHANGED, signals_to
from kesoku_actors.clock import real_world
from kesoku_actors.errors import UsageError
from kesoku_actors.protocol import Channel, Inbound
from kesoku_actors.store import Posted

EXIT_CODES: Final = {
    ChatState.ANSWERED: 0,
    ChatState.ERROR: 1,
    ChatState.STOPPED: 130,
    ChatState.UNFINISHED: 141,
}


def run_chat(request: ChatRequest) -> int:
    """Answer the prompt of `request` and return the exit code. Raises `KesokuError`."""
    channel, chosen = trio.run(talked_in, request, real_world())  # a session that is not there needs no model
    prelude = prepare(request.settings, *stderr_log(request.settings, request.is_tty), chosen)
    kind = ViewKind.JSON if request.json else fitting_kind(sys.stdout, os.environ)
    view = make_view(kind, stdout=sys.stdout, stderr=sys.stderr, environ=os.environ, clock=prelude.world.clock)
    with use_settings(request.settings):
        try:
            outcome = trio.run(_chat, request, channel, prelude, view)
        except SystemFailed as failed:
            raise most_telling(failed) from failed
    if isinstance(outcome, int):
        return 128 + outcome  # as shells tell of a signal
    if outcome.gone is not None and not outcome.reader_left:
        raise Unwritable(outcome.gone)
    return EXIT_CODES[outcome.state]


async def _chat(request: ChatRequest, channel: Channel, prelude: Prelude, view: View) -> ChatOutcome | int:
    """Run the daemon around one turn; the number of the signal that ended it when it was left before its end."""
    plan = plan_run(
        request.settings,
        prelude.provider,
        world=prelude.world,
        log=prelude.log,
        channels=(channel,),
        edges=lambda _gateway: (),
        probe=lambda _point: None,
        own_tools=prelude.own_tools,
        spares=prelude.spares,
        can_ask=False,
        shelter=prelude.shelter,
    )
    # The signals are taken when it runs.
    house = build_house(evolve(plan, store=evolve(plan.store, refused=lambda: signals.give_up())))
    system = run_system(house.spec, log=prelude.log_actors)
    with signals_to(system) as signals:
        async with system:
            warm(prelude.provider)
            with signals.heard() as numbers:
                return await _talk(request, house, channel, view, prelude, numbers) or signals.ended_by
    return signals.ended_by  # before it could talk, or cutting it short


async def _talk(
    request: ChatRequest,
    house: House,
    channel: Channel,
    view: View,
    prelude: Prelude,
    signals: AsyncIterable[int],
) -> ChatOutcome | None:
    gateway, files = house.gateway, request.files
    inbound = Inbound(chatbot_id=channel.chatbot_id, channel_id=channel.channel_id, content=request.prompt)
    posted = await gateway.post(evolve(inbound, session_id=request.session, metadata=metadata_of(files)))
    if not isinstance(posted, Posted):
        raise UsageError("too many messages wait in this session already; wait for their answers")
    message = posted.message
    with trio.CancelScope() as leave:
        interrupts = Interrupts(gateway=gateway, session_id=message.session_id, leave=leave, log=prelude.log)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(interrupts.obey, _presses(signals, leave))
            sessions_dir = request.settings.workspace.sessions_dir
            copy = partial(attach, gateway=gateway, sessions_dir=sessions_dir, log=prelude.log)
            nursery.start_soon(copy, message, files)
            outcome = await run_terminal(
                gateway=gateway,
                channel=channel,
                session_id=message.session_id,
                message_id=message.id,
                after=message.rev - 1,
                view=view,
                world=prelude.world,
                receipt=interrupts.receipt,
            )
            nursery.cancel_scope.cancel()
        return outcome
    return None


async def _presses(signals: AsyncIterable[int], leave: trio.CancelScope) -> AsyncIterator[int]:
    """Yield each Ctrl-C; a request to end ends the chat in order (C7)."""
    async for number in signals:
        if number == signal.SIGINT:
            yield number
        elif number != WINDOW_CHANGED:
            leave.cancel()
