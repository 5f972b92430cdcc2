"""The logger as a value, and what its lines look like."""

from __future__ import annotations

import io
import json
import logging
import math
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.log import (
    ERROR,
    INFO,
    Ambient,
    Entry,
    Logger,
    mask_secrets,
    render_json,
    render_line,
    stdlib_logging,
    stream_sink,
)

PLAIN = mask_secrets(())


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def logger_to(entries: list[Entry], **changes: Any) -> Logger:
    return Logger(sink=entries.append, wall=lambda: 0.5, **changes)


def test_binding_returns_another_logger_and_changes_nothing() -> None:
    entries: list[Entry] = []
    log = logger_to(entries)
    bound = log.bind(session_id="s1")
    bound.bind(step=2).info("asked", step=3)
    log.info("started")
    assert [(entry.event, entry.fields) for entry in entries] == [
        ("asked", {"session_id": "s1", "step": 3}),
        ("started", {}),
    ]


def test_what_is_below_the_level_is_not_said() -> None:
    entries: list[Entry] = []
    log = logger_to(entries, level=INFO)
    log.debug("no")
    log.info("yes")
    log.error("yes too", cause=OSError("disk"))
    assert [entry.event for entry in entries] == ["yes", "yes too"]
    assert isinstance(entries[1].cause, OSError)


def test_a_stream_that_is_no_terminal_gets_json_lines() -> None:
    stream = io.StringIO()
    log = Logger(sink=stream_sink(stream, mask=PLAIN, environ={}), wall=lambda: 1.5, fields={"event": "field"})
    log.warning("slow\nprovider", seconds=2.5, ratio=math.nan, names=("a", "日本"), event_count=1)
    [line] = stream.getvalue().splitlines()
    assert json.loads(line) == {
        "time": "1970-01-01T00:00:01.500+00:00",
        "level": "warning",
        "event": "slow\nprovider",
        "event_": "field",
        "seconds": 2.5,
        "ratio": "nan",
        "names": ["a", "日本"],
        "event_count": 1,
    }


@pytest.mark.parametrize(
    ("environ", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_a_terminal_gets_a_readable_line_in_colour_unless_told_otherwise(
    environ: Mapping[str, str], coloured: bool
) -> None:
    stream = Terminal()
    Logger(sink=stream_sink(stream, mask=PLAIN, environ=environ), wall=lambda: 3661.0).info("ready", port=80, name="x")
    line = stream.getvalue()
    assert ("\x1b[36m" in line) == coloured
    assert line.replace("\x1b[36m", "").replace("\x1b[0m", "") == "01:01:01 info    ready port=80 name=x\n"


def test_control_characters_cannot_forge_a_line_or_steer_the_terminal() -> None:
    entry = Entry(time=0, level=INFO, event="a\nb", fields={"name": "x\x1b[2J\r\u2028"})
    assert render_line(entry, PLAIN, coloured=False) == r"00:00:00 info    a\nb name=x\x1b[2J\r\u2028"


def test_known_secrets_are_masked_everywhere_and_the_longest_first() -> None:
    mask = mask_secrets(["sk-12345", "sk-12345-long", "abc"])
    try:
        raise ValueError('no access with sk-12345-long and a "quote\\"')
    except ValueError as error:
        entry = Entry(
            time=0, level=ERROR, event="key sk-12345", fields={"deep": [{"sk-12345": "sk-12345-long"}]}, cause=error
        )
    for text in (render_json(entry, mask), render_line(entry, mask, coloured=False)):
        assert "sk-" not in text
        assert "-long" not in text
        assert "ValueError: no access with ***" in text
    assert mask("abc") == "abc"


def test_fields_of_the_task_follow_into_children_and_threads() -> None:
    ambient: Ambient = ContextVar("fields")
    stream = io.StringIO()
    log = Logger(sink=stream_sink(stream, mask=PLAIN, environ={}, ambient=ambient), wall=lambda: 0.0)

    async def turn(name: str) -> None:
        ambient.set({"turn": name})
        await trio.lowlevel.checkpoint()
        await trio.to_thread.run_sync(lambda: log.info("from a thread"))

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(turn, "one")
            nursery.start_soon(turn, "two")
        log.info("outside")

    trio.run(main)
    turns = [json.loads(line).get("turn") for line in stream.getvalue().splitlines()]
    assert sorted(turns[:2]) == ["one", "two"]
    assert turns[2] is None


def test_what_libraries_log_arrives_while_open_and_no_longer() -> None:
    entries: list[Entry] = []
    library = logging.getLogger("some.library")
    with stdlib_logging(logger_to(entries, fields={"run": 1})):
        library.info("connected to %s", "host", extra={"shard": 3})
        library.debug("too quiet")
        broken = {"name": "some.library", "levelno": INFO, "msg": "wrong arguments %d", "args": ("x",)}
        logging.root.handlers[-1].handle(logging.makeLogRecord(broken))
    library.error("after")
    assert [entry.event for entry in entries] == ["connected to host", "wrong arguments %d ('x',)"]
    assert entries[0].fields == {"run": 1, "logger": "some.library", "shard": 3}


def test_a_closed_stream_swallows_lines() -> None:
    stream = io.StringIO()
    log = Logger(sink=stream_sink(stream, mask=PLAIN, environ={}), wall=lambda: 0.0)
    stream.close()
    log.info("nobody hears")


@given(
    st.text(), st.dictionaries(st.text(max_size=3), st.text() | st.integers() | st.floats() | st.binary(), max_size=3)
)
def test_any_entry_is_one_line_that_can_be_encoded(event: str, fields: dict[str, Any]) -> None:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="utf-8", newline="") as stream:
        stream_sink(stream, mask=PLAIN, environ={})(Entry(time=0, level=INFO, event=event, fields=fields))
        written = raw.getvalue()
    assert written.count(b"\n") == 1
    assert json.loads(written)["event"] == event
    assert "\n" not in render_line(Entry(time=0, level=INFO, event=event, fields=fields), PLAIN, coloured=True)


def test_a_long_text_is_cut_and_no_half_secret_is_left_at_its_end() -> None:
    mask, secret = mask_secrets(["a-secret-key"]), "a-secret-key"
    entry = Entry(time=0.0, level=INFO, event="x" * 100_000, fields={"name": "y" * 1_995 + secret + "z" * 100_000})
    for line in (render_json(entry, mask), render_line(entry, mask, coloured=False)):
        assert len(line) < 5_000
        assert "a-se" not in line
        assert "(101,998 characters)" in line
