"""Who may answer, what a yes for the session covers, and what nobody answered (T7)."""

from __future__ import annotations

from pathlib import Path

from kesoku_actors.protocol import CallState, Inbound, Outcome, Reason, Standing
from kesoku_actors.store import (
    AnswerApproval,
    BeginEpoch,
    CallExpired,
    CallStarted,
    CallWaiting,
    CloseSession,
    Post,
    Posted,
    ResultMode,
    StageOutcome,
    WipeSession,
)
from tests.store.home import ROOM, Home, cut, done, living, made_by_an_earlier_program, saying, step, take


async def asked(home: Home, *names: str, parts: tuple[str, ...] | None = ()) -> tuple[str, ...]:
    """A turn with calls that wait for a person."""
    key, root = await home.begin()
    calls = await home.call(key, root, *names)
    for call in calls:
        await home.store.call_waiting(CallWaiting(call_id=call, expires=2_000.0, parts=parts))
    return calls


def yes(call: str, *, by: str = "Ada", for_session: bool = False) -> AnswerApproval:
    return AnswerApproval(call_id=call, approved=True, by=by, for_session=for_session)


async def test_what_waits_is_listed_with_all_that_a_person_needs_to_decide(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        (call,) = await home.call(key, root, "shell")
        await home.store.call_waiting(CallWaiting(call_id=call, expires=2_000.0, parts=("git",)))
        assert home.published().approvals == ((call, key.session_id, CallState.WAITING),)
        (approval,) = await home.reader.approvals(key.session_id)
        assert (approval.call_id, approval.tool, approval.root_id) == (call, "shell", root.id)
        assert (approval.expires, approval.parts) == (2_000.0, ("git",))


async def test_asking_again_keeps_the_first_expiry_and_tells_nobody(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        (call,) = await asked(home, "shell")
        told = len(home.publications)
        standing = await home.store.call_waiting(CallWaiting(call_id=call, expires=9_000.0))
        assert standing == Standing(state=CallState.WAITING, expires=2_000.0)
        assert len(home.publications) == told


async def test_only_who_asked_or_an_admin_answers(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        (call,) = await asked(home, "shell")
        refused = await home.store.answer_approval(yes(call, by="Mallory"))
        assert (refused.accepted, refused.is_allowed, refused.state) == (False, False, CallState.WAITING)
        admin = AnswerApproval(call_id=call, approved=True, by="Root", is_admin=True)
        assert (await home.store.answer_approval(admin)).accepted


async def test_t4_an_id_decides_who_asked_and_not_a_name(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        said = Inbound(
            chatbot_id=ROOM.chatbot_id,
            channel_id=ROOM.channel_id,
            content="hello",
            sender="Ada",
            metadata={"sender_id": "7"},
        )
        posted = await home.store.post(Post(id="p", inbound=said))
        assert isinstance(posted, Posted)
        key = await home.hire(posted.message.session_id)
        await home.stand(key, claim=take(posted.message))
        (call,) = await home.call(key, posted.message, "shell")
        await home.store.call_waiting(CallWaiting(call_id=call, expires=2_000.0))
        for by_id in (None, "8"):
            namesake = AnswerApproval(call_id=call, approved=True, by="Ada", by_id=by_id)
            assert not (await home.store.answer_approval(namesake)).is_allowed
        renamed = AnswerApproval(call_id=call, approved=True, by="Ada Lovelace", by_id="7")
        assert (await home.store.answer_approval(renamed)).accepted


async def test_a_turn_that_nobody_began_is_answered_by_who_spoke_last(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        inbound = Inbound(chatbot_id=ROOM.chatbot_id, channel_id=ROOM.channel_id, content="and this", sender="Bob")
        last = await home.store.post(Post(id="p", inbound=inbound))
        assert isinstance(last, Posted)
        await home.stand(key, root, adopt=(take(last.message, Reason.STEERED),))
        await home.stand(key, root, step=step(), insert=(saying("hi"),), ends=(done(root), done(last.message)))
        notice = await home.ring()
        await home.stand(key, claim=take(notice))
        (call,) = await home.call(key, notice, "shell")
        await home.store.call_waiting(CallWaiting(call_id=call, expires=2_000.0))
        assert not (await home.store.answer_approval(yes(call, by="Ada"))).is_allowed
        assert (await home.store.answer_approval(yes(call, by="Bob"))).accepted


async def test_a_yes_for_the_session_lets_go_what_it_covers_and_nothing_else(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        first, second, other, tool = await home.call(key, root, "shell", "shell", "shell", "edit")
        for call, parts in ((first, ("git",)), (second, ("git",)), (other, ("git", "rm")), (tool, ("git",))):
            await home.store.call_waiting(CallWaiting(call_id=call, expires=2_000.0, parts=parts))
        answer = await home.store.answer_approval(yes(first, for_session=True))
        assert answer.is_for_session
        told = {(first, key.session_id, CallState.COMMITTED), (second, key.session_id, CallState.COMMITTED)}
        assert set(home.published().approvals) == told
        assert [each.call_id for each in await home.reader.approvals(key.session_id)] == [other, tool]
        (later,) = await home.call(key, root, "shell")
        standing = await home.store.call_waiting(CallWaiting(call_id=later, expires=2_000.0, parts=("git",)))
        assert standing == Standing(state=CallState.COMMITTED, is_approved=True)
        for let_go in (second, later):
            assert (await home.store.answer_approval(yes(let_go, by="Bob"))).decided_by == "Ada"
        assert await home.store.call_started(CallStarted(call_id=later))


async def test_a_yes_for_the_session_survives_a_restart_and_ends_with_the_session(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        (call,) = await home.call(key, root, "edit")
        await home.store.call_waiting(CallWaiting(call_id=call, expires=2_000.0))
        await home.store.answer_approval(yes(call, for_session=True))
    async with living(tmp_path / "k.db", seed=1) as home:
        key = await home.hire(root.session_id)
        await home.stand(key, claim=take(root))
        (later,) = await home.call(key, root, "edit")
        assert (await home.store.call_waiting(CallWaiting(call_id=later, expires=2_000.0))).is_approved
        await home.stand(key, root, results=ResultMode.SETTLE, ends=(cut(root, Reason.STOPPED),))
        await home.store.close_session(CloseSession(session_id=root.session_id))
        await home.store.wipe(WipeSession(session_id=root.session_id))
        key, root = await home.begin("another session")
        (other,) = await home.call(key, root, "edit")
        assert not (await home.store.call_waiting(CallWaiting(call_id=other, expires=2_000.0))).is_approved


async def test_what_cannot_be_told_apart_is_allowed_once_only(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        (call,) = await asked(home, "shell", parts=None)
        (approval,) = await home.reader.approvals((await home.reader.sessions(1))[0].id)
        assert approval.parts is None
        answer = await home.store.answer_approval(yes(call, for_session=True))
        assert (answer.accepted, answer.is_for_session) == (True, False)


async def test_what_nobody_answered_in_time_is_settled_once(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        (call,) = await home.call(key, root, "shell")
        await home.store.call_waiting(CallWaiting(call_id=call, expires=2_000.0))
        assert await home.store.call_expired(CallExpired(call_id=call))
        assert home.published().approvals == ((call, key.session_id, CallState.SETTLED),)
        assert not await home.store.call_expired(CallExpired(call_id=call))
        late = await home.store.answer_approval(yes(call))
        assert (late.accepted, late.state, late.decided_by) == (False, CallState.SETTLED, None)
        (result,) = (await home.stand(key, root, results=ResultMode.PUBLISH)).rows
        assert (result.metadata["outcome"], result.metadata["reason"]) == (Outcome.ERROR, "expired")
        assert result.metadata["duration_s"] == 0.0


async def test_an_answer_that_was_first_does_not_expire(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        (call,) = await asked(home, "shell")
        await home.store.answer_approval(yes(call))
        assert not await home.store.call_expired(CallExpired(call_id=call))
        assert await home.store.call_started(CallStarted(call_id=call))


async def test_what_is_withdrawn_while_it_waits_is_told_and_cannot_be_answered(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        (call,) = await asked(home, "shell")
        gone = StageOutcome(call_id=call, outcome=Outcome.INTERRUPTED, content="withdrawn", duration_s=0.0)
        assert await home.store.stage(gone)
        (session,) = await home.reader.sessions(1)
        assert home.published().approvals == ((call, session.id, CallState.SETTLED),)
        assert not (await home.store.answer_approval(yes(call))).accepted


async def test_a_waiting_call_waits_on_after_a_restart(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        (call,) = await asked(home, "shell")
    async with living(tmp_path / "k.db", seed=1) as home:
        begun = await home.store.begin_epoch(BeginEpoch(clean=False))
        assert begun.dead_calls == ()
        assert (await home.store.answer_approval(yes(call))).accepted


async def test_the_end_of_a_turn_withdraws_what_waits(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        (call,) = await home.call(key, root, "shell")
        await home.store.call_waiting(CallWaiting(call_id=call, expires=2_000.0))
        await home.stand(key, root, results=ResultMode.SETTLE, ends=(cut(root, Reason.STOPPED),))
        assert await home.reader.approvals(key.session_id) == ()
        assert (await home.contents(key.session_id))[-1].startswith("The call was withdrawn while it waited")


async def test_where_nobody_can_be_asked_only_an_earlier_yes_counts(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        (call,) = await home.call(key, root, "shell")
        standing = await home.store.call_waiting(CallWaiting(call_id=call, expires=None))
        assert standing == Standing(state=CallState.COMMITTED, is_approved=False)
        await home.store.call_waiting(CallWaiting(call_id=call, expires=2_000.0))
        await home.store.answer_approval(yes(call))
        assert (await home.store.call_waiting(CallWaiting(call_id=call, expires=None))).is_approved


async def test_calls_of_a_store_from_before_there_were_approvals_can_wait(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        (call,) = await home.call(key, root, "edit")
    made_by_an_earlier_program(tmp_path / "k.db")
    async with living(tmp_path / "k.db", seed=1) as home:
        await home.store.call_waiting(CallWaiting(call_id=call, expires=2_000.0))
        assert (await home.store.answer_approval(yes(call, for_session=True))).is_for_session
