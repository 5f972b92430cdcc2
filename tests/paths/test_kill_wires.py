"""kill -9 between the results of parallel calls, start again: what is sent then is valid on both wires (P1, C3)."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio
from attrs import frozen

from tests.paths.process import daemon, is_row
from tests.wire import claude_server as claude
from tests.wire import gemini_server as gemini
from tests.wire.loopback import Answer, LoopbackServer

MODEL = """
[{name}]
api_key = "{key}"
model_name = "{model}"
base_url = "{url}"
{more}
"""
COMMANDS = ("echo one", "echo $$ > pid2; exec sleep 120", "echo three", "echo $$ > pid4; exec sleep 120")


@frozen(kw_only=True)
class Wire:
    """A provider, and what its server answers."""

    name: str
    key: str
    model: str
    serve: Callable[..., AbstractAsyncContextManager[tuple[LoopbackServer, Any]]]
    answers: tuple[Answer, ...]
    more: str = ""


GEMINI = Wire(
    name="gemini",
    key=gemini.KEY,
    model=gemini.MODEL,
    serve=gemini.serving_gemini,
    answers=(
        gemini.answering(
            gemini.thinking("Four at once."),
            gemini.signed(gemini.use("run_shell_command", command=COMMANDS[0])),
            *(gemini.use("run_shell_command", command=command) for command in COMMANDS[1:]),
        ),
        gemini.answering(gemini.text("I have read them.")),
    ),
)
CLAUDE = Wire(
    name="claude",
    key=claude.KEY,
    model=claude.MODEL,
    serve=claude.serving_claude,
    answers=(
        claude.answering(
            claude.thinking("Four at once."),
            *(
                claude.use("run_shell_command", f"toolu_{number}", command=command)
                for number, command in enumerate(COMMANDS)
            ),
        ),
        claude.answering(claude.text("I have read them.")),
    ),
    more='thinking_level = "low"',
)


@contextmanager
def served(wire: Wire) -> Iterator[tuple[str, Any]]:
    """Run the strict server in a thread; give its address and its judge."""
    ready: queue.Queue[tuple[str, Any, trio.CancelScope, trio.lowlevel.TrioToken]] = queue.Queue()

    async def run() -> None:
        with trio.CancelScope() as scope:
            async with wire.serve(*wire.answers) as (server, judge):
                ready.put((server.origin, judge, scope, trio.lowlevel.current_trio_token()))
                await trio.sleep_forever()

    thread = threading.Thread(target=trio.run, args=(run,))
    thread.start()
    origin, judge, scope, token = ready.get(timeout=60)
    try:
        yield origin, judge
    finally:
        token.run_sync_soon(scope.cancel)
        thread.join()


def settled(database: Path) -> int:
    """How many calls have their outcome staged."""
    with closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        connection.set_busy_timeout(2000)
        ((count,),) = connection.execute("SELECT count(*) FROM calls WHERE state = 'settled'").fetchall()
        return int(count)


@pytest.mark.parametrize("wire", [GEMINI, CLAUDE], ids=["gemini", "claude"])
def test_killed_between_two_of_four_results_the_turn_goes_on_and_is_valid(tmp_path: Path, wire: Wire) -> None:
    with served(wire) as (origin, judge):
        fields = {"name": wire.name, "key": wire.key, "model": wire.model, "url": origin, "more": wire.more}
        settings = {"llm": wire.name, "agent": "model_titles = false", "more": MODEL.format(**fields)}
        with daemon(tmp_path, **settings) as first:
            posted = first.post("Do four things.")
            first.wait(lambda event: event["event"] == "started", 4)
            workspace = tmp_path / "sessions" / posted["session_id"]
            while settled(tmp_path / "kesoku.db") < 2 or not all((workspace / f"pid{n}").exists() for n in (2, 4)):
                os.sched_yield()
            first.kill()
        assert len(judge.bodies) == 1
        with daemon(tmp_path, **settings) as second:
            assert second.ended(posted["id"])["status"] == "processed"
            second.wait(lambda event: is_row(event, type="tool_result"), 4)
            results = [event for event in second.seen if is_row(event, type="tool_result")]
            assert [each["metadata"]["outcome"] for each in results] == ["ok", "unknown", "ok", "unknown"]
            answered = second.wait(lambda event: is_row(event, role="assistant", status="pending"))
            assert answered["content"] == "I have read them."
            assert second.ended(second.post("Go on.")["id"])["status"] == "processed"
            assert second.close() == 0
        assert len(judge.bodies) == 3, "each request was accepted at once"
