"""The keyboard: prompt_toolkit's line editor in a thread, which says what happens and draws nothing.

It reads keys, edits, completes and remembers; what is to be seen of that is told as a value (`Typed`) and drawn by the
screen, which alone writes to the terminal. Everything it tells goes through one function that is called in its thread.

Invariants: while it runs the terminal is in raw mode, and it gives it back as it was, however it ends. What was typed
before it ran is read first. A bracketed paste is one insertion, whatever it holds, so it is posted by its Enter and
never by a line end in it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TextIO

from attrs import field
from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.completion import Completion as TheirCompletion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, Layout, UIContent, Window
from prompt_toolkit.output import DummyOutput

from kesoku_actors.adapters.terminal.interactive.completion import Completion
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

LONGEST_REMEMBERED: Final = 10_000
"""Characters; a longer text is a paste, and not kept in the history."""


Tell = Callable[[Told], None]


@define(eq=False)
class Editor:
    """The line editor. `run` is for a thread; the other methods are for any."""

    stdin: TextIO
    history_path: Path | None
    """Read and appended to; none: nothing is kept."""
    completion: Completion
    tell: Tell
    _application: Application[None] | None = field(default=None, init=False)
    _buffer: Buffer = field(init=False)
    _is_over: bool = field(default=False, init=False)

    def run(self) -> None:
        """Read the keyboard until `stop`, or until it is gone. Raises what a key's handler raised."""
        self._buffer = self._make_buffer()
        control = _Unseen(buffer=self._buffer)
        application: Application[None] = Application(
            layout=Layout(Window(control, height=1)),
            key_bindings=self._bindings(),
            input=create_input(self.stdin),
            output=DummyOutput(),
            after_render=lambda _: self._tell_typed(),
        )
        self._application = application
        try:
            application.run(pre_run=self._prepare, handle_sigint=False, set_exception_handler=False)
        except EOFError:
            self.tell(LeavePressed())
        finally:
            self._application = None

    def stop(self) -> None:
        """End `run` soon."""
        self._is_over = True
        self._soon(self._exit)

    def clear(self) -> None:
        """Empty the input line."""
        self._soon(self._empty)

    def suspend(self) -> None:
        """Stop the program until the shell continues it, with the terminal as the shell knows it."""
        self._soon(self._suspend)

    def _soon(self, act: Callable[[], None]) -> None:
        application = self._application
        if application is not None and application.loop is not None:
            # In the application's own context, or prompt_toolkit would not know which one is meant.
            application.loop.call_soon_threadsafe(act, context=application.context)

    def _suspend(self) -> None:
        application = self._application
        assert application is not None, "it runs this"

        async def stop() -> None:
            async with in_terminal():
                os.kill(0, signal.SIGTSTP)
            self.tell(Resumed())

        application.create_background_task(stop())

    def _empty(self) -> None:
        self._buffer.reset()
        self._tell_typed()

    def _exit(self, error: BaseException | None = None) -> None:
        application = self._application
        if application is not None and application.future is not None and not application.future.done():
            if error is None:
                application.exit()
            else:
                application.exit(exception=error)

    def _prepare(self) -> None:
        # An error in a key's handler would otherwise only be logged, by asyncio, across the screen.
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, context: self._exit(context.get("exception") or RuntimeError(context["message"]))
        )
        if self._is_over:
            self._exit()

    def _make_buffer(self) -> Buffer:
        return Buffer(
            multiline=False,
            history=self._history(),
            completer=_Offers(self.completion),
            complete_while_typing=Condition(lambda: self.completion.asks(self._buffer.document.text_before_cursor)),
            enable_history_search=True,
            accept_handler=self._accept,
        )

    def _history(self) -> History:
        if self.history_path is None:
            return InMemoryHistory()
        try:
            # Made here, because only its owner may read it (T6).
            os.close(os.open(self.history_path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            self.tell(NotRemembered(f"{self.history_path}: {error.strerror}"))
            return InMemoryHistory()
        return _Remembered(self.history_path, self.tell)

    def _accept(self, buffer: Buffer) -> bool:
        if buffer.text.strip():
            self.tell(Entered(buffer.text))
        return False

    def _complete(self, buffer: Buffer) -> None:
        """Go to the next completion on offer; without any, write what they all begin with, or offer them.

        Worked out here and now: their own way does it a moment later, and not at all when the next key is quick.
        """
        offer = self.completion.offer(buffer.document.text_before_cursor)
        if buffer.complete_state is not None:
            buffer.complete_next()
        elif offer is not None:
            if len(offer.common) > offer.length:
                buffer.delete_before_cursor(offer.length)
                buffer.insert_text(offer.common)
            else:
                buffer.start_completion()

    def _tell_typed(self) -> None:
        state = self._buffer.complete_state
        self.tell(
            Typed(
                text=self._buffer.text,
                cursor=self._buffer.cursor_position,
                choices=tuple(one.display_text for one in state.completions) if state else (),
                chosen=state.complete_index if state else None,
            )
        )

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()
        is_empty = Condition(lambda: not self._buffer.text)

        @bindings.add("c-c")
        def press(_event: KeyPressEvent) -> None:
            self.tell(Pressed(is_empty=not self._buffer.text))

        @bindings.add("c-d", filter=is_empty)
        def leave(_event: KeyPressEvent) -> None:
            self.tell(LeavePressed())

        @bindings.add("c-t")
        @bindings.add("f2")
        def fold(_event: KeyPressEvent) -> None:
            self.tell(FoldPressed())

        if hasattr(signal, "SIGTSTP"):

            @bindings.add("c-z")
            def suspend(_event: KeyPressEvent) -> None:
                self.tell(SuspendPressed())

        @bindings.add("c-l")
        def repaint(_event: KeyPressEvent) -> None:
            self.tell(RepaintPressed())

        @bindings.add("tab")
        def complete(event: KeyPressEvent) -> None:
            self._complete(event.current_buffer)

        @bindings.add("escape", "enter")
        def new_line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        return bindings


class _Unseen(BufferControl):
    """A control that edits its buffer and shows nothing: laying out a long text at every key would take its time."""

    def create_content(self, width: int, height: int, preview_search: bool = False) -> UIContent:
        self.buffer.load_history_if_not_yet_loaded()
        return UIContent(get_line=lambda _: [], line_count=1)


class _Offers(Completer):
    """Our completions in their words."""

    def __init__(self, completion: Completion) -> None:
        self._completion = completion

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[TheirCompletion]:
        offer = self._completion.offer(document.text_before_cursor)
        if offer is None:
            return
        width = max(len(choice.text) for choice in offer.choices)
        for choice in offer.choices:
            display = f"{choice.text:<{width}}  {choice.note}".rstrip()
            yield TheirCompletion(choice.text, start_position=-offer.length, display=display)


class _Remembered(FileHistory):
    """A history in a file that may fail to be written, which is no reason to lose what was typed."""

    def __init__(self, path: Path, tell: Tell) -> None:
        super().__init__(path)
        self._tell = tell

    def store_string(self, string: str) -> None:
        if len(string) > LONGEST_REMEMBERED:
            return
        try:
            super().store_string(string)
        except OSError as error:
            self._tell(NotRemembered(f"{self.filename!s}: {error.strerror}"))
