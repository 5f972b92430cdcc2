"""An interactive talk from its first line to its last."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterable, Sequence
from pathlib import Path
from typing import Final, TextIO

import trio

from kesoku_actors.adapters.commands import COMMANDS
from kesoku_actors.adapters.courier import SurfaceGone
from kesoku_actors.adapters.terminal.interactive.completion import Completion
from kesoku_actors.adapters.terminal.interactive.conversation import Conversation
from kesoku_actors.adapters.terminal.interactive.desk import Desk
from kesoku_actors.adapters.terminal.interactive.keyboard import Keyboard
from kesoku_actors.adapters.terminal.interactive.keys import LeavePressed, Pressed
from kesoku_actors.adapters.terminal.interactive.screen import Screen
from kesoku_actors.clock import World
from kesoku_actors.gateway import Gateway
from kesoku_actors.protocol import Channel
from kesoku_actors.values import frozen


@frozen(kw_only=True)
class TalkOptions:
    """What an interactive talk is given."""

    channel: Channel
    screen: Screen
    stdin: TextIO
    history_path: Path | None
    """Where what is typed is kept, for its owner alone; none: nowhere."""
    home: str
    working_folder: str
    """What files are completed in."""


async def run_talk(
    options: TalkOptions, *, gateway: Gateway, desk: Desk, world: World, signals: AsyncIterable[int]
) -> str | None:
    """Talk until the person leaves; return the id of the session talked in last, if there is one, and if somebody is
    left to be told.

    Of `signals`, an interruption is a Ctrl-C and a change of the window's size a reason to paint; any other ends the
    talk in order (C7). A terminal that is gone ends it too: what could not be shown stays pending.
    """
    screen, leaving, is_there = options.screen, trio.CancelScope(), True
    conversation = Conversation(
        gateway=gateway, desk=desk, screen=screen, channel=options.channel, world=world, leaving=leaving
    )
    keyboard = Keyboard(
        conversation=conversation,
        completion=Completion(
            commands=COMMANDS,
            values=conversation.values,
            list_folder=_list_folder,
            home=options.home,
            working_folder=options.working_folder,
        ),
        stdin=options.stdin,
        history_path=options.history_path,
    )
    try:
        with leaving:
            await screen.paint()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(screen.keep_painted)
                nursery.start_soon(conversation.run)
                nursery.start_soon(_obey_signals, signals, keyboard, screen)
                await keyboard.run()
    except* SurfaceGone:
        is_there = False
    finally:
        with trio.CancelScope(shield=True):
            try:
                await screen.close()
            except SurfaceGone:
                is_there = False
    return conversation.session_id if is_there else None


_WINDOW_CHANGED: Final = getattr(signal, "SIGWINCH", None)


async def _obey_signals(signals: AsyncIterable[int], keyboard: Keyboard, screen: Screen) -> None:
    async for number in signals:
        if number == _WINDOW_CHANGED:
            screen.touch()
        else:
            keyboard.hear(Pressed(is_empty=True) if number == signal.SIGINT else LeavePressed())


def _list_folder(path: str) -> Sequence[tuple[str, bool]]:
    try:
        with os.scandir(path) as entries:
            return [(entry.name, entry.is_dir()) for entry in entries]
    except OSError:  # nothing can be completed there, which is all that is asked
        return []
