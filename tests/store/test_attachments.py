"""M8: attachments are expected and settled once; what comes late is told apart from what the model has read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kesoku_actors.errors import NotFound
from kesoku_actors.protocol import (
    SYSTEM,
    Attachment,
    Inbound,
    InvalidMessage,
    Message,
    Reason,
    Role,
    SessionState,
    Status,
    attachments_in,
    expected,
)
from kesoku_actors.store import CloseSession, EditMessage, Post, Posted, SettleAttachment, WithdrawMessage
from tests.store.home import Home, done, living, saying, step, take


async def send(home: Home, *names: str) -> Message:
    """A person says something with files that are on their way."""
    items = [expected(name, "image/png").as_data() for name in names]
    inbound = Inbound(
        chatbot_id="bot", channel_id="room", content="look", sender="Ada", metadata={"attachments": items}
    )
    reply = await home.store.post(Post(id=home.next(), inbound=inbound))
    assert isinstance(reply, Posted)
    return reply.message


async def settle(home: Home, message: Message, index: int = 0, **how: Any) -> Message | None:
    return await home.store.settle_attachment(SettleAttachment(message_id=message.id, index=index, **how))


def attachments(message: Message | None) -> tuple[Attachment, ...]:
    assert message is not None
    return attachments_in(message.metadata)


async def test_a_saved_attachment_is_named_with_its_path_and_the_type_that_was_found(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await send(home, "a.png", "b.png")
        assert message.content == "look"
        now = await settle(home, message, 1, path="attachments/b.png", mime_type="image/jpeg")
        assert now == await home.now(message)
        assert home.published().changed == (now,)
        assert now.metadata["attachments"] == [
            {"filename": "a.png", "mime_type": "image/png", "state": "expected"},
            {"filename": "b.png", "mime_type": "image/jpeg", "path": "attachments/b.png"},
        ]
        assert now.content == "look\n[attachment b.png (image/jpeg): attachments/b.png]"


async def test_an_attachment_that_could_not_be_saved_is_named_with_the_reason(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        now = await settle(home, await send(home, "a.png"), reason="larger than 25 MiB")
        assert now is not None
        assert now.content == "look\n[attachment a.png: not saved, larger than 25 MiB]"
        assert attachments(now)[0].reason == "larger than 25 MiB"


@pytest.mark.parametrize(
    "again", [{"path": "attachments/other.png"}, {"reason": "lost"}, {"path": "attachments/a.png"}]
)
async def test_the_first_settlement_stands(tmp_path: Path, again: dict[str, str]):
    async with living(tmp_path / "k.db") as home:
        message = await send(home, "a.png")
        first = await settle(home, message, path="attachments/a.png")
        published = len(home.publications)
        assert await settle(home, message, **again) == first
        assert len(home.publications) == published


async def test_a_settlement_of_a_message_that_is_gone_says_so(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await send(home, "a.png")
        await home.store.withdraw(WithdrawMessage(message_id=message.id))
        assert await settle(home, message, path="attachments/a.png") is None


async def test_an_attachment_that_a_message_does_not_have_is_not_found(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await send(home, "a.png")
        for index in (1, -1):
            with pytest.raises(NotFound, match="has no attachment"):
                await settle(home, message, index, reason="lost")
        assert await home.now(message) == message


@pytest.mark.parametrize("path", ["/etc/passwd", "../a.png", "attachments/../../a.png", ""])
async def test_a_path_outside_of_the_workspace_is_refused(tmp_path: Path, path: str):
    async with living(tmp_path / "k.db") as home:
        message = await send(home, "a.png")
        with pytest.raises(InvalidMessage, match="M8"):
            await settle(home, message, path=path)
        assert await home.now(message) == message


async def test_an_edit_keeps_the_attachments_that_arrived_before_it(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await send(home, "a.png", "b.png")
        await settle(home, message, 0, path="attachments/a.png")
        edited = await home.store.edit(EditMessage(message_id=message.id, content="see"))
        assert edited is not None
        assert edited.content == "see\n[attachment a.png (image/png): attachments/a.png]"
        now = await settle(home, message, 1, reason="lost")
        assert now is not None
        assert now.content.splitlines() == [
            "see",
            "[attachment a.png (image/png): attachments/a.png]",
            "[attachment b.png: not saved, lost]",
        ]


async def test_what_came_with_the_message_already_settled_is_named_too(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        items = [{"filename": "a", "mime_type": "image/png", "state": "failed", "reason": "the link is dead"}]
        said = Inbound(chatbot_id="bot", channel_id="room", content="look", metadata={"attachments": items})
        reply = await home.store.post(Post(id="p", inbound=said))
        assert isinstance(reply, Posted)
        assert reply.message.content == "look\n[attachment a: not saved, the link is dead]"


async def given_up(home: Home) -> Message:
    """A turn that has stopped waiting for its one attachment."""
    root = await send(home, "a.png")
    key = await home.hire(root.session_id)
    await home.stand(key, claim=take(root))
    await home.stand(key, root, late=(root.id,))
    return await home.now(root)


async def test_a_late_file_is_told_by_a_notice_that_does_not_wake_and_leaves_the_message_as_it_was_read(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        root = await given_up(home)
        now = await settle(home, root, path="attachments/a.png", mime_type="image/gif")
        assert now is not None
        assert now.content == root.content
        assert [item.reference for item in attachments(now)] == [item.reference for item in attachments(root)]
        [changed, notice] = sorted(home.published().changed, key=lambda row: row.id != root.id)
        assert changed == now
        assert (notice.role, notice.sender, notice.status) == (Role.SYSTEM, SYSTEM, Status.PENDING_AGENT)
        assert (notice.wakes, notice.root_id) == (False, None)
        assert "[attachment a.png (image/gif): attachments/a.png]" in notice.content
        saved = {"filename": "a.png", "mime_type": "image/gif", "path": "attachments/a.png"}
        assert notice.metadata["attachments"] == [saved]


async def test_a_late_file_is_told_once(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        root = await given_up(home)
        first = await settle(home, root, path="attachments/a.png")
        for again in ("attachments/a.png", "attachments/a-2.png"):
            assert await settle(home, root, path=again) == first
        assert len(await home.reader.waiting(root.session_id)) == 1


async def test_a_late_failure_is_no_news(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        root = await given_up(home)
        assert await settle(home, root, reason="lost") == root
        assert await home.reader.waiting(root.session_id) == ()


async def test_a_late_notice_is_read_with_the_next_message_and_starts_nothing(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, first = await home.begin("zero")
        await home.answer(key, first)
        root = await send(home, "a.png")
        await home.stand(key, claim=take(root))
        await home.stand(key, root, late=(root.id,))
        await settle(home, root, path="attachments/a.png")
        await home.stand(key, root, step=step(), insert=(saying("I cannot see it."),), ends=(done(root),))
        assert not await home.reader.is_runnable(root.session_id)
        [notice] = await home.reader.waiting(root.session_id)
        second = await home.say("now?")
        found = await home.now(second), await home.reader.message(notice.id)
        assert found[1] is not None
        await home.stand(key, claim=take(second), claim_adopts=(take(found[1], Reason.COLLECTED),))
        assert (await home.contents(root.session_id))[-2:] == ["now?", found[1].content]


async def test_an_attachment_of_an_ended_message_that_nobody_read_is_still_settled(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await send(home, "a.png")
        await home.stop(message.session_id, message)
        now = await settle(home, message, path="attachments/a.png")
        assert now is not None
        assert now.content.endswith("attachments/a.png]")


async def test_a_session_that_is_being_cleared_hears_of_no_late_file(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        root = await given_up(home)
        await home.store.close_session(CloseSession(session_id=root.session_id))
        now = await settle(home, root, path="attachments/a.png")
        assert attachments(now)[0].path == "attachments/a.png"
        assert await home.reader.waiting(root.session_id) == ()
        session = await home.reader.session(root.session_id)
        assert session is not None
        assert session.state is SessionState.CLOSED
