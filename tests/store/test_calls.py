"""Calls, approvals and staged outcomes (C3, O3, T7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesoku_actors.protocol import CallState, Outcome, Reason, Standing
from kesoku_actors.store import (
    AnswerApproval,
    ApprovalAnswer,
    CallStarted,
    CallWaiting,
    OpenCall,
    ResultMode,
    StageOutcome,
)
from tests.store.home import Home, cut, living


def staged(call_id: str, content: str = "done") -> StageOutcome:
    return StageOutcome(call_id=call_id, outcome=Outcome.OK, content=content, duration_s=1.0)


async def one_call(home: Home) -> str:
    key, root = await home.begin()
    (call,) = await home.call(key, root, "look")
    return call


async def test_c3_a_call_starts_once(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        call = await one_call(home)
        assert await home.store.call_started(CallStarted(call_id=call))
        assert not await home.store.call_started(CallStarted(call_id=call))
        assert not await home.store.call_started(CallStarted(call_id="unknown"))


async def test_o3_the_first_outcome_stands(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        (call,) = await home.call(key, root, "look")
        assert await home.store.stage(staged(call, "first"))
        assert not home.publications[-1].approvals, "nobody was asked about it"
        assert not await home.store.stage(staged(call, "second"))
        assert not await home.store.call_started(CallStarted(call_id=call))
        assert await home.reader.calls(root.id) == (OpenCall(call_id=call, state=CallState.SETTLED),)
        (result,) = (await home.stand(key, root, results=ResultMode.PUBLISH)).rows
        assert result.content == "first"
        assert await home.reader.calls(root.id) == ()


async def test_o3_an_outcome_that_comes_after_the_turn_is_no_second_result(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        (call,) = await home.call(key, root, "look")
        await home.store.call_started(CallStarted(call_id=call))
        await home.stand(key, root, results=ResultMode.SETTLE, ends=(cut(root, Reason.STOPPED),))
        assert not await home.store.stage(staged(call))
        assert (await home.contents(key.session_id))[2:] == ["The call had started; how it ended is not known."]


async def test_t7_an_approved_call_starts_and_is_not_asked_about_again(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        call = await one_call(home)
        standing = await home.store.call_waiting(CallWaiting(call_id=call, expires=2_000.0))
        assert standing == Standing(state=CallState.WAITING, expires=2_000.0)
        assert not await home.store.call_started(CallStarted(call_id=call))
        answer = await home.store.answer_approval(AnswerApproval(call_id=call, approved=True, by="Ada"))
        assert answer == ApprovalAnswer(accepted=True, state=CallState.COMMITTED, decided_by="Ada")
        standing = await home.store.call_waiting(CallWaiting(call_id=call, expires=3_000.0))
        assert standing == Standing(state=CallState.COMMITTED, is_approved=True)
        assert await home.store.call_started(CallStarted(call_id=call))
        told = len(home.publications)
        assert await home.store.stage(staged(call))
        assert len(home.publications) == told, "what was decided before is not told again"


async def test_t7_a_denied_call_is_settled_and_says_who_denied_it(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        (call,) = await home.call(key, root, "look")
        await home.store.call_waiting(CallWaiting(call_id=call, expires=2_000.0))
        answer = await home.store.answer_approval(AnswerApproval(call_id=call, approved=False, by="Ada"))
        assert (answer.accepted, answer.state) == (True, CallState.SETTLED)
        assert home.published().approvals == ((call, key.session_id, CallState.SETTLED),)
        standing = await home.store.call_waiting(CallWaiting(call_id=call, expires=3_000.0))
        assert standing == Standing(state=CallState.SETTLED, expires=2_000.0, outcome=Outcome.ERROR)
        (result,) = (await home.stand(key, root, results=ResultMode.PUBLISH)).rows
        assert (result.metadata["outcome"], result.metadata["reason"]) == (Outcome.ERROR, "denied")
        assert "Ada" in result.content


@pytest.mark.parametrize("approved", [True, False])
async def test_t7_a_later_answer_is_told_who_decided(tmp_path: Path, approved: bool):
    async with living(tmp_path / "k.db") as home:
        call = await one_call(home)
        await home.store.call_waiting(CallWaiting(call_id=call, expires=2_000.0))
        await home.store.answer_approval(AnswerApproval(call_id=call, approved=approved, by="Ada"))
        later = await home.store.answer_approval(AnswerApproval(call_id=call, approved=not approved, by="Bob"))
        assert (later.accepted, later.decided_by) == (False, "Ada")
        assert later.state is (CallState.COMMITTED if approved else CallState.SETTLED)


async def test_t7_a_call_that_waits_for_nobody_cannot_be_approved(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        call = await one_call(home)
        answer = await home.store.answer_approval(AnswerApproval(call_id=call, approved=True, by="Ada"))
        assert answer == ApprovalAnswer(accepted=False, state=CallState.COMMITTED, decided_by=None)
        unknown = await home.store.answer_approval(AnswerApproval(call_id="unknown", approved=True, by="Ada"))
        assert unknown == ApprovalAnswer(accepted=False, state=None, decided_by=None)
