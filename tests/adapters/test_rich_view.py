"""What a terminal shows, read back through a small terminal."""

from __future__ import annotations

import os
import re
import sys

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from kesoku_actors.adapters.terminal import ChatState, DescriptorOutput, Leaf, TurnSummary
from kesoku_actors.adapters.terminal.markdown import Flow, Painter, document, plain
from kesoku_actors.adapters.terminal.redraw import redraw
from kesoku_actors.adapters.terminal.rich_view import RichView
from kesoku_actors.clock import Clock
from kesoku_actors.protocol import (
    Activity,
    ActivityChanged,
    Changed,
    Delta,
    DeltaKind,
    Outcome,
    StopEnded,
    ToolEnded,
    ToolProgress,
    Type,
)
from tests.adapters.screen import MemoryOutput, Terminal, ticking
from tests.adapters.world import SESSION, answer, call, notice, result, said

LINES = st.lists(st.text("ab漢", max_size=8), max_size=6)
SUMMARY = TurnSummary(turns=1, context_tokens=900, tools=1, tokens=950, seconds=1.0, state=ChatState.ANSWERED)

MARKDOWN = """# Title

Some **bold** words, a [link](https://example.org/x), `code`, <b>html</b>, [red]tag[/red], [file: key.txt].

1. one
2. two with rather more words than fit

```python
def f(x):
    return x
```

| a | b |
|---|---|
| 1 | 2 |

\x1b[31mnot red\x1b]0;title\x07 漢字 👩‍👩‍👧 end.
"""


def view_of(out, columns=80, lines=24, no_color=False):
    clock = Clock(wall=lambda: 0.0, monotonic=ticking())
    return RichView(out=out, clock=clock, size=lambda: (columns, lines), no_color=no_color)


def drawn(out: MemoryOutput, columns: int = 80) -> Terminal:
    terminal = Terminal(columns)
    terminal.feed(out.text)
    return terminal


def pieces(text, size=7, kind=DeltaKind.TEXT, inference="i1", attempt=1):
    for offset in range(0, len(text), size):
        yield Delta(
            session_id=SESSION,
            root_id="m1",
            inference_id=inference,
            attempt=attempt,
            offset=offset,
            kind=kind,
            text=text[offset : offset + size],
        )


async def stream(view, events):
    for event in events:
        await view.show(event, is_ours=True)
        await view.refresh()


async def leave(view, message, **facts):
    await view.leave(Leaf(message=message, text=message.content, **({"is_ours": True, "is_again": False} | facts)))


@given(st.lists(st.tuples(LINES, LINES), max_size=8), st.integers(16, 30))
def test_redrawing_leaves_what_was_printed_and_the_newest_live_lines(frames, columns):
    terminal, shown, printed = Terminal(columns), [], []
    for prints, live in frames:
        terminal.feed(redraw(shown, [*prints, *live], columns, cell_len))
        printed += prints
        shown = live
        assert terminal.rows == [*printed, *live, ""]


def test_nothing_is_written_when_nothing_changed_and_only_the_end_when_the_end_did():
    assert redraw(["a", "b"], ["a", "b"], 80, len) == ""
    assert redraw(["same", "old"], ["same", "new"], 80, len) == "\x1b[?2026h\r\x1b[1A\x1b[Jnew\n\x1b[?2026l"


def test_lines_that_wrapped_since_are_erased_whole():
    assert "\x1b[3A" in redraw(["x" * 50], ["y"], 20, len)


@given(
    st.lists(
        st.sampled_from(["word ", "\n", "\n\n", "- item\n", "```\n", "code\n", "| a |\n|---|\n", "> q\n", "1. x\n"]),
        max_size=25,
    )
)
@settings(max_examples=40)
def test_a_text_that_grows_is_drawn_like_the_whole_text(tokens):
    painter, flow = Painter(40, True), Flow()
    for token in tokens:
        flow.text += token
        grown = flow.live_lines(painter)
    assert not tokens or grown == document("".join(tokens), painter)


def test_a_last_block_that_is_very_long_shows_its_end_and_is_drawn_whole_when_it_is_complete():
    painter, flow = Painter(40, True), Flow(text="```\n")
    for number in range(1200):
        flow.text += f"line {number}\n"
        if number % 400 == 399:
            shown = [plain(line).strip() for line in flow.live_lines(painter)]
            assert [line for line in shown if line][-1] == f"line {number}"
    flow.text += "```\n\nDone.\n"
    complete = [plain(line).strip() for line in flow.settle(flow.text, painter) or ()]
    assert complete == [*(f"line {number}" for number in range(1200)), "", "Done.", ""]


