"""`get_config()` from everywhere a plugin or tool may run."""

from __future__ import annotations

import asyncio

import attrs
import pytest
import trio
import trio.testing
import trio_asyncio

from kesoku_actors.app.config_context import get_config, use_settings
from kesoku_actors.app.sections import Agent
from kesoku_actors.app.settings import Settings
from kesoku_actors.errors import UsageError

RUN = Settings(agent=Agent(llm="of-this-run"))


def test_outside_a_run_it_says_so() -> None:
    with pytest.raises(UsageError, match="only inside a run"):
        get_config()


def run(main: object) -> None:
    """Run `main` as `app` runs everything: the settings are set before any task starts."""
    with use_settings(RUN):
        trio.run(main)


def test_an_async_tool_reads_it() -> None:
    async def main() -> None:
        seen = []

        async def tool() -> None:
            await trio.lowlevel.checkpoint()
            seen.append(get_config())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(tool)
        assert seen == [RUN]
        assert seen[0] is RUN

    run(main)


def test_a_sync_tool_in_a_thread_reads_it() -> None:
    async def main() -> None:
        assert await trio.to_thread.run_sync(get_config) is RUN

    run(main)


def test_callbacks_of_an_adapters_event_loop_read_it() -> None:
    async def main() -> None:
        async with trio_asyncio.open_loop() as loop:
            called: asyncio.Future[Settings] = loop.create_future()
            loop.call_soon(lambda: called.set_result(get_config()))

            async def handler() -> Settings:
                await asyncio.sleep(0)
                return get_config()

            assert await trio_asyncio.aio_as_trio(asyncio.wait_for)(called, 5) is RUN
            assert await trio_asyncio.aio_as_trio(handler)() is RUN

    run(main)


def test_a_callback_from_outside_the_tasks_reads_it() -> None:
    async def main() -> None:
        seen, done = [], trio.Event()

        def callback() -> None:
            seen.append(get_config())
            done.set()

        trio.lowlevel.current_trio_token().run_sync_soon(callback)
        await done.wait()
        assert seen[0] is RUN

    run(main)


def test_a_turn_keeps_the_settings_it_began_with() -> None:
    later = attrs.evolve(RUN, agent=Agent(llm="later"))

    async def main() -> None:
        go = trio.Event()

        async def turn() -> None:
            await go.wait()
            assert get_config() is RUN

        async with trio.open_nursery() as nursery:
            nursery.start_soon(turn)
            await trio.testing.wait_all_tasks_blocked()
            with use_settings(later):
                go.set()
                await trio.testing.wait_all_tasks_blocked()
                assert get_config() is later

    run(main)
