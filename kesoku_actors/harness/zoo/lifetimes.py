"""Planted bugs of life and death: messages against the life of their actor, restarts, supervision."""

from __future__ import annotations

import trio

from kesoku_actors.harness.zoo.scenery import Program, ring, work


def listener_after_post(*, fixed: bool = False) -> Program:
    """A listener is started and a word is posted; the word is told before the listener is on the list."""

    async def main() -> None:
        to_bus, posts = trio.open_memory_channel[str](4)
        listeners: list[trio.MemorySendChannel[str]] = []

        async def bus() -> None:
            async for word in posts:
                await work(1)
                for listener in listeners:  # race: the list may still be empty
                    await listener.send(word)

        async def listen(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
            sender, receiver = trio.open_memory_channel[str](4)
            listeners.append(sender)
            task_status.started()
            await receiver.receive()

        async with trio.open_nursery() as nursery, to_bus:
            nursery.start_soon(ring)
            nursery.start_soon(bus)
            async with trio.open_nursery() as listening:
                if fixed:
                    await listening.start(listen)
                else:
                    listening.start_soon(listen)
                await to_bus.send("hello")

    return main


def mail_before_state(*, fixed: bool = False) -> Program:
    """An actor serves its mailbox while its state is still being loaded, and what it counted is overwritten."""

    async def main() -> None:
        to_counter, mailbox = trio.open_memory_channel[int](4)
        state: dict[str, int] = {}

        async def load() -> None:
            await work(4)
            state["count"] = 40  # race: the first message may have been counted already

        async def serve() -> None:
            async for number in mailbox:
                state["count"] = state.get("count", 0) + number

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ring)
            if fixed:
                await load()
            else:
                nursery.start_soon(load)
            nursery.start_soon(serve)
            async with to_counter:
                await work(7)
                await to_counter.send(2)
        assert state["count"] == 42, "a message was handled before the state was there"

    return main


def watch_after_death(*, fixed: bool = False) -> Program:
    """A parent asks to be told of its child's end when the child has ended already, and waits for ever."""

    async def main() -> None:
        watchers: list[trio.Event] = []
        has_ended: list[bool] = []

        async def child() -> None:
            await work(7)
            has_ended.append(True)
            for watcher in watchers:
                watcher.set()

        async def parent() -> None:
            await work(4)  # race: the child may end before it is watched
            told = trio.Event()
            watchers.append(told)
            if fixed and has_ended:
                told.set()
            await told.wait()

        async with trio.open_nursery() as nursery:
            for task in (ring, child, parent):
                nursery.start_soon(task)

    return main


def stop_before_scope(*, fixed: bool = False) -> Program:
    """A child makes known how to stop it in its first step; a stop that comes before finds nothing to stop."""

    async def main() -> None:
        scopes = {"child": trio.CancelScope()} if fixed else {}
        was_stopped: list[bool] = []

        async def child() -> None:
            with scopes.setdefault("child", trio.CancelScope()):  # race: the stop may have looked already
                for _ in range(6):
                    await work(1)
                    assert not was_stopped, "a stopped child went on"

        async def stopper() -> None:
            await work(3)
            was_stopped.append(True)
            if "child" in scopes:
                scopes["child"].cancel()

        async with trio.open_nursery() as nursery:
            for task in (child, stopper):
                nursery.start_soon(task)

    return main


def mail_in_hand(*, fixed: bool = False) -> Program:
    """A worker fails in an outage with a message in its hand, and is restarted without it."""

    async def main() -> None:
        to_worker, mailbox = trio.open_memory_channel[int](9)
        hand, stored = list[int](), list[int]()
        is_down, is_over = [False], trio.Event()

        async def outage() -> None:
            await work(6)
            is_down[0] = True
            await work(2)
            is_down[0] = False
            is_over.set()

        async def handle_all() -> None:
            while hand or mailbox.statistics().current_buffer_used:
                if not hand:
                    hand.append(await mailbox.receive())
                mail = hand[0] if fixed else hand.pop()
                await work(2)
                if is_down[0]:  # race: whether the outage meets a message in hand
                    raise ConnectionError
                stored.append(mail)
                if fixed:
                    hand.pop()

        async def worker() -> None:
            await work(3)
            try:
                await handle_all()
            except ConnectionError:
                await is_over.wait()
                await handle_all()

        for number in range(4):
            to_worker.send_nowait(number)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(outage)
            nursery.start_soon(worker)
        assert stored == [0, 1, 2, 3], "the message in hand was lost in a restart"

    return main


