"""A story of three turns and four tools, told by a model without memory, for tests that break off in the middle.

What the model says follows from the history alone, so that it goes on after a restart wherever the history ends. Tools
and deliveries are counted outside the daemon's life.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio
from attrs import define, field, frozen

from kesoku_actors.actors import ActorStopped, Cell, ChildSpec
from kesoku_actors.adapters.courier import deliver_channel
from kesoku_actors.gateway import Gateway
from kesoku_actors.llm.gate import ProviderGate
from kesoku_actors.llm.port import CallRequest, Emit, Finish, Limits, Reply, Request
from kesoku_actors.protocol import Message, Role, Status, Type
from kesoku_actors.session import Brain
from kesoku_actors.store import Chunk, StoreBusy, StoreOptions
from tests.paths.house import ROOM, Home, at_home

STORY: Final = {
    "Bake a cake.": (("mix", "heat"),),
    "Is it good?": (("weigh",), ("taste",)),
    "Thank you.": (),
}
"""What a person says, and the batches of tools it takes."""
TOOLS: Final = ("mix", "heat", "weigh", "taste")


@frozen
class Storyteller:
    """A provider that follows the story."""

    name: str = "story"
    model: str = "story"
    context_tokens: int | None = None
    supports_tools: bool = True
    limits: Limits = field(factory=Limits)

    async def infer(self, request: Request, emit: Emit) -> Reply:
        await trio.sleep(0.5)
        said, results = _open_question(request.history)
        for batch in STORY[said]:
            if results < len(batch):
                calls = tuple(CallRequest(name="work", arguments={"what": what}) for what in batch)
                return Reply(provider=self.name, model=self.model, calls=calls, finish=Finish.CALLS)
            results -= len(batch)
        return Reply(provider=self.name, model=self.model, text=f"I am done with: {said}")


def _open_question(history: Sequence[Message]) -> tuple[str, int]:
    """Return what was asked last and how many results there are since."""
    last = max(number for number, row in enumerate(history) if row.role is Role.USER)
    return history[last].content, sum(row.type is Type.TOOL_RESULT for row in history[last:])


@define(eq=False)
class Outside:
    """What happened in the world while the story was told, over all lives of the daemon."""

    accepted: list[str] = field(factory=list)
    """Texts whose posting returned."""
    runs: Counter[str] = field(factory=Counter)
    """How often each tool was entered."""
    sent: Counter[str] = field(factory=Counter)
    """How often each answer was sent."""
    lives: int = 0

    async def work(self, what: str) -> str:
        """Do a piece of work.

        Args:
            what: which one
        """
        self.runs[what] += 1
        await trio.sleep(1)
        return f"{what} is done"

    async def send(self, _message: Message, chunk: Chunk) -> str | None:
        self.sent[chunk.content] += 1
        await trio.lowlevel.checkpoint()
        return None

    async def courier(self, cell: Cell[None], *, gateway: Gateway) -> None:
        """Deliver what leaves."""
        pending = frozenset({Status.PENDING})
        async with aclosing(gateway.listen(channel=ROOM, statuses=pending, hints=False, after=0)) as leaving:
            cell.started()
            async for _event in leaving:
                await deliver_channel(ROOM, gateway, self.send, jitter=lambda: 0.5)

    @asynccontextmanager
    async def life(self, folder: Path, store: StoreOptions, **changes: object) -> AsyncIterator[Home]:
        """One life of the daemon that tells the story; each has ids of its own."""
        self.lives += 1
        teller = Storyteller()
        brain = Brain(provider=teller, gate=ProviderGate.of(teller))
        parts = {
            "store": store,
            "brains": (brain,),
            "brain_for": lambda _channel: brain,
            "edges": lambda gateway: (ChildSpec(id="courier", start=partial(self.courier, gateway=gateway)),),
        }
        async with at_home(folder, tools=[self.work], seed=self.lives, **(parts | changes)) as home:
            yield home

    async def tell(self, home: Home) -> None:
        """Post what is not accepted yet, one after the other, and wait until all of it has ended and left."""
        rows = []
        for text in STORY:
            rows.append(await home.say(text, external_id=text))
            if text not in self.accepted:
                self.accepted.append(text)
            await home.ended(rows[-1])
        for row in rows:
            await home.until(lambda one, root=row.id: one.root_id == root and one.status is Status.DELIVERED)

    async def insist(self, home: Home) -> None:
        """Tell it as people do whose platform sends again what was not accepted."""
        while True:
            try:
                return await self.tell(home)
            except (ActorStopped, StoreBusy):
                await trio.sleep(1)


async def rows(home: Home) -> tuple[Message, ...]:
    return (await home.gateway.reader.changes(0, 1_000)).changed


def judge(
    outside: Outside, accepted: list[str], found: tuple[Message, ...], left: tuple[Message, ...], *, breaks: int
) -> None:
    """Raise unless every promise was kept.

    The last life found the rows `found` and left the rows `left`; `breaks` is how often the store broke off.
    """
    there = {row.external_id for row in found}
    assert set(accepted) <= there, "C1: what was accepted is there"
    questions = [row for row in left if row.role is Role.USER]
    assert [row.content for row in sorted(questions, key=lambda row: row.seq)] == list(STORY)
    assert {row.status for row in questions} == {Status.PROCESSED}, "C2: what was open is answered"
    answers = Counter(row.content for row in left if row.status is Status.DELIVERED)
    assert answers == Counter(f"I am done with: {text}" for text in STORY), "C4: once each"
    calls = [row.id for row in left if row.type is Type.TOOL_CALL]
    results = [row for row in left if row.type is Type.TOOL_RESULT]
    assert sorted(calls) == sorted(row.parent_id or "" for row in results), "O4: one result for each call"
    for what in TOOLS:
        assert outside.runs[what] <= 1, f"C3: {what} ran {outside.runs[what]} times"
    done = {row.content.partition(" ")[0] for row in results if row.metadata["outcome"] == "ok"}
    assert done <= set(outside.runs)
    assert set(outside.sent) == set(answers), "C5: every answer was sent"
    assert max(outside.sent.values()) <= 1 + breaks, "C5: again only after a break between the send and its record"
