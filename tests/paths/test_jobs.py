"""Background jobs on the whole path (I8, I6, I7, M7, C3, C7)."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field
from trio.testing import MockClock

from kesoku_actors.llm.scripted import Call, Say
from kesoku_actors.protocol import Changed, JobState, Message, Outcome, Role, Status, Stop, Type
from kesoku_actors.tools import ToolContext, ToolOptions, ToolOutcome, ToolRegistry
from tests.paths.house import Home, at_home, texts
from tests.paths.test_crashes import Bomb

CALL = (Call(name="work", arguments={"seconds": 1_000.0}),)
FORGOTTEN = (Say(text="It takes long."),)
TOLD = (Say(text="It has ended."),)


@define(eq=False)
class Work:
    """A tool that becomes a job after 300 s."""

    ended: list[float] = field(factory=list)

    async def work(self, context: ToolContext, seconds: float) -> ToolOutcome:
        """Work."""
        context.watch(lambda: ToolOutcome(outcome=Outcome.OK, content="at work"))
        await trio.sleep(seconds)
        self.ended.append(seconds)
        return ToolOutcome(outcome=Outcome.OK, content="worked", metadata={"exit_status": 0})

    @property
    def registry(self) -> ToolRegistry:
        made = ToolRegistry()
        made.add(self.work, owner="test", becomes_job=True)
        return made


def working(work: Work, **options: Any) -> dict[str, Any]:
    return {"registry": work.registry, "tool_options": ToolOptions(deadline_s=300.0), **options}


def is_of_a_job(row: Message) -> bool:
    return row.role is Role.SYSTEM and "job" in row.metadata


async def notices(home: Home, session_id: str) -> list[Message]:
    """The notices of jobs, those that wait too."""
    found = await home.gateway.reader.changes(0, 1_000)
    return [
        row
        for row in found.changed
        if row.session_id == session_id and "job" in row.metadata and row.role is Role.SYSTEM
    ]


async def told(home: Home, session_id: str) -> Message:
    """Wait for the notice of a job."""
    return await home.until(
        lambda row: row.session_id == session_id and row.role is Role.SYSTEM and "job" in row.metadata
    )


async def test_a_command_at_its_deadline_goes_on_and_its_end_begins_a_turn(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    work = Work()
    async with at_home(tmp_path, [CALL, FORGOTTEN, TOLD], **working(work)) as home:
        message = await home.say("Work.")
        assert (await home.ended(message)).status is Status.PROCESSED
        assert 300 <= trio.current_time() < 301
        notice = await told(home, message.session_id)
        assert 1_000 <= trio.current_time() < 1_001
        assert (await home.ended(notice)).status is Status.PROCESSED
        assert len(await notices(home, message.session_id)) == 1
        assert texts(await home.rows(message.session_id))[-2:] == [notice.content, "It has ended."]
        assert notice.content.startswith("The background job job1 () has ended by itself: exit status 0.")
        (job,) = await home.gateway.reader.jobs(message.session_id)
        assert (job.state, job.detail) == (JobState.TOLD, "exit status 0")


async def test_only_people_interrupt_a_job_s_end_waits_for_the_turn(tmp_path: Path, autojump_clock: MockClock) -> None:
    work = Work()
    long = (Call(name="work", arguments={"seconds": 200.0}),)
    script = [CALL, FORGOTTEN, *[long] * 4, FORGOTTEN, TOLD]
    async with at_home(tmp_path, script, **working(work)) as home:
        await home.ended(await home.say("Work."))
        second = await home.say("Go on.")
        notice = await told(home, second.session_id)
        assert (await home.gateway.reader.message(second.id)).status is Status.PROCESSING
        assert (await home.ended(second)).status is Status.PROCESSED
        assert (await home.ended(notice)).root_id == notice.id, "a turn of its own, after the one that ran"


async def test_a_person_comes_first_and_the_end_of_the_job_is_read_along(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    work = Work()
    async with at_home(tmp_path, [CALL, FORGOTTEN, TOLD], **working(work)) as home:
        first = await home.say("Work.")
        await home.ended(first)
        job_ends = await told(home, first.session_id)
        answered = await home.ended(job_ends)
        assert answered.status is Status.PROCESSED
        assert len(home.prompts()) == 3


@pytest.mark.parametrize("seconds", [300.0, 301.0])
async def test_the_notice_never_comes_before_the_result(
    tmp_path: Path, autojump_clock: MockClock, seconds: float
) -> None:
    """The batch is published when its last call is settled, long after the job has ended."""
    work = Work()
    script = [
        (Call(name="work", arguments={"seconds": 310.0}), Call(name="nap", arguments={})),
        FORGOTTEN,
        TOLD,
    ]

    async def nap() -> str:
        """Sleep."""
        await trio.sleep(seconds + 200)
        return "slept"

    registry = work.registry
    registry.add(nap, owner="test", deadline_s=1e6)
    async with at_home(tmp_path, script, **working(work, registry=registry)) as home:
        message = await home.say("Work.")
        notice = await told(home, message.session_id)
        rows = await home.rows(message.session_id)
        results = [row.seq for row in rows if row.type is Type.TOOL_RESULT]
        assert len(results) == 2
        assert max(results) < notice.seq
        assert (await home.ended(notice)).status is Status.PROCESSED


async def test_force_ends_the_job_of_its_turn_the_receipt_names_it_and_nothing_wakes(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    work = Work()
    script = [CALL, (Call(name="work", arguments={"seconds": 250.0}),)]
    async with at_home(tmp_path, script, **working(work)) as home:
        message = await home.say("Work.")
        await home.until(lambda row: row.metadata.get("outcome") == Outcome.BACKGROUND)
        await home.until_recorded(lambda: bool(home.house.tools.statistics().running))
        stop = await home.gateway.stop(message.session_id)
        assert isinstance(stop, Stop)
        await trio.sleep(1.5)
        assert isinstance(await home.gateway.force(message.session_id), Stop)
        receipt = await home.gateway.stop_receipt(stop)
        assert receipt.jobs == ("job1: ",)
        notice = await told(home, message.session_id)
        assert (notice.metadata["ending"], notice.wakes) == ("forced", False)
        await trio.sleep(1_000)
        assert len(home.prompts()) == 2, "no turn was begun for it"
        assert home.house.tools.statistics().jobs == ()


async def test_a_stop_leaves_jobs_and_its_receipt_says_so(tmp_path: Path, autojump_clock: MockClock) -> None:
    work = Work()
    script = [CALL, (Call(name="work", arguments={"seconds": 10.0}),), TOLD]
    async with at_home(tmp_path, script, **working(work)) as home:
        message = await home.say("Work.")
        await home.until(lambda row: row.metadata.get("outcome") == Outcome.BACKGROUND)
        stop = await home.gateway.stop(message.session_id)
        assert isinstance(stop, Stop)
        receipt = await home.gateway.stop_receipt(stop)
        assert (receipt.jobs, receipt.survivors) == ((), ("job1: ",))
        assert (await home.ended(await told(home, message.session_id))).status is Status.PROCESSED


async def test_a_clear_ends_jobs_before_anything_of_the_session_goes(tmp_path: Path, autojump_clock: MockClock) -> None:
    work, gone = Work(), list[int]()

    def look(point: str) -> None:
        if point == "clear.before_discard":
            gone.append(len(home.house.tools.statistics().jobs))

    async with at_home(tmp_path, [CALL, FORGOTTEN, TOLD], **working(work, probe=look)) as home:
        message = await home.say("Work.")
        await home.ended(message)
        async with aclosing(home.gateway.listen(hints=False)) as events:
            await home.gateway.clear(message.session_id)
            async for event in events:
                if not isinstance(event, Changed):
                    break
        assert gone == [0]
        assert await home.gateway.reader.jobs(message.session_id) == ()
        await trio.sleep(2_000)
    assert (work.ended, len(home.prompts())) == ([], 2)


async def test_a_stop_of_the_program_ends_jobs_at_once_and_tells_of_them_without_waking(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    work = Work()
    async with at_home(tmp_path, [CALL, FORGOTTEN], **working(work)) as home:
        message = await home.say("Work.")
        await home.ended(message)
        stopped = trio.current_time()
    assert trio.current_time() - stopped < 5, "a job is no reason to wait"
    async with at_home(tmp_path, [TOLD], seed=2, **working(work)) as home:
        (notice,) = await notices(home, message.session_id)
        assert (notice.metadata["ending"], notice.wakes, notice.status) == ("shutdown", False, Status.PENDING_AGENT)
        await trio.sleep(1_000)
        assert home.prompts() == []
        await home.ended(await home.say("And now?"))
        assert notice.content in home.prompts()[0], "the next turn reads it"


POINTS = ["job.before_begin", "job.begun", "job.ended", "job.told"]


@pytest.mark.parametrize("point", POINTS)
async def test_a_run_that_crashes_at_any_point_is_told_of_once(
    tmp_path: Path, autojump_clock: MockClock, point: str
) -> None:
    work, bomb = Work(), Bomb(times=1, goes_off=lambda reached: reached == point)
    async with at_home(tmp_path, [CALL, FORGOTTEN, TOLD], **working(work, probe=bomb)) as home:
        message = await home.say("Work.")
        assert (await home.ended(message)).status is Status.PROCESSED
        await trio.sleep(2_000)
        (result,) = [row for row in await home.rows(message.session_id) if row.type is Type.TOOL_RESULT]
        found = [(row.metadata["ending"], row.status) for row in await notices(home, message.session_id)]
        match point:
            case "job.before_begin":
                assert (result.metadata["outcome"], found) == ("unknown", [])
            case "job.begun" | "job.ended":
                assert (result.metadata["outcome"], found) == ("background", [("lost", Status.PROCESSED)])
            case _:
                assert (result.metadata["outcome"], found) == ("background", [("exited", Status.PROCESSED)])
        assert home.house.tools.statistics().jobs == ()
    assert len(bomb.blown) == 1


async def test_a_worker_s_death_is_nothing_to_a_job(tmp_path: Path, autojump_clock: MockClock) -> None:
    work = Work()
    bomb = Bomb(times=1, goes_off=lambda event: type(event).__name__ == "PromptBuilt" and trio.current_time() > 299)
    async with at_home(tmp_path, [CALL, FORGOTTEN, TOLD], at_event=bomb, **working(work)) as home:
        message = await home.say("Work.")
        assert (await home.ended(message)).status is Status.PROCESSED
        assert (await home.ended(await told(home, message.session_id))).status is Status.PROCESSED
        assert len(await notices(home, message.session_id)) == 1
    assert (work.ended, len(bomb.blown)) == ([1_000.0], 1)
