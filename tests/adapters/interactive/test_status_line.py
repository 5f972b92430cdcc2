"""The status line tells what matters most in the room there is."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kesoku_actors.adapters.terminal.interactive.status_line import Facts, status_line
from kesoku_actors.adapters.terminal.markdown import plain
from kesoku_actors.protocol import Activity

BUSY = Facts(activity=Activity.TOOLS, for_s=12.0, model="a-model", mode="interrupt", context_tokens=12_345, waiting=2)


@given(
    st.builds(
        Facts,
        activity=st.sampled_from(Activity),
        for_s=st.floats(0, 1e6),
        model=st.text(max_size=30),
        mode=st.sampled_from(["interrupt", "queue"]),
        context_tokens=st.none() | st.integers(0, 10**7),
        waiting=st.integers(0, 100),
        notice=st.sampled_from(["", "Ctrl-C again leaves"]),
        left_s=st.floats(0, 1e6),
        cost=st.none() | st.floats(0, 1e3),
        detail=st.text(max_size=100),
    ),
    st.integers(10, 200),
)
def test_it_is_one_row_that_fits(facts: Facts, columns: int) -> None:
    line = plain(status_line(facts, columns))
    assert 0 < cell_len(line) < columns
    assert len(line.splitlines()) == 1
    assert "\x1b" not in line


def test_with_room_it_tells_everything() -> None:
    line = plain(status_line(BUSY, 100))
    assert line.split(" · ")[1:] == ["^C stops", "2 waiting", "a-model", "interrupt", "ctx 12.3K", "^T thoughts"]
    assert line.split(" · ")[0].endswith("tools 12 s")
    assert plain(status_line(evolve(BUSY, cost=0.0123), 120)).split(" · ")[6] == "$0.0123"
    assert "^C forces" in status_line(evolve(BUSY, activity=Activity.STOPPING), 80)
    assert "^T folds thoughts" in status_line(evolve(BUSY, is_folded=False), 100)


def test_a_wait_for_the_model_is_told_with_its_reason_and_what_is_left_of_it() -> None:
    why = "openai: the server cannot be reached; [openai] base_url says where it is: ConnectError"
    waiting = evolve(BUSY, activity=Activity.RETRYING, left_s=2.3, detail=why)
    parts = plain(status_line(waiting, 160)).split(" · ")
    assert parts[0].endswith("asks again in 3 s")
    assert parts[1:3] == ["^C stops", f"{why[:60]}…"]
    assert plain(status_line(waiting, 46)).endswith("asks again in 3 s · ^C stops · 2 waiting")


def test_without_room_it_tells_what_goes_on_and_what_can_be_done_about_it() -> None:
    assert plain(status_line(BUSY, 40)).endswith("tools 12 s · ^C stops · 2 waiting")
    assert plain(status_line(BUSY, 20)).endswith("tools 12 s")
    assert plain(status_line(evolve(BUSY, notice="Ctrl-C again leaves"), 21)) == "Ctrl-C again leaves"