def mailbox_replaced(*, fixed: bool = False) -> Program:
    """A restarted actor gets a new mailbox, and what had come for it lies in the old one."""

    async def main() -> None:
        ways = [trio.open_memory_channel[str](9)]
        handled: list[str] = []

        async def actor() -> None:
            async for mail in ways[-1][1]:
                await work(2)
                if mail == "poison":
                    raise ValueError(mail)
                handled.append(mail)

        async def supervisor(restarted: trio.Event) -> None:
            try:
                await actor()
            except ValueError:
                if not fixed:
                    ways.append(trio.open_memory_channel[str](9))  # race: with what is still being sent
                restarted.set()
                await actor()

        async def sender() -> None:
            await ways[-1][0].send("poison")
            await work(8)
            await ways[-1][0].send("letter")

        restarted = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ring)
            nursery.start_soon(supervisor, restarted)
            await sender()
            await restarted.wait()
            ways[-1][0].close()
        assert handled == ["letter"], "a letter lies in the mailbox of a dead actor"

    return main


def counted_twice(*, fixed: bool = False) -> Program:
    """Two children fail of one cause and both report it; their supervisor counts two failures, and gives up."""

    async def main() -> None:
        to_supervisor, reports = trio.open_memory_channel[int](4)
        generation, restarts = [0], list[int]()
        scopes, dropped = [trio.CancelScope(), trio.CancelScope()], trio.Event()

        async def child(scope: trio.CancelScope, delay: int) -> None:
            with scope:
                await dropped.wait()
                await work(delay)
                to_supervisor.send_nowait(0)  # race: the supervisor may stop the sibling before it reports

        async def supervisor() -> None:
            async for failed in reports:
                if fixed and failed < generation[0]:
                    continue
                generation[0] += 1
                restarts.append(failed)
                for scope in scopes:
                    scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ring)
            nursery.start_soon(supervisor)
            async with to_supervisor, trio.open_nursery() as siblings:
                for scope, delay in zip(scopes, (1, 5), strict=True):
                    siblings.start_soon(child, scope, delay)
                await work(1)
                dropped.set()
        assert len(restarts) == 1, "one failure was counted twice"

    return main


def snapshot_of_the_dying(*, fixed: bool = False) -> Program:
    """A successor is started from what is stored while its predecessor is still storing its last state."""

    async def main() -> None:
        stored, begun_from = {"count": 0}, list[int]()
        life, ended = trio.CancelScope(), trio.Event()

        async def predecessor() -> None:
            count = 0
            with life:
                try:
                    for _ in range(20):
                        await work(1)
                        count += 1
                finally:
                    with trio.CancelScope(shield=True):
                        await work(1)
                        stored["count"] = count  # race: the successor may have read already
            ended.set()

        async def successor() -> None:
            await work(5)
            life.cancel()
            if fixed:
                await ended.wait()
            else:
                await work(4)
            begun_from.append(stored["count"])

        async with trio.open_nursery() as nursery:
            for task in (ring, predecessor, successor):
                nursery.start_soon(task)
        assert begun_from == [stored["count"]], "the successor began from an old state"

    return main


def restarted_after_stop(*, fixed: bool = False) -> Program:
    """A stop comes while a failed child waits for its restart: it is on no list, and is started afterwards."""

    async def main() -> None:
        running: dict[str, trio.CancelScope] = {}
        is_stopped = trio.Event()

        async def attempt(*, fails: bool) -> None:
            with trio.CancelScope() as running["child"]:
                for _ in range(3):
                    await work(1)
                    assert not is_stopped.is_set(), "a child was restarted after the stop"
                if fails:
                    raise OSError
            del running["child"]

        async def keeper() -> None:
            if is_stopped.is_set():
                return
            try:
                await attempt(fails=True)
            except OSError:
                del running["child"]
                await work(3)  # race: the stop finds nobody to stop
                if not (fixed and is_stopped.is_set()):
                    await attempt(fails=False)

        async def stopper() -> None:
            await work(12)
            is_stopped.set()
            for scope in running.values():
                scope.cancel()

        async with trio.open_nursery() as nursery:
            for task in (ring, keeper, stopper):
                nursery.start_soon(task)

    return main
