"""The people of a campaign: they follow the script in a channel, and note what they were told is done.

Their facts are `posted ID MESSAGE SESSION`, `attached ID PATH`, `stopped ID`, `cleared ID SESSION`, `edited ID yes|no`
and `withdrawing ID`, `withdrawn ID yes|no`; a no says that its message waited no more. Followed again after a kill, the
script goes on at the first step that is not a fact.
"""

from __future__ import annotations

from contextlib import aclosing, suppress
from pathlib import Path
from typing import assert_never

import trio
from attrs import define

from kesoku_actors.adapters.saving import receive
from kesoku_actors.app.workspaces import workspace_folder
from kesoku_actors.errors import NotFound
from kesoku_actors.gateway import Gateway
from kesoku_actors.log import Logger
from kesoku_actors.protocol import (
    ANONYMOUS,
    ATTACHMENTS,
    Changed,
    Channel,
    Inbound,
    JobState,
    Message,
    Removed,
    Stop,
    Type,
    attachments_in,
    expected,
)
from kesoku_actors.store import Posted, TooEarly
from scripts.crashes.files import append, lines
from scripts.crashes.script import AwaitJobs, Clear, Decide, Edit, ForceTurn, Say, SetMode, Step, StopTurn, Withdraw


@define(eq=False)
class Facts:
    """What people were told is done."""

    path: Path

    def add(self, *words: str) -> None:
        append(self.path, " ".join(words))

    def find(self, *words: str) -> list[str] | None:
        """Return the first fact that begins with these words, or none."""
        return next((fact for fact in lines(self.path) if fact[: len(words)] == list(words)), None)


def channel_of(name: str) -> Channel:
    """Return the channel of a part of the script."""
    return Channel(chatbot_id="campaign", channel_id=name)


@define(eq=False, kw_only=True)
class People:
    """Follow the script in one channel."""

    gateway: Gateway
    channel: Channel
    facts: Facts
    sessions_dir: Path
    log: Logger

    async def follow(self, steps: tuple[Step, ...]) -> None:
        """Do every step that is not a fact, then wait until all has left and nothing of a cleared session is there."""
        for step in steps:
            match step:
                case Say():
                    await self._say(step)
                case StopTurn(id=id):
                    await self._stop(id)
                case ForceTurn(id=id):
                    await self._force(id)
                case Edit(id=id, text=text):
                    await self._edit(id, text)
                case Withdraw(id=id):
                    await self._withdraw(id)
                case Clear(id=id):
                    await self._clear(id)
                case Decide(id=id, approved=approved):
                    await self._decide(id, approved)
                case AwaitJobs(id=id):
                    await self._await_jobs(id)
                case SetMode(mode=mode):
                    await self.gateway.set_mode(self.channel, mode)
                case _:
                    assert_never(step)
        while await self._is_something_left():  # noqa: ASYNC110  (nothing tells when a folder is gone)
            await trio.sleep(0.02)

    async def _say(self, step: Say) -> None:
        posted = await self.gateway.post(
            Inbound(
                chatbot_id=self.channel.chatbot_id,
                channel_id=self.channel.channel_id,
                content=step.text,
                external_id=step.id,
                metadata={} if step.file is None else {ATTACHMENTS: [expected("file.txt").as_data()]},
            )
        )
        if not isinstance(posted, Posted):
            return  # its session was cleared, or it was withdrawn
        message = posted.message
        if self.facts.find("posted", step.id) is None:
            self.facts.add("posted", step.id, message.id, message.session_id)
        if step.file is not None and self.facts.find("attached", step.id) is None:
            await self._attach(step.id, message, step.file)
        if step.until == "posted":
            return

        async with aclosing(self.gateway.listen(session_id=message.session_id, hints=False, after=0)) as events:
            async for event in events:
                match event:
                    case Changed(message=row) if row.id == message.id and row.has_ended:
                        return
                    case Changed(message=row) if row.type is Type.TOOL_CALL and row.root_id == message.id:
                        if step.until == "calls":
                            return
                    case Removed(message_id=message.id):
                        return  # a clear that an earlier life began
                    case _:
                        continue

    async def _stop(self, id: str) -> None:
        if self.facts.find("stopped", id) is None:
            await self.gateway.stop(*self._posted(id))
            self.facts.add("stopped", id)

    async def _attach(self, id: str, message: Message, content: str) -> None:
        workspace = workspace_folder(self.sessions_dir, message.session_id)
        pieces = [content.encode()]
        await receive(message, 0, pieces, gateway=self.gateway, workspace=workspace, log=self.log)
        now = await self.gateway.reader.message(message.id)
        assert now is not None
        [attachment] = attachments_in(now.metadata)
        self.facts.add("attached", id, str(Path(workspace.name, attachment.path or "nowhere")))

    async def _force(self, id: str) -> None:
        if self.facts.find("stopped", id) is None:
            session_id, message_id = self._posted(id)
            await self.gateway.stop(session_id, message_id)
            while isinstance(forced := await self.gateway.force(session_id), TooEarly):  # noqa: ASYNC110  (it says when)
                await trio.sleep(forced.wait_s)
            if isinstance(forced, Stop):
                await self.gateway.stop_receipt(forced)
            self.facts.add("stopped", id)

    async def _edit(self, id: str, text: str) -> None:
        if self.facts.find("edited", id) is None:
            _, message_id = self._posted(id)
            edited = await self.gateway.edit(message_id, text)
            self.facts.add("edited", id, "no" if edited is None else "yes")

    async def _withdraw(self, id: str) -> None:
        if self.facts.find("withdrawn", id) is None:
            _, message_id = self._posted(id)
            self.facts.add("withdrawing", id)
            withdrawn = await self.gateway.withdraw(message_id)
            self.facts.add("withdrawn", id, "yes" if withdrawn else "no")

    def _posted(self, id: str) -> tuple[str, str]:
        """Return the session and the id of a message that was posted."""
        posted = self.facts.find("posted", id)
        assert posted is not None
        return posted[3], posted[2]

    async def _clear(self, id: str) -> None:
        if self.facts.find("cleared", id) is None:
            session_id, _ = self._posted(id)
            with suppress(NotFound):  # an earlier life has cleared it, and was killed before it told
                await self.gateway.clear(session_id)
            self.facts.add("cleared", id, session_id)

    async def _decide(self, id: str, approved: bool) -> None:
        session_id, message_id = self._posted(id)
        while (row := await self.gateway.reader.message(message_id)) is not None and not row.has_ended:
            for approval in await self.gateway.reader.approvals(session_id):
                await self.gateway.answer_approval(approval.call_id, approved, ANONYMOUS)
            await trio.sleep(0.02)

    async def _await_jobs(self, id: str) -> None:
        session_id, _ = self._posted(id)
        jobs = await self.gateway.reader.jobs(session_id)
        while any(job.state is not JobState.TOLD for job in jobs):
            await trio.sleep(0.02)
            jobs = await self.gateway.reader.jobs(session_id)

    async def _is_something_left(self) -> bool:
        return bool(
            await self.gateway.leaving(self.channel)
            or await self.gateway.reader.closed_sessions()
            or (self.sessions_dir / ".trash").exists()
        )