@pytest.mark.parametrize("columns", [10, 20, 80])
async def test_a_streamed_answer_stands_there_once(columns):
    out = MemoryOutput()
    view = view_of(out, columns)
    await stream(view, pieces(MARKDOWN))
    await leave(view, answer(2, "m1", MARKDOWN))
    await view.finish(SUMMARY)
    streamed = drawn(out, columns).lines
    once = MemoryOutput()
    at_once = view_of(once, columns)
    await leave(at_once, answer(2, "m1", MARKDOWN))
    await at_once.finish(SUMMARY)
    assert streamed == drawn(once, columns).lines
    assert "[31mnot" in "".join("".join(streamed).split())


@pytest.mark.parametrize("lines", [4, 8, 24])
async def test_an_answer_longer_than_the_window_is_printed_once_and_whole(lines):
    text = "\n\n".join(f"Paragraph {number}: " + "word " * 30 for number in range(20))
    out = MemoryOutput()
    view = view_of(out, 60, lines)
    await stream(view, pieces(text, 40))
    await leave(view, answer(2, "m1", text))
    terminal = drawn(out, 60)
    shown = " ".join(terminal.lines)
    assert [int(number) for number in re.findall(r"Paragraph (\d+):", shown)] == list(range(20))
    assert shown.split() == text.split()
    assert terminal.highest < lines


async def test_a_new_attempt_takes_the_place_of_the_old_one():
    out = MemoryOutput()
    view = view_of(out)
    await stream(view, pieces("A beginning that breaks off"))
    await stream(view, pieces("A whole answer", inference="i2", attempt=2))
    await leave(view, answer(2, "m1", "A whole answer"))
    assert drawn(out).lines == ["A whole answer", "", ""]


async def test_an_answer_stored_otherwise_than_streamed_wins():
    long = "\n\n".join(["word " * 20] * 10)
    out = MemoryOutput()
    view = view_of(out, 40, 6)
    await stream(view, pieces(long, 50))
    await leave(view, answer(2, "m1", "Something else"))
    assert drawn(out, 40).lines[-4:] == ["(as it was kept)", "Something else", "", ""]


async def test_a_lost_piece_shows_dots_until_the_row_comes():
    out = MemoryOutput()
    view = view_of(out)
    events = list(pieces("one two three four", 4))
    await stream(view, [events[0], *events[2:]])
    assert drawn(out).lines == ["one", "", "…", ""]
    await leave(view, answer(2, "m1", "one two three four"))
    assert drawn(out).lines == ["one two three four", "", ""]


async def test_a_call_that_ended_before_those_made_with_it_does_not_look_as_if_it_ran():
    out = MemoryOutput()
    view = view_of(out)
    made = call(2, "m1", "run_shell_command", {"command": "ls"}), call(3, "m1", "run_shell_command", {"command": "df"})
    await stream(view, [Changed(message=each) for each in made])
    await stream(view, [ToolProgress(session_id=SESSION, call_id="m2")])
    await stream(view, [ToolEnded(session_id=SESSION, call_id="m2", outcome=Outcome.OK)])
    first, _, second, *_ = drawn(out).lines
    assert re.fullmatch(r"✓ \d+\.\d s  run_shell_command", first)
    assert second == "● waiting  run_shell_command"
    for _ in range(30):
        await view.refresh()
    assert drawn(out).lines[0] == first


async def test_a_call_is_a_card_with_live_time_and_the_beginning_of_its_result():
    out = MemoryOutput()
    view = view_of(out)
    made = call(2, "m1", "run_shell_command", {"command": "ls -la\x1b[2J"})
    await stream(view, [Changed(message=made)])
    assert drawn(out).lines == ["● waiting  run_shell_command", "  $ ls -la␛[2J", ""]
    await stream(view, [ToolProgress(session_id=SESSION, call_id="m2")])
    first = drawn(out).lines[0]
    for _ in range(30):
        await view.refresh()
    later = drawn(out).lines[0]
    assert re.fullmatch(r"● \d+ s  run_shell_command", first)
    assert int(later.split()[1]) > int(first.split()[1])
    text = "\n".join(f"line {number}\x07" for number in range(20))
    await stream(view, [Changed(message=result(3, "m1", made, text, duration_s=1.25))])
    assert drawn(out).lines == [
        "✓ 1.2 s  run_shell_command",
        "  $ ls -la␛[2J",
        *(f"  │ line {number}␇" for number in range(6)),
        "  … 14 more lines",
        "",
        "",
    ]


