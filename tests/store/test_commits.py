"""A worker's commits: order, results, guards, idempotency (O1 to O4, C4, C10, M4, M8)."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from kesoku_actors.protocol import (
    SYSTEM,
    CallState,
    Channel,
    Draft,
    Inbound,
    Outcome,
    Reason,
    Role,
    Status,
    StepState,
    Type,
)
from kesoku_actors.store import (
    CallStarted,
    Commit,
    Committed,
    Ending,
    OpenCall,
    Post,
    Posted,
    RefusalReason,
    Refused,
    ResultMode,
    Taking,
    WithdrawMessage,
)
from tests.store.home import calling, cut, done, living, saying, step, take


async def test_a_claim_makes_a_message_the_root_of_its_turn(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        now = await home.now(root)
        assert (now.status, now.root_id, now.place) == (Status.PROCESSING, root.id, root.seq)
        assert now.metadata["reason"] == Reason.FRESH
        session = await home.reader.session(key.session_id)
        assert session is not None
        assert session.turns == 1


async def test_c4_answer_status_and_step_are_one_transaction(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        reply = await home.answer(key, root, "hi")
        said, asked = reply.rows
        assert (said.content, said.status, said.root_id, said.parent_id) == ("hi", Status.PENDING, root.id, root.id)
        assert said.seq == said.rev
        assert asked.status is Status.PROCESSED
        assert (reply.steps, reply.spent_s, reply.open_calls) == (1, 1.0, ())
        assert reply.said == (said.id,)
        assert asked.metadata["reason"] == Reason.FRESH, "an end without a reason leaves the one it was taken for"
        assert home.published().changed == reply.rows
        (stored,) = (await home.reader.history(key.session_id)).steps
        assert (stored.root_id, stored.index, stored.message_ids) == (root.id, 1, (said.id,))
        assert stored.step == step()


async def test_m4_of_the_rows_of_a_step_the_models_are_what_it_said(tmp_path: Path):
    notice = Draft(role=Role.SYSTEM, type=Type.TEXT, status=Status.PENDING, sender=SYSTEM, content="to people")
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        reply = await home.stand(key, root, step=step(), insert=(saying("hm", Status.RESPONDED), notice))
        assert reply.said == (reply.rows[0].id,)
        (stored,) = (await home.reader.history(key.session_id)).steps
        assert stored.message_ids == reply.said


async def test_m4_a_step_is_read_back_as_it_was_committed(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        native = {"blocks": [{"signature": "s", "n": 1}], "none": None}
        first = evolve(step(StepState.FAILED, 0.25), error="overloaded", finish_reason="stop")
        await home.stand(key, root, step=first)
        await home.stand(key, root, step=evolve(step(), native=native))
        steps = (await home.reader.history(key.session_id)).steps
        assert [stored.step for stored in steps] == [first, evolve(step(), native=native)]
        assert [stored.index for stored in steps] == [1, 2]


async def test_o1_a_superseded_message_is_read_before_the_one_that_superseded_it(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, old = await home.begin("one")
        two, three = await home.say("two"), await home.say("three")
        ends = (cut(old), cut(two))
        partial = evolve(saying("par", Status.RESPONDED), metadata={"partial": True})
        await home.stand(
            key, old, insert=(partial,), results=ResultMode.SETTLE, ends=ends, claim=take(three, Reason.INTERRUPTED)
        )
        assert await home.contents(key.session_id) == ["one", "par", "two", "three"]


async def test_o1_a_notice_older_than_the_turn_it_ends_in_stands_behind_what_was_read(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        notice = await home.ring(wakes=False)
        key, root = await home.begin("question")
        ended = Ending(message_id=notice.id, status=Status.INTERRUPTED, reason=Reason.STOPPED)
        await home.stand(key, root, ends=(ended, cut(root, Reason.STOPPED)))
        assert await home.contents(key.session_id) == ["question", "a job ended"]
        assert (await home.now(notice)).root_id == root.id


async def test_o1_an_adopted_message_stands_where_it_was_read_first(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin("one")
        more = await home.say("and this")
        (call,) = await home.call(key, root, "look")
        await home.run(call)
        await home.stand(key, root, results=ResultMode.PUBLISH)
        await home.stand(key, root, adopt=(take(more, Reason.STEERED),))
        assert await home.contents(key.session_id) == ["one", "", "done", "and this"]
        now = await home.now(more)
        assert (now.status, now.root_id) == (Status.PROCESSING, root.id)


async def test_o3_results_come_in_call_order_with_consecutive_seqs(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        first, second = await home.call(key, root, "a", "b")
        await home.run(second, Outcome.ERROR, "second")
        assert (await home.commit(key, root, results=ResultMode.PUBLISH)) == Refused(
            reason=RefusalReason.INVALID, detail=f"O3: the call {first} is not settled"
        )
        await home.run(first, content="first")
        reply = await home.stand(key, root, results=ResultMode.PUBLISH)
        assert [(row.content, row.parent_id) for row in reply.rows] == [("first", first), ("second", second)]
        assert reply.rows[1].seq == reply.rows[0].seq + 1
        result = reply.rows[1]
        assert (result.sender, result.type, result.status) == ("b", Type.TOOL_RESULT, Status.RESPONDED)
        assert result.metadata == {
            "tool_name": "b",
            "tool_call_id": "call_b",
            "outcome": Outcome.ERROR,
            "duration_s": 2.0,
        }
        assert reply.open_calls == ()
        assert reply.spent_s == 5.0


async def test_o4_a_turn_that_ends_gives_every_call_one_result(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        ended, started, waiting = await home.call(key, root, "ended", "started", "waiting")
        await home.run(ended, content="as staged")
        await home.store.call_started(CallStarted(call_id=started))
        reply = await home.stand(key, root, results=ResultMode.SETTLE, ends=(cut(root, Reason.STOPPED),))
        results = [row for row in reply.rows if row.type is Type.TOOL_RESULT]
        assert [row.parent_id for row in results] == [ended, started, waiting]
        assert [row.metadata["outcome"] for row in results] == [Outcome.OK, Outcome.UNKNOWN, Outcome.INTERRUPTED]
        assert results[0].content == "as staged"
        assert all(row.content for row in results)
        assert [row.metadata["duration_s"] for row in results] == [2.0, 0.0, 0.0]
        assert reply.spent_s == 3.0, "what never ran took no time"


async def test_o4_a_turn_cannot_end_with_a_call_that_has_no_result(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        await home.call(key, root, "a")
        refused = await home.commit(key, root, ends=(done(root),))
        assert isinstance(refused, Refused)
        assert (refused.reason, refused.detail[:3]) == (RefusalReason.INVALID, "O4:")
        assert (await home.now(root)).status is Status.PROCESSING


async def test_i5_a_turn_cannot_end_without_its_adopted_messages(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        one, two = await home.say("one"), await home.say("two")
        key = await home.hire(one.session_id)
        await home.stand(key, claim=take(one), claim_adopts=(take(two, Reason.COLLECTED),))
        refused = await home.commit(key, one, ends=(done(one),))
        assert isinstance(refused, Refused)
        assert refused.detail.startswith("I5:")
        await home.stand(key, one, ends=(done(one), done(two)))


async def test_calls_are_told_in_call_order_as_they_are_when_the_reply_is_sent(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        command = Commit(id="calls", key=key, root_id=root.id, step=step(), insert=(calling("a"), calling("b")))
        first = await home.store.commit(command)
        assert isinstance(first, Committed)
        a, b = (call.call_id for call in first.open_calls)
        await home.store.call_started(CallStarted(call_id=b))
        again = await home.store.commit(command)
        assert isinstance(again, Committed)
        assert again.open_calls == (
            OpenCall(call_id=a, state=CallState.COMMITTED),
            OpenCall(call_id=b, state=CallState.STARTED),
        )


async def test_c10_a_commit_sent_again_changes_nothing(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        command = Commit(id="answer", key=key, root_id=root.id, step=step(), insert=(saying("hi"),), ends=(done(root),))
        first = await home.store.commit(command)
        head = await home.reader.head()
        assert await home.store.commit(command) == first
        assert await home.reader.head() == head
        assert await home.contents(key.session_id) == ["hello", "hi"]


async def test_c10_a_commit_sent_again_after_the_next_turn_began_tells_of_its_own_turn(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        await home.stand(key, root, step=step(duration_s=0.5))
        command = Commit(id="answer", key=key, root_id=root.id, step=step(), insert=(saying("hi"),), ends=(done(root),))
        first = await home.store.commit(command)
        assert isinstance(first, Committed)
        assert (first.steps, first.spent_s) == (2, 1.5)
        following = await home.say("and then?")
        await home.stand(key, claim=take(following))
        await home.stand(key, following, step=step(duration_s=4.0))
        assert await home.store.commit(command) == first


async def test_c10_moved_keeps_the_step_once_and_nothing_else(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        other = await home.say("other")
        await home.store.withdraw(WithdrawMessage(message_id=other.id))
        command = Commit(
            id="pivot",
            key=key,
            root_id=root.id,
            step=step(StepState.CANCELLED),
            insert=(saying("par", Status.RESPONDED),),
            ends=(cut(root),),
            claim=take(other),
        )
        for _ in range(2):
            reply = await home.store.commit(command)
            assert isinstance(reply, Refused)
            assert (reply.reason, reply.waiting) == (RefusalReason.MOVED, ())
        assert await home.contents(key.session_id) == ["hello"]
        history = await home.reader.history(key.session_id)
        assert [(stored.step.state, stored.message_ids) for stored in history.steps] == [(StepState.CANCELLED, ())]
        assert (await home.stand(key, root)).steps == 1


async def test_moved_tells_who_waits_and_what_is_stopped(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say()
        key = await home.hire(message.session_id)
        stop = await home.stop(message.session_id)
        reply = await home.commit(key, claim=take(message))
        assert isinstance(reply, Refused)
        assert (reply.reason, reply.stops) == (RefusalReason.MOVED, (stop,))
        assert [waiting.id for waiting in reply.waiting] == [message.id]


async def test_a_plan_with_a_message_that_is_gone_or_ended_or_elsewhere_has_moved(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        gone, ended = await home.say("gone"), await home.say("ended")
        elsewhere = await home.say("elsewhere", channel=Channel(chatbot_id="bot", channel_id="elsewhere"))
        await home.store.withdraw(WithdrawMessage(message_id=gone.id))
        await home.stand(key, root, ends=(cut(ended),))
        plans = [{"ends": (cut(each),)} for each in (gone, ended, elsewhere)]
        plans += [{"adopt": (take(each),)} for each in (gone, ended, elsewhere, root)]
        for parts in plans:
            reply = await home.commit(key, root, **parts)
            assert isinstance(reply, Refused)
            assert reply.reason is RefusalReason.MOVED, reply


async def test_o2_nobody_is_passed_over_who_spoke_before(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        first, second = await home.say("first"), await home.say("second")
        key = await home.hire(first.session_id)
        reply = await home.commit(key, claim=take(second))
        assert isinstance(reply, Refused)
        assert reply.reason is RefusalReason.MOVED
        await home.stand(key, ends=(cut(first),), claim=take(second))


async def test_i5_a_notice_behind_a_person_who_goes_on_waiting_may_be_taken(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        first, second, notice = await home.say("first"), await home.say("second"), await home.ring()
        key = await home.hire(first.session_id)
        reply = await home.stand(key, claim=take(first), claim_adopts=(take(notice, Reason.COLLECTED),))
        assert {row.id for row in reply.rows} == {first.id, notice.id}
        assert (await home.now(second)).status is Status.PENDING_AGENT


async def test_c2_a_commit_for_a_turn_that_its_worker_did_not_claim_is_stale(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        adopted, waits = await home.say("adopted"), await home.say("waits")
        await home.stand(key, root, adopt=(take(adopted, Reason.STEERED),))
        elsewhere = await home.say(channel=Channel(chatbot_id="bot", channel_id="elsewhere"))
        await home.stand(await home.hire(elsewhere.session_id), claim=take(elsewhere))
        nobody = evolve(root, id="nobody")
        for other in (adopted, waits, elsewhere, nobody):
            reply = await home.commit(key, other, insert=(saying("hi"),))
            assert isinstance(reply, Refused)
            assert reply.reason is RefusalReason.STALE
        reply = await home.commit(evolve(key, session_id="nowhere"), root)
        assert isinstance(reply, Refused)
        assert reply.reason is RefusalReason.STALE


async def test_i2_a_turn_cannot_pivot_to_itself(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        reply = await home.commit(key, root, ends=(cut(root),), claim=take(root))
        assert isinstance(reply, Refused)
        assert reply.reason is RefusalReason.INVALID


async def test_a_commit_without_a_turn_tells_of_no_steps_and_no_time(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say()
        reply = await home.stand(await home.hire(message.session_id), ends=(cut(message),))
        assert (reply.steps, reply.spent_s, reply.said, reply.open_calls) == (0, 0.0, (), ())


async def test_o2_a_stop_of_others_lets_nobody_be_passed_over(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        first, second, third = await home.say("first"), await home.say("second"), await home.say("third")
        await home.stop(first.session_id, third)
        reply = await home.commit(await home.hire(first.session_id), claim=take(second))
        assert isinstance(reply, Refused)
        assert reply.reason is RefusalReason.MOVED


async def test_o2_words_that_a_stop_covers_stand_in_nobodys_way(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        covered, free = await home.say("covered"), await home.say("free")
        await home.stop(key.session_id, covered)
        await home.stand(key, root, adopt=(take(free, Reason.STEERED),))


@pytest.mark.parametrize(
    "parts",
    [
        {"step": step()},
        {"insert": (saying("hi"),)},
        {"results": ResultMode.SETTLE},
        {"adopt": (Taking(message_id="m", reason=Reason.STEERED),)},
        {"claim_adopts": (Taking(message_id="m", reason=Reason.COLLECTED),)},
    ],
)
async def test_parts_of_a_turn_need_one(tmp_path: Path, parts: dict[str, object]):
    async with living(tmp_path / "k.db") as home:
        message = await home.say()
        key = await home.hire(message.session_id)
        reply = await home.commit(key, **parts)
        assert isinstance(reply, Refused)
        assert reply.reason is RefusalReason.INVALID


async def test_a_worker_cannot_insert_what_asks_or_a_result(tmp_path: Path):
    asks = Draft(role=Role.SYSTEM, type=Type.TEXT, status=Status.PENDING_AGENT, sender=SYSTEM, content="x")
    result = Draft(
        role=Role.TOOL,
        type=Type.TOOL_RESULT,
        status=Status.RESPONDED,
        sender="t",
        content="x",
        metadata={"tool_name": "t", "tool_call_id": "", "outcome": "ok"},
    )
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        for draft in (asks, result):
            reply = await home.commit(key, root, insert=(draft,))
            assert isinstance(reply, Refused)
            assert reply.reason is RefusalReason.INVALID
        assert await home.contents(key.session_id) == ["hello"]


async def test_a_plan_that_fails_half_way_leaves_no_trace(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        head = await home.reader.head()
        twice = Ending(message_id=root.id, status=Status.PROCESSED)
        reply = await home.commit(key, root, step=step(), insert=(saying("hi"),), ends=(twice, twice))
        assert isinstance(reply, Refused)
        assert reply.reason is RefusalReason.INVALID
        assert await home.contents(key.session_id) == ["hello"]
        assert (await home.reader.history(key.session_id)).steps == ()
        assert await home.reader.head() == head


async def test_a_plan_that_waits_no_longer_for_the_files_of_nobody_is_refused(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        reply = await home.commit(key, root, late=("nobody",))
        assert isinstance(reply, Refused)
        assert reply.reason is RefusalReason.INVALID


async def test_m8_attachments_still_expected_are_settled_as_late_and_named(tmp_path: Path):
    arrived = {"filename": "a.png", "mime_type": "image/png", "path": "in/a.png"}
    expected = {"filename": "b.png", "mime_type": "image/png", "state": "expected"}
    async with living(tmp_path / "k.db") as home:
        said = Inbound(
            chatbot_id="bot", channel_id="room", content="look", metadata={"attachments": [arrived, expected]}
        )
        reply = await home.store.post(Post(id="p", inbound=said))
        assert isinstance(reply, Posted)
        root = reply.message
        key = await home.hire(root.session_id)
        await home.stand(key, claim=take(root))
        await home.stand(key, root, late=(root.id,))
        now = await home.now(root)
        assert now.metadata["attachments"] == [arrived, {**expected, "state": "late"}]
        assert now.content.startswith("look\n")
        assert "b.png" in now.content
        assert (await home.stand(key, root, late=(root.id,))).rows == ()
