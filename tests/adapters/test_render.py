"""What is shown follows from the events alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.adapters.terminal.harmless import harmless, one_line
from kesoku_actors.adapters.terminal.render import (
    Append,
    Begin,
    Drop,
    EndCall,
    Gap,
    OpenCall,
    Receipt,
    RestCall,
    Screen,
    Settle,
    StartCall,
    Work,
    describe,
    step,
)
from kesoku_actors.protocol import (
    Activity,
    ActivityChanged,
    Changed,
    Delta,
    DeltaKind,
    Outcome,
    Removed,
    Status,
    StopEnded,
    ToolEnded,
    ToolProgress,
    Type,
)
from tests.adapters.world import SESSION, answer, call, notice, person, result, said

TEXT, THOUGHT = DeltaKind.TEXT, DeltaKind.THOUGHT


def delta(text, offset=0, inference="i1", attempt=1, kind=TEXT, root="m1"):
    return Delta(
        session_id=SESSION, root_id=root, inference_id=inference, attempt=attempt, offset=offset, kind=kind, text=text
    )


def operations(*events):
    screen, done = Screen(), []
    for event in events:
        screen, more = step(screen, event)
        done += more
    return done


def streamed(done):
    """Return what stands on the screen as streamed text after these operations."""
    text = ""
    for operation in done:
        match operation:
            case Begin() | Drop() | Settle(kind=DeltaKind.TEXT):
                text = ""
            case Append(kind=DeltaKind.TEXT, text=more):
                text += more
    return text


PIECES = st.lists(st.text("ab c", min_size=1, max_size=5), min_size=1, max_size=6)


@given(st.lists(PIECES, min_size=1, max_size=4), st.data())
def test_what_is_streamed_is_always_a_beginning_of_the_newest_attempt(attempts, data):
    """Pieces may be lost, doubled and, within their attempt, come late."""
    screen, done = Screen(), []
    for number, pieces in enumerate(attempts, 1):
        sent, offset = [delta("late", 0, f"i{number - 1}", number - 1)], 0
        for piece in pieces:
            sent.append(delta(piece, offset, f"i{number}", number))
            offset += len(piece)
        for event in data.draw(st.just(sent) | st.lists(st.sampled_from(sent), max_size=10)):
            screen, more = step(screen, event)
            done += more
            if screen.stream is not None and screen.stream.attempt == number:
                assert "".join(pieces).startswith(streamed(done))


@given(st.lists(st.text("xyz", min_size=1, max_size=4), min_size=1, max_size=8))
def test_pieces_in_order_are_shown_whole_however_they_overlap(pieces):
    whole, offset, events = "".join(pieces), 0, []
    for piece in pieces:
        events += [delta(whole[: offset + len(piece)]), delta(piece, offset)]
        offset += len(piece)
    assert streamed(operations(*events)) == whole


def test_a_new_attempt_replaces_what_was_shown():
    done = operations(delta("Once up"), delta("Twice", attempt=2), delta("on", 7))
    assert done == [Begin(), Append(TEXT, "Once up"), Begin(), Append(TEXT, "Twice")]


def test_a_lost_piece_is_said_once_and_the_rest_waits_for_the_row():
    done = operations(delta("abc"), delta("ghi", 6), delta("jkl", 9), Changed(message=said(2, "m1", "abcdefghijkl")))
    assert done == [Begin(), Append(TEXT, "abc"), Gap(TEXT), Settle(TEXT, "abcdefghijkl", False)]


def test_text_and_thought_have_offsets_of_their_own():
    done = operations(delta("Hm", kind=THOUGHT), delta("Yes"), delta("!", 3), delta("m", 2, kind=THOUGHT))
    assert done == [Begin(), Append(THOUGHT, "Hm"), Append(TEXT, "Yes"), Append(TEXT, "!"), Append(THOUGHT, "m")]


def test_a_piece_that_comes_after_its_row_is_not_shown():
    done = operations(delta("ab"), Changed(message=said(2, "m1", "abc")), delta("c", 2))
    assert done == [Begin(), Append(TEXT, "ab"), Settle(TEXT, "abc", False)]


@pytest.mark.parametrize("status", [Status.PROCESSED, Status.INTERRUPTED, Status.ERROR, Status.PENDING_AGENT])
def test_a_turn_that_ends_takes_its_uncommitted_stream_with_it(status):
    assert operations(delta("ab"), Changed(message=person(1, status)))[-1] == Drop()
    assert Drop() not in operations(delta("ab"), Changed(message=person(7, status)))


def test_a_row_is_shown_once():
    row = Changed(message=said(2, "m1", "Let me see."))
    assert operations(row, row) == [Settle(TEXT, "Let me see.", False)]


def test_what_leaves_is_not_shown_here():
    assert operations(Changed(message=answer(2, "m1", "42")), Changed(message=notice(3, "m1", "sorry"))) == []


def test_a_call_is_opened_started_and_ended():
    made = call(2, "m1", "run_shell_command", {"command": "ls"})
    ended = result(3, "m1", made, "a\nb", "error", duration_s=1.5)
    progress = ToolProgress(session_id=SESSION, call_id="m2")
    rests = ToolEnded(session_id=SESSION, call_id="m2", outcome=Outcome.ERROR)
    assert operations(Changed(message=made), progress, rests, Changed(message=ended)) == [
        OpenCall("m2", "run_shell_command", "$ ls"),
        StartCall("m2"),
        RestCall("m2", Outcome.ERROR),
        EndCall("m2", Outcome.ERROR, 1.5, "a\nb"),
    ]


def test_thoughts_partial_texts_and_activities_are_told_apart():
    assert operations(
        Changed(message=said(2, "m1", "hm", Type.THOUGHT)),
        Changed(message=said(3, "m1", "I was", metadata={"partial": True})),
        ActivityChanged(session_id=SESSION, activity=Activity.STOPPING),
        Removed(message_id="m9", session_id=SESSION, rev=9),
    ) == [Settle(THOUGHT, "hm", False), Settle(TEXT, "I was", True), Work(Activity.STOPPING)]


def test_a_receipt_names_what_ended_and_what_lives_on():
    receipt = StopEnded(session_id=SESSION, stop_seq=9, ended=("m1",), answered=("m2",), survivors=("thread 7",))
    assert operations(receipt) == [Receipt(("stopped: 1 message", "already answered: 1", "lives on: thread 7"))]


def test_arguments_are_described_in_one_line():
    assert describe({"path": "ä", "n": 3}) == 'path="ä", n=3'
    assert describe({"command": "ls", "timeout_s": 3}) == "$ ls"
    assert describe(["odd"]) == '["odd"]'


@given(st.text())
def test_harmless_text_has_no_control_effect_and_stays_harmless(text):
    clean = harmless(text)
    assert all(character in "\n\t" or not (ord(character) < 32 or 127 <= ord(character) < 160) for character in clean)
    clean.encode()
    assert harmless(clean) == clean
    assert "\n" not in one_line(text)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("\x1b[2J\x1b]0;title\x07", "␛[2J␛]0;title␇"),
        ("a\r\nb\rc", "a\nb␍c"),
        ("nul\x00\x7f\x9b1m", "nul␀␡\ufffd1m"),
        ("\u202eevil\u2066", "\ufffdevil\ufffd"),
        ("half \ud83d", "half \ufffd"),
        ("漢字 👩‍👩‍👧 é\tx", "漢字 👩‍👩‍👧 é\tx"),
        ("a\u200bb\u2060c\ufeffd\u200ee\u200ff\u061cg", "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\ufffdg"),
        ("👩\u200d👧 ❤\ufe0f می\u200cخواهم", "👩\u200d👧 ❤\ufe0f می\u200cخواهم"),
    ],
)
def test_escape_sequences_become_visible_signs(text, clean):
    assert harmless(text) == clean