async def test_thoughts_texts_notices_and_receipts_come_in_their_order():
    out = MemoryOutput()
    view = view_of(out)
    await stream(view, pieces("Hm, let me think", kind=DeltaKind.THOUGHT))
    await stream(view, pieces("First"))
    await stream(view, [Changed(message=said(2, "m1", "Hm, let me think", Type.THOUGHT))])
    await stream(view, [Changed(message=said(3, "m1", "First", metadata={"partial": True}))])
    await stream(view, [StopEnded(session_id=SESSION, stop_seq=1, ended=("m1",), answered=(), survivors=("pid 7",))])
    await leave(view, notice(4, "m1", "The turn was\x1b[1m stopped."))
    await leave(view, answer(5, "m0", "Old"), is_ours=False, is_again=True)
    assert drawn(out).lines == [
        "Hm, let me think",
        "",
        "First",
        "",
        "(interrupted)",
        "stopped: 1 message",
        "lives on: pid 7",
        "⚠ The turn was␛[1m stopped.",
        "(answer to an earlier message; shown again, as the last time was not confirmed)",
        "Old",
        "",
        "",
    ]


async def test_nothing_turns_or_waits_after_the_end():
    """Case row 32: what says that work goes on ends with the work, whatever way it ended."""
    out = MemoryOutput()
    view = view_of(out)
    await stream(view, [ActivityChanged(session_id=SESSION, activity=Activity.THINKING)])
    await stream(view, [Changed(message=call(2, "m1", "f", {})), *pieces("never committed")])
    assert "thinking" in drawn(out).lines[-2]
    await view.finish(SUMMARY)
    before = out.text
    assert drawn(out).lines == ["1 turn · context 0.9K · 1 tool · tokens 0.9K · 1.0 s ⚡", ""]
    await view.refresh()
    assert out.text == before


async def test_a_wait_for_the_model_is_shown_with_its_reason():
    """Case: an unreachable server looked like thinking for a quarter of a minute."""
    out = MemoryOutput()
    view = view_of(out)
    why = "openai: the server cannot be\nreached"
    retrying = ActivityChanged(session_id=SESSION, activity=Activity.RETRYING, detail=why, for_s=4.0)
    await stream(view, [ActivityChanged(session_id=SESSION, activity=Activity.THINKING), retrying])
    assert drawn(out).lines[-2].endswith("asks the model again in 4 s: openai: the server cannot be reached")
    await stream(view, [ActivityChanged(session_id=SESSION, activity=Activity.THINKING)])
    assert drawn(out).lines[-2].endswith("thinking 0 s")


async def test_without_colour_no_colour_is_written():
    out = MemoryOutput()
    view = view_of(out, no_color=True)
    await stream(view, pieces(MARKDOWN))
    await leave(view, answer(2, "m1", MARKDOWN))
    codes = {int(code) for found in re.findall(r"\x1b\[([0-9;]+)m", out.text) for code in found.split(";")}
    assert codes <= set(range(30))
    assert plain("\x1b[1mx\x1b[0m") == "x"


@given(st.lists(st.integers(10, 100), min_size=1, max_size=6))
@settings(max_examples=25)
async def test_a_window_that_changes_its_size_loses_nothing(widths):
    """The final frame is drawn at the last width; what is checked is that drawing goes on and ends complete."""
    now = [80]
    out = MemoryOutput()
    view = RichView(out=out, clock=Clock(monotonic=ticking()), size=lambda: (now[0], 24), no_color=True)
    for width, event in zip(widths, pieces("alpha beta gamma delta", 5), strict=False):
        now[0] = width
        await stream(view, [event])
    await leave(view, answer(2, "m1", "alpha beta gamma delta"))
    last = out.written[-1]
    assert " ".join(plain(last.replace("\x1b[?2026l", "")).split()).endswith("delta")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")
@pytest.mark.parametrize("columns", [20, 80])
async def test_a_real_pseudo_terminal_shows_the_answer(columns):
    master, slave = os.openpty()
    found = bytearray()

    async def read() -> None:
        while True:
            try:
                found.extend(await trio.to_thread.run_sync(os.read, master, 4096))
            except OSError:  # the other end was closed
                return

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        view = view_of(DescriptorOutput(slave), columns)
        await stream(view, pieces(MARKDOWN))
        await leave(view, answer(2, "m1", MARKDOWN))
        await view.finish(SUMMARY)
        os.close(slave)
    os.close(master)
    terminal = Terminal(columns)
    terminal.feed(found.decode().replace("\r\n", "\n"))
    shown = " ".join(" ".join(terminal.lines).split())
    assert shown.count("Title") == 1
    assert shown.endswith("⚡")
