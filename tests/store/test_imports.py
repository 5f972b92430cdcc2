"""Export and import: a session leaves one store whole and is the same in another, but for what cannot be."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.app.history.export_lines import session_lines
from kesoku_actors.clock import seeded_world
from kesoku_actors.protocol import Channel, Inbound, JobEnding, Message, Outcome, Status, expected
from kesoku_actors.store import (
    BeginJob,
    CallStarted,
    CloseSession,
    Committed,
    Durability,
    EndJob,
    Gone,
    MarkDelivered,
    Post,
    Posted,
    ResultMode,
    SettleAttachment,
    StageOutcome,
    StoreInUse,
    WipeSession,
    WorkerKey,
)
from kesoku_actors.store.alone import importing_into
from kesoku_actors.store.archive import SessionArchive
from kesoku_actors.store.imports import AlreadyThere
from tests.store.home import ROOM, Home, calling, cut, done, living, saying, step, take

LIVE = {Status.PENDING_AGENT, Status.PROCESSING, Status.PENDING}


@define
class Story:
    """Things that may happen in one session, each when it can."""

    home: Home
    key: WorkerKey | None = None
    root: Message | None = None
    calls: list[str] = field(factory=list)
    started: list[str] = field(factory=list)
    settled: set[str] = field(factory=set)
    jobs: list[str] = field(factory=list)
    said: int = 0

    async def say(self) -> None:
        self.said += 1
        await self.home.say(f"message {self.said} 東京", external_id=f"x{self.said}" if self.said % 3 == 0 else None)

    async def send_a_file(self) -> None:
        items = [expected("a.png", "image/png").as_data()]
        inbound = Inbound(chatbot_id="bot", channel_id="room", content="look", metadata={"attachments": items})
        posted = await self.home.store.post(Post(id=self.home.next(), inbound=inbound))
        if self.said % 2 and isinstance(posted, Posted):
            settle = SettleAttachment(message_id=posted.message.id, index=0, path="attachments/a.png")
            await self.home.store.settle_attachment(settle)

    async def ring(self) -> None:
        await self.home.ring(wakes=False)

    async def claim(self) -> None:
        waiting = [each for each in await self.home.reader.waiting(await self.session()) if each.is_person]
        if self.root is not None or not waiting:
            return
        self.key = self.key or await self.home.hire(await self.session())
        first = await self.home.reader.message(waiting[0].id)
        assert first is not None
        reply = await self.home.commit(self.key, claim=take(first))
        self.root = first if isinstance(reply, Committed) else None

    async def call_tools(self) -> None:
        if self.key and self.root and not self.calls:
            reply = await self.home.stand(
                self.key, self.root, step=step(), insert=(saying("well", Status.RESPONDED), calling("a"), calling("b"))
            )
            self.calls = [each.call_id for each in reply.open_calls]

    async def start_one(self) -> None:
        left = [call for call in self.calls if call not in self.started]
        if left:
            await self.home.store.call_started(CallStarted(call_id=left[0]))
            self.started.append(left[0])

    async def end_one(self) -> None:
        left = [call for call in self.started if call not in self.settled]
        if left:
            facts = {"exit_status": 0}
            await self.home.store.stage(
                StageOutcome(call_id=left[0], outcome=Outcome.OK, content="out", duration_s=1.5, metadata=facts)
            )
            self.settled.add(left[0])

    async def background_one(self) -> None:
        left = [call for call in self.started if call not in self.settled]
        if left:
            begin = BeginJob(call_id=left[0], title="sleep", content=("runs on as ", "."), duration_s=2.0)
            await self.home.store.begin_job(begin)
            self.settled.add(left[0])
            self.jobs.append(left[0])

    async def end_job(self) -> None:
        if self.jobs:
            end = EndJob(call_id=self.jobs.pop(), ending=JobEnding.EXITED, detail="exit status 0", notice="it ended")
            await self.home.store.end_job(end)

    async def publish(self) -> None:
        if self.key and self.root and self.calls and set(self.calls) == self.settled:
            await self.home.stand(self.key, self.root, results=ResultMode.PUBLISH)
            self._no_calls()

    async def answer(self) -> None:
        if self.key and self.root and not self.calls:
            reply = await self.home.stand(
                self.key, self.root, step=step(), insert=(saying("the answer"),), ends=(done(self.root),)
            )
            if self.said % 2:
                answer = next(row for row in reply.rows if row.status is Status.PENDING)
                await self.home.store.mark_delivered(MarkDelivered(message_id=answer.id, delivered=True))
            self.root = None

    async def interrupt(self) -> None:
        if self.key and self.root:
            await self.home.stand(self.key, self.root, results=ResultMode.SETTLE, ends=(cut(self.root),))
            self.root = None
            self._no_calls()

    def _no_calls(self) -> None:
        self.calls, self.started, self.settled = [], [], set()

    async def session(self) -> str:
        session_id = await self.home.reader.open_session(ROOM)
        if session_id is None:
            await self.say()
            session_id = await self.home.reader.open_session(ROOM)
        assert session_id is not None
        return session_id


ACTIONS = [
    Story.say,
    Story.send_a_file,
    Story.ring,
    Story.claim,
    Story.call_tools,
    Story.start_one,
    Story.end_one,
    Story.background_one,
    Story.end_job,
    Story.publish,
    Story.answer,
    Story.interrupt,
]


async def archive_of(path: Path) -> SessionArchive:
    async with living(path) as home:
        session_id = await home.reader.open_session(ROOM)
        assert session_id is not None
        archive = await home.reader.archive(session_id)
        assert archive is not None
        return archive


def bring(path: Path, *archives: SessionArchive) -> Any:
    world = seeded_world(9)
    with importing_into(path, durability=Durability.NORMAL, world=world, warn=lambda _line: None) as take_all:
        return take_all(iter(archives))


def ranked(archive: SessionArchive) -> list[dict[str, Any]]:
    """The lines of an export with ranks for numbers."""
    rank = {number: index for index, number in enumerate(archive.numbers())}
    lines = [json.loads(json.dumps(line)) for line in session_lines(archive)]
    for line in lines:
        for key in ("seq", "place"):
            if line.get(key) is not None:
                line[key] = rank[line[key]]
    return lines


def without(line: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in keys}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=40))
def test_the_export_of_an_import_is_the_export_but_for_what_was_live(actions: list[Any]) -> None:
    async def happen(path: Path) -> None:
        async with living(path, seed=1) as home:
            story = Story(home)
            await story.say()
            for action in actions:
                await action(story)

    with tempfile.TemporaryDirectory() as folder:
        one, two, three = (Path(folder) / f"{name}.db" for name in ("one", "two", "three"))
        trio.run(happen, one)
        first = trio.run(archive_of, one)
        done = bring(two, first)
        second = trio.run(archive_of, two)
        bring(three, second)
        third = trio.run(archive_of, three)

    assert ranked(third) == ranked(second), "what is not live is the same to the last sign"
    live = {message.id for message in first.messages if message.status in LIVE}
    files = {each.id for each in first.messages if any("state" in it for it in each.metadata.get("attachments", ()))}
    assert done.messages == len(first.messages)
    if not live | files and all(call.is_published for call in first.calls):
        lost = {job.call_id for job in first.jobs if job.ending is None}
        assert [line for line in ranked(second) if line.get("call_id") not in lost or line["kind"] != "job"] == [
            line for line in ranked(first) if line.get("call_id") not in lost or line["kind"] != "job"
        ]
    before, after = ({row.id: row for row in archive.messages} for archive in (first, second))
    assert [row.id for row in second.messages if row.id in before] == list(before), "ids and order are kept"
    for id, row in before.items():
        now = after[id]
        if id in live:
            wanted = Status.UNDELIVERABLE if row.status is Status.PENDING else Status.INTERRUPTED
            assert (now.status, now.metadata["reason"]) == (wanted, "imported")
            assert now.root_id is not None or row.status is Status.PENDING
        else:
            assert now.status is row.status
        if id not in live | files:
            assert (now.content, now.metadata, now.root_id) == (row.content, row.metadata, row.root_id)
        assert (now.timestamp, now.sender, now.external_id) == (row.timestamp, row.sender, row.external_id)
    assert not any(row.status in LIVE for row in after.values())
    results = [row.parent_id for row in second.messages if row.parent_id in {call.call_id for call in second.calls}]
    assert sorted(results) == sorted(call.call_id for call in second.calls), "O4: one result for each call"


async def test_a_session_that_is_there_is_refused_and_nothing_of_the_file_is_kept(tmp_path: Path) -> None:
    async with living(tmp_path / "one.db", seed=1) as home:
        await home.say("first")
        second = await home.say("second", channel=Channel(chatbot_id="bot", channel_id="second"))
        both = [await home.reader.archive(each.id) for each in reversed(await home.reader.sessions(9))]
        archives = [each for each in both if each is not None]
    bring(tmp_path / "two.db", archives[1])
    with pytest.raises(AlreadyThere, match=second.session_id):
        bring(tmp_path / "two.db", *archives)
    async with living(tmp_path / "two.db") as home:
        assert [each.id for each in await home.reader.sessions(9)] == [second.session_id]


async def test_a_channel_with_an_open_session_takes_no_second_one(tmp_path: Path) -> None:
    async with living(tmp_path / "one.db", seed=1) as home:
        await home.say("first")
    async with living(tmp_path / "two.db", seed=2) as home:
        await home.say("other")
    archive = await archive_of(tmp_path / "one.db")
    with pytest.raises(AlreadyThere, match="M6"):
        bring(tmp_path / "two.db", archive)


async def test_a_cleared_session_can_be_brought_back(tmp_path: Path) -> None:
    path = tmp_path / "one.db"
    async with living(path, seed=1) as home:
        key, root = await home.begin("hello")
        await home.answer(key, root)
        session_id = key.session_id
    archive = await archive_of(path)
    async with living(path, seed=2) as home:
        await home.store.close_session(CloseSession(session_id=session_id))
        await home.store.wipe(WipeSession(session_id=session_id))
    bring(path, archive)
    async with living(path, seed=3) as home:
        assert await home.contents(session_id) == ["hello", "hi"]
        more = await home.say("more")
        assert more.session_id == session_id


async def test_an_external_id_of_an_import_was_seen(tmp_path: Path) -> None:
    async with living(tmp_path / "one.db", seed=1) as home:
        message = await home.say("hello", external_id="x1")
    bring(tmp_path / "two.db", await archive_of(tmp_path / "one.db"))
    async with living(tmp_path / "two.db", seed=2) as home:
        inbound = Inbound(chatbot_id="bot", channel_id="room", content="hello", external_id="x1")
        reply = await home.store.post(Post(id="p", inbound=inbound))
        assert not isinstance(reply, Gone)
        assert isinstance(reply, Posted)
        assert (reply.message.id, reply.is_new) == (message.id, False)


async def test_a_store_in_use_takes_no_import(tmp_path: Path) -> None:
    async with living(tmp_path / "one.db", seed=1) as home:
        await home.say("hello")
    archive = await archive_of(tmp_path / "one.db")
    async with living(tmp_path / "two.db") as home:
        with pytest.raises(StoreInUse):
            bring(tmp_path / "two.db", archive)


async def test_imported_rows_stand_above_every_cursor(tmp_path: Path) -> None:
    async with living(tmp_path / "one.db", seed=1) as home:
        key, root = await home.begin("hello")
        await home.answer(key, root)
    async with living(tmp_path / "two.db", seed=2) as home:
        await home.say("other", channel=Channel(chatbot_id="bot", channel_id="other"))
        head = await home.reader.head()
    bring(tmp_path / "two.db", await archive_of(tmp_path / "one.db"))
    async with living(tmp_path / "two.db", seed=3) as home:
        assert len((await home.reader.changes(head, 99)).changed) == 2
