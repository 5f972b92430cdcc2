"""Jobs (I8, C3): one result, one end, one notice, and in this order whatever comes between."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesoku_actors.protocol import (
    Channel,
    JobBegun,
    JobEnding,
    JobState,
    Message,
    Outcome,
    Reason,
    Role,
    Stop,
    TooManyJobs,
)
from kesoku_actors.store import (
    BeginEpoch,
    BeginJob,
    CallProcess,
    CallStarted,
    CloseSession,
    EndJob,
    RequestForce,
    ResultMode,
    StageOutcome,
    StopOutcome,
    WipeSession,
    WorkerKey,
)
from tests.store.home import ROOM, Home, cut, living, take


def job(call: str, **parts: object) -> BeginJob:
    shape = {"title": "make all", "content": ("compiling\n[", " goes on]"), "duration_s": 300.0, **parts}
    return BeginJob(call_id=call, **shape)  # type: ignore[arg-type]  # parts are fields of the command


def over(call: str, ending: JobEnding = JobEnding.EXITED) -> EndJob:
    return EndJob(call_id=call, ending=ending, detail="exit status 0", notice="job1 has ended")


async def at_work(home: Home, *names: str) -> tuple[WorkerKey, Message, tuple[str, ...]]:
    """A turn whose calls run."""
    key, root = await home.begin()
    calls = await home.call(key, root, *names)
    for call in calls:
        assert await home.store.call_started(CallStarted(call_id=call))
        await home.store.call_process(CallProcess(call_id=call, pid=77, process_start=5.0))
    return key, root, calls


async def notices(home: Home, session_id: str) -> list[tuple[str, bool]]:
    rows = [await home.reader.message(each.id) for each in await home.reader.waiting(session_id)]
    return [(row.content, row.wakes) for row in rows if row is not None and row.role is Role.SYSTEM]


async def test_a_call_becomes_a_job_and_its_result_names_it(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root, (call,) = await at_work(home, "shell")
        assert await home.store.begin_job(job(call)) == JobBegun(number=1)
        (result,) = (await home.stand(key, root, results=ResultMode.PUBLISH)).rows
        assert (result.metadata["outcome"], result.metadata["job"]) == (Outcome.BACKGROUND, "job1")
        assert result.content == "compiling\n[job1 goes on]"
        (found,) = await home.reader.jobs(key.session_id)
        assert (found.id, found.title, found.state, found.began) == ("job1", "make all", JobState.RUNNING, 1_000.0)


async def test_the_notice_follows_the_result_and_wakes(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root, (call,) = await at_work(home, "shell")
        await home.store.begin_job(job(call))
        await home.stand(key, root, results=ResultMode.PUBLISH)
        home.time.now += 60
        assert await home.store.end_job(over(call))
        assert await notices(home, key.session_id) == [("job1 has ended", True)]
        (told,) = home.published().changed
        assert told.metadata == {"notice": "job", "job": "job1", "ending": "exited", "wakes": True}
        (found,) = await home.reader.jobs(key.session_id)
        assert (found.state, found.ended, found.ending) == (JobState.TOLD, 1_060.0, JobEnding.EXITED)


@pytest.mark.parametrize("results", [ResultMode.PUBLISH, ResultMode.SETTLE])
async def test_a_job_that_ends_before_its_result_is_published_is_told_with_it(tmp_path: Path, results: ResultMode):
    async with living(tmp_path / "k.db") as home:
        key, root, (call, other) = await at_work(home, "shell", "shell")
        await home.store.begin_job(job(call))
        assert await home.store.end_job(over(call))
        assert await notices(home, key.session_id) == []
        (found,) = await home.reader.jobs(key.session_id)
        assert found.state is JobState.OVER
        await home.store.stage(StageOutcome(call_id=other, outcome=Outcome.OK, content="", duration_s=1.0))
        ends = (cut(root, Reason.STOPPED),) if results is ResultMode.SETTLE else ()
        reply = await home.stand(key, root, results=results, ends=ends)
        told = [row for row in reply.rows if row.role is Role.SYSTEM]
        assert [row.content for row in told] == ["job1 has ended"]
        assert all(row.seq < told[0].seq for row in reply.rows if row.role is Role.TOOL), "O3: results stand together"


async def test_a_job_ends_once(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root, (call,) = await at_work(home, "shell")
        await home.store.begin_job(job(call))
        await home.stand(key, root, results=ResultMode.PUBLISH)
        assert await home.store.end_job(over(call))
        assert not await home.store.end_job(over(call, JobEnding.LOST))
        assert len(await notices(home, key.session_id)) == 1


async def test_a_beginning_sent_again_begins_nothing(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, _root, (first, second) = await at_work(home, "shell", "shell")
        assert await home.store.begin_job(job(first)) == await home.store.begin_job(job(first)) == JobBegun(number=1)
        assert await home.store.begin_job(job(second)) == JobBegun(number=2)
        assert len(await home.reader.jobs(key.session_id)) == 2


async def test_a_settled_call_becomes_no_job(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, _root, (call,) = await at_work(home, "shell")
        await home.store.stage(StageOutcome(call_id=call, outcome=Outcome.OK, content="", duration_s=1.0))
        assert await home.store.begin_job(job(call)) is None
        assert await home.store.begin_job(job("unknown")) is None
        assert await home.reader.jobs(key.session_id) == ()


async def test_jobs_of_a_session_are_bounded_and_an_ended_one_makes_room(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        _key, _root, (first, second) = await at_work(home, "shell", "shell")
        await home.store.begin_job(job(first, max_jobs=1))
        assert await home.store.begin_job(job(second, max_jobs=1)) == TooManyJobs(max_jobs=1)
        await home.store.end_job(over(first))
        assert await home.store.begin_job(job(second, max_jobs=1)) == JobBegun(number=2)


@pytest.mark.parametrize("ending", JobEnding)
async def test_only_an_end_that_nobody_asked_for_wakes(tmp_path: Path, ending: JobEnding):
    async with living(tmp_path / "k.db") as home:
        key, root, (call,) = await at_work(home, "shell")
        await home.store.begin_job(job(call))
        await home.stand(key, root, results=ResultMode.PUBLISH)
        await home.store.end_job(over(call, ending))
        ((_text, wakes),) = await notices(home, key.session_id)
        assert wakes == (ending in (JobEnding.EXITED, JobEnding.LOST))


async def test_jobs_of_a_dead_process_are_told_to_the_next_and_those_of_a_living_one_are_not(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root, calls = await at_work(home, "shell", "shell")
        for call in calls:
            await home.store.begin_job(job(call))
        await home.stand(key, root, results=ResultMode.PUBLISH)
        assert (await home.store.begin_epoch(BeginEpoch(clean=False))).dead_jobs == ()
    async with living(tmp_path / "k.db", seed=1) as home:
        elsewhere = Channel(chatbot_id=ROOM.chatbot_id, channel_id="elsewhere")
        assert (await home.store.begin_epoch(BeginEpoch(clean=False, channels=(elsewhere,)))).dead_jobs == ()
        found = (await home.store.begin_epoch(BeginEpoch(clean=False, channels=(ROOM,)))).dead_jobs
        assert [(dead.call_id, dead.pid, dead.process_start, dead.job) for dead in found] == [
            (calls[0], 77, 5.0, "job1"),
            (calls[1], 77, 5.0, "job2"),
        ]
        for call in calls:
            assert await home.store.end_job(over(call, JobEnding.LOST))
        assert (await home.store.begin_epoch(BeginEpoch(clean=False))).dead_jobs == ()
        assert len(await notices(home, key.session_id)) == 2


async def test_a_cleared_session_is_told_nothing_and_forgets_its_jobs(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root, (call,) = await at_work(home, "shell")
        await home.store.begin_job(job(call))
        await home.stand(key, root, results=ResultMode.PUBLISH)
        await home.answer(key, root)
        await home.store.close_session(CloseSession(session_id=key.session_id))
        assert await home.store.end_job(over(call, JobEnding.CLEARED))
        assert await notices(home, key.session_id) == []
        await home.store.wipe(WipeSession(session_id=key.session_id))
        assert await home.reader.jobs(key.session_id) == ()


async def test_a_receipt_names_the_jobs_that_end_with_the_stop_and_what_lives_on(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, old, (before,) = await at_work(home, "shell")
        await home.store.begin_job(job(before, title="serve  \n forever"))
        await home.stand(key, old, results=ResultMode.PUBLISH)
        await home.answer(key, old)
        root = await home.say("more")
        await home.stand(key, claim=take(root))
        job_call, process, thread = await home.call(key, root, "shell", "shell", "nap")
        for call in (job_call, process, thread):
            await home.store.call_started(CallStarted(call_id=call))
        await home.store.begin_job(job(job_call))
        for call, left in (
            (process, {"survivors": [{"pid": 9, "name": "sleep", "start": 1.0}]}),
            (thread, {"thread": "tool nap"}),
        ):
            await home.store.stage(
                StageOutcome(call_id=call, outcome=Outcome.UNKNOWN, content="", duration_s=1.0, metadata=left)
            )
        stop = await home.stop(key.session_id)
        home.time.now += 2
        assert isinstance(await home.store.force(RequestForce(session_id=key.session_id)), Stop)
        await home.stand(key, root, results=ResultMode.SETTLE, ends=(cut(root, Reason.FORCED),))
        receipt = StopOutcome(
            ended=(root.id,),
            jobs=("job2: make all",),
            survivors=("job1: serve forever", "sleep (pid 9)", "a thread (tool nap)"),
        )
        assert await home.reader.stop_outcome(stop.seq) == receipt
        await home.store.end_job(over(job_call, JobEnding.FORCED))
        assert await home.reader.stop_outcome(stop.seq) == receipt
