"""The editor in its thread, and what it tells as work on the trio thread.

What it tells is heard in order and never holds it up: the state of the input line replaces the one before it, entered
texts are done one after the other, and so are presses of Ctrl-C, which do not wait for a text that takes its time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO, TypeVar, assert_never

import trio
from attrs import field

from kesoku_actors.adapters.terminal.interactive.completion import Completion
from kesoku_actors.adapters.terminal.interactive.conversation import Conversation
from kesoku_actors.adapters.terminal.interactive.input_rows import Typed
from kesoku_actors.adapters.terminal.interactive.keys import (
    Entered,
    FoldPressed,
    LeavePressed,
    NotRemembered,
    Pressed,
    RepaintPressed,
    Resumed,
    SuspendPressed,
    Told,
)
from kesoku_actors.values import define

if TYPE_CHECKING:  # prompt_toolkit takes its time
    from kesoku_actors.adapters.terminal.interactive.editor import Editor

T = TypeVar("T")
_Queue = tuple[trio.MemorySendChannel[T], trio.MemoryReceiveChannel[T]]

MOST_TEXTS: Final = 1_000
"""Entered and not done yet; a program that types faster than that is told so."""
MOST_PRESSES: Final = 4
_EDITOR: Final = "kesoku_actors.adapters.terminal.interactive.editor"


@define(eq=False)
class Keyboard:
    """What a person types in a conversation."""

    conversation: Conversation
    completion: Completion
    stdin: TextIO
    history_path: Path | None
    _texts: _Queue[str] = field(factory=lambda: trio.open_memory_channel[str](MOST_TEXTS), init=False)
    _presses: _Queue[bool] = field(factory=lambda: trio.open_memory_channel[bool](MOST_PRESSES), init=False)
    _suspensions: _Queue[None] = field(factory=lambda: trio.open_memory_channel[None](1), init=False)

    async def run(self) -> None:
        """Read the keyboard until it is gone, then leave. Raises what the editor raised."""
        # Imported only now, in a thread: the model starts meanwhile.
        editor_of = (await trio.to_thread.run_sync(import_module, _EDITOR)).Editor
        token = trio.lowlevel.current_trio_token()
        editor: Editor = editor_of(
            stdin=self.stdin,
            history_path=self.history_path,
            completion=self.completion,
            tell=lambda told: token.run_sync_soon(self.hear, told),
        )
        self.conversation.clear_input = editor.clear
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_stop_when_cancelled, editor)
            nursery.start_soon(_each, self._texts[1], self.conversation.obey)
            nursery.start_soon(_each, self._presses[1], self.conversation.pressed)
            nursery.start_soon(_each, self._suspensions[1], partial(self._suspend, editor))
            with trio.CancelScope(shield=True):  # it ends when it is told to, and gives the terminal back first
                await trio.to_thread.run_sync(editor.run)
            nursery.cancel_scope.cancel()
        self.conversation.leave()

    async def _suspend(self, editor: Editor, _: None) -> None:
        await self.conversation.screen.suspend()
        editor.suspend()

    def hear(self, told: Told) -> None:
        """Take what the editor, or a signal, tells."""
        conversation, screen = self.conversation, self.conversation.screen
        match told:
            case Typed():
                screen.typed = told
                if told.text:
                    conversation.typing()
                screen.touch()
            case Entered(text=text):
                try:
                    self._texts[0].send_nowait(text)
                except trio.WouldBlock:
                    screen.say((f"not taken: {MOST_TEXTS} texts wait to be sent already",), "yellow")
            case Pressed(is_empty=is_empty):
                with suppress(trio.WouldBlock):  # as many presses wait as could mean anything
                    self._presses[0].send_nowait(is_empty)
            case FoldPressed():
                screen.fold()
            case RepaintPressed():
                screen.clear()
            case SuspendPressed():
                with suppress(trio.WouldBlock):
                    self._suspensions[0].send_nowait(None)
            case Resumed():
                screen.resume()
            case LeavePressed():
                conversation.leave()
            case NotRemembered(why=why):
                screen.say((f"what you type is not kept for next time: {why}",), "yellow")
            case never:
                assert_never(never)


async def _stop_when_cancelled(editor: Editor) -> None:
    try:
        await trio.sleep_forever()
    finally:
        editor.stop()


async def _each(queue: trio.MemoryReceiveChannel[T], act: Callable[[T], Awaitable[None]]) -> None:
    async for one in queue:
        await act(one)
