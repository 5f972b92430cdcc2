"""The provider actor grants slots fairly, gets every one of them back, and watches silence (P3, R12, R13)."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest
import trio
from attrs import define
from trio.testing import MockClock, wait_all_tasks_blocked

from kesoku_actors.actors import ChildSpec
from kesoku_actors.actors.testing import running
from kesoku_actors.llm.breaker import Policy
from kesoku_actors.llm.gate import Patience, ProviderGate, infer_once, provider_actor
from kesoku_actors.llm.port import Emit, Limits, Piece, ProviderError, Remedy, Reply, Request
from kesoku_actors.llm.scripted import Call, Fail, Say, Scenario, ScriptedModel, Stall, Wait
from kesoku_actors.protocol import DeltaKind

from .examples import asking, ignore, said


def child(gate: ProviderGate) -> ChildSpec:
    return ChildSpec(id=gate.name, start=partial(provider_actor, gate=gate), mailbox=gate.mailbox)


def gate_for(concurrency: int = 1, failures: int = 5) -> ProviderGate:
    return ProviderGate("scripted", Policy(concurrency=concurrency, failures=failures))


async def hold(gate: ProviderGate, name: str, order: list[str], release: trio.Event) -> None:
    async with gate.slot():
        order.append(name)
        await release.wait()


async def test_slots_are_granted_in_the_order_of_asking_and_never_too_many(autojump_clock: MockClock) -> None:
    gate, order = gate_for(concurrency=2), list[str]()
    releases = {name: trio.Event() for name in "abcd"}
    async with running(child(gate)), trio.open_nursery() as nursery:
        for name in "abcd":
            nursery.start_soon(hold, gate, name, order, releases[name])
            await wait_all_tasks_blocked()
        assert order == ["a", "b"]
        assert (gate.statistics().running, gate.statistics().waiting) == (2, 2)
        releases["b"].set()
        await wait_all_tasks_blocked()
        assert order == ["a", "b", "c"]
        for release in releases.values():
            release.set()
    assert order == ["a", "b", "c", "d"]


async def test_who_is_cancelled_while_waiting_leaves_the_queue(autojump_clock: MockClock) -> None:
    gate, order, release = gate_for(), list[str](), trio.Event()
    async with running(child(gate)), trio.open_nursery() as nursery:
        nursery.start_soon(hold, gate, "first", order, release)
        await wait_all_tasks_blocked()
        with trio.move_on_after(1.0):
            await hold(gate, "second", order, release)
        nursery.start_soon(hold, gate, "third", order, release)
        await wait_all_tasks_blocked()
        assert gate.statistics().waiting == 1
        release.set()
    assert order == ["first", "third"]


@pytest.mark.parametrize("ending", ["cancelled", "crashed"])
async def test_a_holder_gives_its_slot_back_however_it_ends(autojump_clock: MockClock, ending: str) -> None:
    gate, order, release = gate_for(), list[str](), trio.Event()
    async with running(child(gate)):
        if ending == "cancelled":
            with trio.move_on_after(1.0):
                await hold(gate, "first", order, release)
        else:
            with pytest.raises(ZeroDivisionError):
                async with gate.slot():
                    _ = 1 / 0
        release.set()
        await hold(gate, "next", order, release)
        await wait_all_tasks_blocked()
        assert gate.statistics().running == 0
    assert order[-1] == "next"


async def test_slots_come_back_through_a_full_mailbox(autojump_clock: MockClock) -> None:
    gate, order, release = gate_for(concurrency=3), list[str](), trio.Event()
    async with running(child(gate)), trio.open_nursery() as nursery:
        for number in range(600):
            nursery.start_soon(hold, gate, str(number), order, release)
        await wait_all_tasks_blocked()
        release.set()
    assert len(order) == 600


async def test_stopping_the_actor_answers_those_who_wait_with_a_retriable_error(autojump_clock: MockClock) -> None:
    gate, order, release = gate_for(), list[str](), trio.Event()
    errors: list[str] = []

    async def wait_in_vain() -> None:
        with pytest.raises(ProviderError) as caught:
            await hold(gate, "second", order, release)
        errors.append(caught.value.kind)

    async with trio.open_nursery() as nursery:
        async with running(child(gate)):
            nursery.start_soon(hold, gate, "first", order, release)
            await wait_all_tasks_blocked()
            nursery.start_soon(wait_in_vain)
            await wait_all_tasks_blocked()
        release.set()
    assert errors == ["gate"]


async def test_a_restarted_actor_still_counts_the_slots_held_before(autojump_clock: MockClock) -> None:
    gate, order, release = gate_for(concurrency=1), list[str](), trio.Event()
    async with trio.open_nursery() as nursery:
        async with running(child(gate)):
            nursery.start_soon(hold, gate, "before", order, release)
            await wait_all_tasks_blocked()
        async with running(child(gate)):
            nursery.start_soon(hold, gate, "after", order, release)
            await wait_all_tasks_blocked()
            assert order == ["before"]
            release.set()
            await wait_all_tasks_blocked()
    assert order == ["before", "after"]


async def infer(gate: ProviderGate, model: ScriptedModel, emit: Emit = ignore) -> Reply:
    return await infer_once(model, gate, asking(said(1, "Hi")), emit)


async def test_silence_before_the_first_byte_is_a_stall(autojump_clock: MockClock) -> None:
    gate = gate_for()
    model = ScriptedModel(Scenario(inferences=((Stall(),),)), limits=Limits(first_byte_s=60, idle_s=45))
    async with running(child(gate)):
        began = trio.current_time()
        with pytest.raises(ProviderError, match="60 s before the first byte") as caught:
            await infer(gate, model)
        assert (caught.value.kind, trio.current_time() - began) == ("stall", 60)
    assert model.cancelled == ["i1"]


async def test_silence_within_the_stream_is_a_stall_and_what_came_was_passed_on(autojump_clock: MockClock) -> None:
    gate, pieces = gate_for(), list[Piece]()
    model = ScriptedModel(Scenario(inferences=((Wait(seconds=50), Say(text="Hello "), Stall()),)))
    async with running(child(gate)):
        began = trio.current_time()
        with pytest.raises(ProviderError, match="nothing came for 45 s"):
            await infer(gate, model, pieces.append)
        assert trio.current_time() - began == 95
    assert [piece.text for piece in pieces] == ["Hello "]


async def test_a_slow_stream_that_never_falls_silent_is_no_stall(autojump_clock: MockClock) -> None:
    gate = gate_for()
    model = ScriptedModel(Scenario(inferences=((Say(text="word " * 100, word_delay_s=44.0),),)))
    async with running(child(gate)):
        assert len((await infer(gate, model)).text.split()) == 100


@define
class Heartbeat(ScriptedModel):
    """A model whose stream lives without showing anything, as while it writes a long call."""

    async def infer(self, request: Request, emit: Emit) -> Reply:
        for _ in range(10):
            await trio.sleep(40)
            emit(Piece(kind=DeltaKind.TEXT, text=""))
        return await super().infer(request, emit)


async def test_an_empty_piece_keeps_the_stream_alive_and_is_not_passed_on(autojump_clock: MockClock) -> None:
    gate, pieces = gate_for(), list[Piece]()
    model = Heartbeat(Scenario(inferences=((Say(text="done"),),)))
    async with running(child(gate)):
        assert (await infer(gate, model, pieces.append)).text == "done"
    assert [piece.text for piece in pieces] == ["done"]


async def test_waiting_for_a_slot_counts_in_no_limit_of_the_stream(autojump_clock: MockClock) -> None:
    gate, order, release = gate_for(), list[str](), trio.Event()
    model = ScriptedModel(Scenario(inferences=((Say(text="late"),),)))
    replies: list[str] = []

    async def ask() -> None:
        replies.append((await infer(gate, model)).text)

    async with running(child(gate)), trio.open_nursery() as nursery:
        nursery.start_soon(hold, gate, "holder", order, release)
        await wait_all_tasks_blocked()
        nursery.start_soon(ask)
        await trio.sleep(3600)
        release.set()
    assert replies == ["late"]


async def test_an_interruption_cancels_the_stream_and_frees_the_slot(autojump_clock: MockClock) -> None:
    gate = gate_for()
    model = ScriptedModel(Scenario(inferences=((Say(text="a b c", word_delay_s=10),), (Call(name="date"),))))
    async with running(child(gate)):
        with trio.move_on_after(15):
            await infer(gate, model)
        assert (await infer(gate, model)).calls[0].name == "date"
    assert model.cancelled == ["i1"]


async def test_a_provider_that_is_down_is_probed_seldom_and_the_queue_drains_afterwards(
    autojump_clock: MockClock,
) -> None:
    gate = gate_for(concurrency=8, failures=5)
    outage_s, turns = 600.0, 200
    begun: list[float] = []

    @define
    class Outage(ScriptedModel):
        async def infer(self, request: Request, emit: Emit) -> Reply:
            begun.append(trio.current_time() - start)
            if trio.current_time() - start < outage_s:
                raise ProviderError("down", kind="overloaded")
            await trio.sleep(1.0)
            return await super().infer(request, emit)

    model = Outage(Scenario(inferences=((Say(text="up"),),), repeat=True))
    answered: list[str] = []

    async def turn() -> None:
        while True:
            try:
                answered.append((await infer(gate, model)).text)
                return
            except ProviderError:
                await trio.sleep(1.0)

    async with running(child(gate)):
        start = trio.current_time()
        async with trio.open_nursery() as nursery:
            for _ in range(turns):
                nursery.start_soon(turn)
    assert answered == ["up"] * turns
    probes = [at for at in begun if 0 < at < outage_s]
    assert len(probes) <= outage_s / 30.0
    assert all(later - earlier >= 30.0 for earlier, later in pairwise(probes))
    after = [at for at in begun if at >= outage_s]
    assert max(sum(at <= other < at + 1.0 for other in after) for at in after) <= 8


async def test_an_error_that_no_retry_mends_does_not_open_the_breaker(autojump_clock: MockClock) -> None:
    gate = gate_for(failures=2)
    model = ScriptedModel(Scenario(inferences=((Fail(kind="auth"),),), repeat=True))
    async with running(child(gate)):
        for _ in range(5):
            with pytest.raises(ProviderError):
                await infer(gate, model)
        await wait_all_tasks_blocked()
        assert not gate.statistics().is_open


async def leave(gate: ProviderGate) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        async with gate.slot(Patience.LEAVES):
            raise AssertionError("a slot was granted")
    return caught.value


async def fail(gate: ProviderGate) -> None:
    with pytest.raises(ProviderError):
        async with gate.slot():
            raise ProviderError("down", kind="overloaded")


async def test_who_has_another_model_to_ask_waits_for_no_server_that_is_down(autojump_clock: MockClock) -> None:
    gate = gate_for(failures=2)
    async with running(child(gate)):
        for _ in range(2):
            await fail(gate)
        began = trio.current_time()
        error = await leave(gate)
        assert (error.kind, error.remedy, trio.current_time() - began) == ("down", Remedy.FAIL_OVER, 0.0)
        assert "failed 2 times" in str(error)
        await trio.sleep(30.0)
        async with gate.slot(Patience.LEAVES):
            assert (await leave(gate)).kind == "down", "a probe is under way"


async def test_who_waits_in_line_leaves_when_the_server_goes_down_meanwhile(autojump_clock: MockClock) -> None:
    gate, release = gate_for(failures=1), trio.Event()

    async def break_down() -> None:
        async with gate.slot():
            await release.wait()
            raise ProviderError("down", kind="overloaded")

    async def be_there() -> None:
        with pytest.raises(ProviderError):
            await break_down()

    async with running(child(gate)), trio.open_nursery() as nursery:
        nursery.start_soon(be_there)
        await wait_all_tasks_blocked()
        nursery.start_soon(leave, gate)
        await wait_all_tasks_blocked()
        assert gate.statistics().waiting == 1
        began = trio.current_time()
        release.set()
    assert trio.current_time() == began


async def test_a_retry_after_holds_back_the_others_too(autojump_clock: MockClock) -> None:
    gate = gate_for()
    model = ScriptedModel(Scenario(inferences=((Fail(kind="rate_limit", retry_after_s=7.0),), (Say(text="ok"),))))
    async with running(child(gate)):
        began = trio.current_time()
        with pytest.raises(ProviderError):
            await infer(gate, model)
        await infer(gate, model)
        assert trio.current_time() - began == 7.0
