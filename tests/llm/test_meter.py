"""What inferences use and cost is counted for each of them, and the money reserved before (B4)."""

from __future__ import annotations

from functools import partial

import pytest
import trio
from attrs import define, evolve, field
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from kesoku_actors.actors import ChildSpec
from kesoku_actors.actors.testing import running
from kesoku_actors.llm.gate import ProviderGate, infer_once, provider_actor
from kesoku_actors.llm.meter import Meter
from kesoku_actors.llm.port import Emit, ProviderError, Reply, Request, Used, unheard
from kesoku_actors.llm.prices import Price, cost_of
from kesoku_actors.llm.scripted import Fail, Inference, Say, Scenario, ScriptedModel, Spend, Wait
from kesoku_actors.protocol import Usage

from .examples import asking, ignore, said

PRICE = Price(input=3.0, output=15.0, cached=0.3)


@define
class Purse:
    """A purse that notes what it is asked."""

    refusal: str | None = None
    reserved: dict[str, float] = field(factory=dict)
    settled: list[tuple[str, float]] = field(factory=list)
    waits: bool = False

    async def reserve(self, id: str, dollars: float) -> str | None:
        self.reserved[id] = dollars
        if self.waits:
            await trio.sleep_forever()
        return self.refusal

    def settle(self, id: str, dollars: float) -> None:
        self.settled.append((id, dollars))


def model_of(*moves: Inference) -> ScriptedModel:
    return ScriptedModel(Scenario(inferences=moves))


class Loading(ScriptedModel):
    """A model that loads files for ever before it sends anything."""

    def __init__(self) -> None:
        super().__init__(Scenario(inferences=()))

    async def infer(self, request: Request, emit: Emit) -> Reply:
        await trio.sleep_forever()
        raise AssertionError


async def infer(
    *moves: Inference, purse: Purse | None = None, price: Price | None = PRICE, used: Used = unheard
) -> tuple[Reply, Meter]:
    """Run one inference that plays these moves; return its reply, and the meter."""
    model = model_of(*moves)
    gate = ProviderGate.of(model, Meter(price=price, purse=purse))
    async with running(ChildSpec(id="g", start=partial(provider_actor, gate=gate), mailbox=gate.mailbox)):
        request = evolve(asking(said(1, "Hi")), tokens=1000, used=used)
        return await infer_once(model, gate, request, ignore), gate.meter


def test_cached_tokens_have_their_own_price_and_thinking_is_output() -> None:
    usage = Usage(input=1_000_000, cached=400_000, output=100_000, thinking=50_000)
    assert cost_of(usage, PRICE) == pytest.approx(0.6 * 3 + 0.4 * 0.3 + 0.1 * 15)
    assert cost_of(usage, Price(input=3.0, output=15.0)) == pytest.approx(3 + 1.5)
    assert cost_of(Usage(), PRICE) is None


def test_tokens_written_to_a_cache_have_their_own_price_too() -> None:
    usage = Usage(input=1_000_000, cached=400_000, written=500_000)
    assert cost_of(usage, PRICE) == pytest.approx(0.1 * 3 + 0.4 * 0.3 + 0.5 * 3.75)
    assert cost_of(usage, evolve(PRICE, written=6.0)) == pytest.approx(0.1 * 3 + 0.4 * 0.3 + 0.5 * 6)


_COUNTS = st.integers(0, 10**7)


@given(_COUNTS, _COUNTS, _COUNTS, _COUNTS)
def test_no_inference_costs_less_than_nothing(read: int, cached: int, written: int, output: int) -> None:
    cost = cost_of(Usage(input=read, cached=cached, written=written, output=output), PRICE)
    assert cost is not None
    assert cost >= 0


async def test_a_reply_tells_what_it_cost_and_the_meter_counts_it(autojump_clock: MockClock) -> None:
    reply, meter = await infer((Say(text="Hello."), Spend(input=1000, cached=500, output=100, thinking=40)))
    cost = (500 * 3 + 500 * 0.3 + 100 * 15) / 1e6
    assert reply.usage.cost == pytest.approx(cost)
    read = meter.statistics()
    assert (read.inferences, read.broken) == (1, 0)
    assert (read.input, read.cached, read.output, read.thinking) == (1000, 500, 100, 40)
    assert read.cost == pytest.approx(cost)


