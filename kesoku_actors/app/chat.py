"""One prompt, one answer: the whole daemon for one turn of one session, in this process.

It works for its own session and no other (C2), so that several chats and a later daemon share a store one after the
other. What it did not finish is taken up by the next chat of that session.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
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
from kesoku_actors.app.chat_request import ChatRequest
from kesoku_actors.app.chat_sessions import channel_of
from kesoku_actors.app.config_context import use_settings
from kesoku_actors.app.house import House, build_house
from kesoku_actors.app.interrupts import Interrupts
from kesoku_actors.app.models import provider_registry
from kesoku_actors.app.plan import plan_run, tool_warnings
from kesoku_actors.app.settings import Settings
from kesoku_actors.app.weights import fetch_if_needed
from kesoku_actors.clock import World, real_world
from kesoku_actors.errors import KesokuError, UsageError
from kesoku_actors.llm.port import Provider
from kesoku_actors.llm.registry import Choice
from kesoku_actors.log import ERROR, WARNING, Logger, mask_secrets, stream_sink
from kesoku_actors.protocol import Channel, Inbound
from kesoku_actors.store import Posted
from kesoku_actors.tools.shell import hide_environment

EXIT_CODES: Final = {
    ChatState.ANSWERED: 0,
    ChatState.ERROR: 1,
    ChatState.STOPPED: 130,
    ChatState.UNFINISHED: 141,
}


def run_chat(request: ChatRequest) -> int:
    """Answer the prompt of `request` and return the exit code. Raises `KesokuError`."""
    settings, world = request.settings, real_world()
    hide_environment()  # before there are threads: what runs in a shell must not read our keys through /proc (T2)
    log = _logger(settings, world, request.is_tty)
    registry = provider_registry(settings, world, log)
    fetch_if_needed(settings, registry)
    choice = registry.choose(settings.agent.llm)
    _tell_first(settings, choice)
    kind = ViewKind.JSON if request.json else fitting_kind(sys.stdout, os.environ)
    view = make_view(kind, stdout=sys.stdout, stderr=sys.stderr, environ=os.environ, clock=world.clock)
    with use_settings(settings):
        try:
            outcome = trio.run(_chat, request, choice.provider, view, world, log)
        except SystemFailed as failed:
            raise _telling(failed) from failed
    return EXIT_CODES[outcome.state] if outcome is not None else EXIT_CODES[ChatState.STOPPED]


async def _chat(request: ChatRequest, provider: Provider, view: View, world: World, log: Logger) -> ChatOutcome | None:
    """Run the daemon around one turn; none when the person left before its end."""
    channel = await channel_of(request, world)
    plan = plan_run(
        request.settings,
        provider,
        world=world,
        log=log,
        channels=(channel,),
        edges=lambda _gateway: (),
        probe=lambda _point: None,
    )
    house = build_house(plan)
    async with run_system(house.spec, log=partial(_debug, log)):
        if provider.name == "local":
            _warm(provider)
        return await _talk(request, house, channel, view, world)
    raise AssertionError("the system lets every error of the block through")


async def _talk(request: ChatRequest, house: House, channel: Channel, view: View, world: World) -> ChatOutcome | None:
    gateway = house.gateway
    inbound = Inbound(chatbot_id=channel.chatbot_id, channel_id=channel.channel_id, content=request.prompt)
    posted = await gateway.post(evolve(inbound, session_id=request.session))
    if not isinstance(posted, Posted):
        raise UsageError("too many messages wait in this session already; wait for their answers")
    message = posted.message
    with trio.CancelScope() as leave, trio.open_signal_receiver(*_SIGNALS) as signals:
        interrupts = Interrupts(gateway=gateway, session_id=message.session_id, leave=leave)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(interrupts.obey, _presses(signals, leave))
            outcome = await run_terminal(
                gateway=gateway,
                channel=channel,
                session_id=message.session_id,
                message_id=message.id,
                after=message.rev - 1,
                view=view,
                world=world,
                receipt=interrupts.receipt,
            )
            nursery.cancel_scope.cancel()
        return outcome
    return None


_SIGNALS: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


async def _presses(signals: AsyncIterator[int], leave: trio.CancelScope) -> AsyncIterator[int]:
    """Yield each Ctrl-C; any other signal ends the chat in order (C7)."""
    async for number in signals:
        if number == signal.SIGINT:
            yield number
        else:
            leave.cancel()


def _debug(log: Logger, event: str, /, **fields: object) -> None:
    log.debug(event, **fields)


def _warm(provider: Provider) -> None:
    from kesoku_actors.llm.local import LocalModel

    assert isinstance(provider, LocalModel)
    provider.warm()


def _logger(settings: Settings, world: World, is_tty: bool) -> Logger:
    """Log to standard error; on a terminal only errors, which would stand in the middle of the talk."""
    mask = mask_secrets(settings.secrets())
    sink = stream_sink(sys.stderr, mask=mask, environ=os.environ) if sys.stderr is not None else lambda _entry: None
    return Logger(sink=sink, wall=world.clock.wall, level=ERROR if is_tty else WARNING)


def _tell_first(settings: Settings, choice: Choice) -> None:
    if sys.stderr is None:
        return
    warnings = [*settings.warnings, *(tool_warnings(settings) if choice.provider.supports_tools else ())]
    lines = [*(f"warning: {line}" for line in warnings), choice.line]
    sys.stderr.write("".join(f"kesoku-actors: {line}\n" for line in lines))
    sys.stderr.flush()


def _telling(failed: SystemFailed) -> KesokuError:
    """Return the error that says most: one of a known kind among the leaves."""
    known = [leaf for leaf in failed.leaves if isinstance(leaf, KesokuError)]
    return known[0] if known else failed