async def test_without_a_price_tokens_are_counted_and_no_cost_is_claimed(autojump_clock: MockClock) -> None:
    reply, meter = await infer((Say(text="Hello."), Spend(input=1000, output=100)), price=None)
    assert (reply.usage.cost, meter.statistics().input, meter.statistics().cost) == (None, 1000, 0.0)


async def test_an_estimate_is_reserved_and_settled_by_what_the_provider_counted(autojump_clock: MockClock) -> None:
    purse = Purse()
    await infer((Say(text="Hello."), Spend(input=2000, output=100)), purse=purse)
    assert purse.reserved == {"i1": pytest.approx((1000 * 3 + 500 * 15) / 1e6)}
    assert purse.settled == [("i1", pytest.approx((2000 * 3 + 100 * 15) / 1e6))]


async def test_what_no_provider_counted_is_settled_by_our_own_count(autojump_clock: MockClock) -> None:
    purse = Purse()
    await infer((Say(text="Hello, you there."),), purse=purse)
    assert purse.settled == [("i1", pytest.approx((1000 * 3 + 4 * 15) / 1e6))]


async def test_too_little_money_keeps_the_request_from_being_sent(autojump_clock: MockClock) -> None:
    purse, model = Purse(refusal="the day's money is spent"), ScriptedModel(Scenario(inferences=((Say(text="x"),),)))
    gate = ProviderGate.of(model, Meter(price=PRICE, purse=purse))
    with pytest.raises(ProviderError, match="money is spent") as caught:
        await infer_once(model, gate, asking(said(1, "Hi")), ignore)
    assert caught.value.kind == "budget"
    assert model.requests == []
    assert purse.settled == [("i1", 0.0)]


@pytest.mark.parametrize(
    ("moves", "cost"),
    [((Fail(kind="auth"),), 0.0), ((Say(text="Hello, you "), Fail(kind="cut")), (1000 * 3 + 2 * 15) / 1e6)],
)
async def test_a_failure_costs_nothing_until_something_was_heard(
    autojump_clock: MockClock, moves: Inference, cost: float
) -> None:
    purse = Purse()
    with pytest.raises(ProviderError):
        await infer(moves, purse=purse)
    assert purse.settled == [("i1", pytest.approx(cost))]


async def test_a_cancelled_inference_is_settled_by_what_is_known_of_it(autojump_clock: MockClock) -> None:
    purse = Purse()
    with trio.move_on_after(15):
        await infer((Say(text="four four four", word_delay_s=10),), purse=purse)
    assert purse.settled == [("i1", pytest.approx((1000 * 3 + 1 * 15) / 1e6))]


@pytest.mark.parametrize(
    ("moves", "known"),
    [
        ((Spend(input=700, cached=200, output=1), Fail(kind="cut")), Usage(input=700, cached=200, output=1)),
        ((Spend(input=700, output=1), Say(text="twelve chars"), Fail(kind="cut")), Usage(input=700, output=3)),
        ((Say(text="twelve chars"), Fail(kind="cut")), Usage(input=1000, output=3)),
        ((Fail(kind="auth"),), Usage()),
    ],
)
async def test_who_asked_is_told_once_what_a_failure_used_and_cost(
    autojump_clock: MockClock, moves: Inference, known: Usage
) -> None:
    told: list[Usage] = []
    with pytest.raises(ProviderError):
        await infer(moves, used=told.append)
    assert told == [evolve(known, cost=cost_of(known, PRICE))]


async def test_who_asked_is_told_what_a_cancelled_inference_used_also_while_it_waited_to_be_sent(
    autojump_clock: MockClock,
) -> None:
    told: list[Usage] = []
    with trio.move_on_after(15):
        await infer((Spend(input=700, output=1), Wait(seconds=60)), used=told.append)
    assert told == [Usage(input=700, output=1, cost=pytest.approx((700 * 3 + 15) / 1e6))]

    gate, model = ProviderGate.of(model_of((Say(text="x"),)), Meter(price=PRICE)), Loading()
    with trio.move_on_after(15):
        await infer_once(model, gate, evolve(asking(said(1, "Hi")), used=told.append), ignore)
    assert told[1:] == [Usage()], "nothing was sent"


async def test_who_is_cancelled_while_reserving_leaves_nothing_reserved(autojump_clock: MockClock) -> None:
    purse = Purse(waits=True)
    with trio.move_on_after(1):
        await infer((Say(text="x"),), purse=purse)
    assert purse.settled == [("i1", 0.0)]
