"""Makes the trace of a session from what is stored of it and from its turn log. Pure.

What is stored knows when a row was committed and how long an inference or a call took; from that follow the times.
Where neither row nor log tells the time of an inference, it is put behind what came before it and marked as guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from kesoku_actors.protocol import Job, Message, Reason, Role, SessionInfo, Status, Step, Stop, StoredStep, Type
from kesoku_actors.store import CallRecord, SessionRecord, TurnRecord
from kesoku_actors.trace.calls import call_item
from kesoku_actors.trace.exchanges import Exchanges, Mask, Pool, needed
from kesoku_actors.trace.items import (
    answer,
    aside,
    inference,
    interruption,
    message,
    stop,
    text,
    thought,
    title_of,
    tokens_of,
)
from kesoku_actors.trace.model import Item, Kind, State, Tokens, Trace, Turn
from kesoku_actors.turnlog import LoggedInference
from kesoku_actors.values import frozen

Price = Callable[[str, Tokens], float | None]
"""What an inference of a model cost, in US dollars; none when that is not known."""

FAILURES: Final[Mapping[str, str]] = {
    Reason.BUDGET: "The turn used up its budget",
    Reason.PROVIDER: "The model failed",
    Reason.ATTEMPTS: "The program failed several times at this turn",
    Reason.STALE: "The turn had begun too long ago to be taken up again",
}
"""By reason, why a turn with the status `error` has no answer."""


@frozen(kw_only=True)
class Sources:
    """What a trace is made of."""

    record: SessionRecord
    logs: Iterable[LoggedInference]
    mask: Mask
    """Hides known secrets (T6)."""
    price: Price
    generated: float
    """UTC seconds."""
    program: str


def build_trace(sources: Sources, number: int | None = None) -> Trace:
    """Return the trace of a session, or of its turn with this number alone. Raises `IndexError` when there is none."""
    record = sources.record
    pool = Pool(mask=sources.mask)
    exchanges = Exchanges(pool=pool, rows=record.messages)
    exchanges.read(sources.logs)
    desk = _Desk(sources, exchanges)
    numbers = range(1, len(desk.roots) + 1)
    if number is not None and number not in numbers:
        raise IndexError(f"there is no turn {number}: the session has {len(numbers)}")
    turns = tuple(desk.turn(each - 1) for each in (numbers if number is None else (number,)))
    outside = tuple(_outside(record, exchanges, sources.mask)) if number is None else ()
    found, texts = needed(exchanges.found, pool.texts)
    return Trace(
        session=_masked(record.session, sources.mask),
        generated=sources.generated,
        program=sources.program,
        turns=turns,
        turns_in_all=len(desk.roots),
        outside=outside,
        exchanges=found,
        pool=texts,
    )


def _outside(record: SessionRecord, exchanges: Exchanges, mask: Mask) -> list[Item]:
    """Return what belongs to no turn, by time."""
    waiting = [message(row, mask) for row in record.outside]
    asides = [aside(logged, exchange) for logged, exchange in exchanges.asides()]
    return sorted([*waiting, *asides], key=lambda item: item.begin)


def _masked(session: SessionInfo, mask: Mask) -> SessionInfo:
    return SessionInfo(
        id=session.id,
        chatbot_id=session.chatbot_id,
        channel_id=session.channel_id,
        state=session.state,
        created=session.created,
        last_activity=session.last_activity,
        turns=session.turns,
        title=mask(session.title),
    )


class _Desk:
    """The session's facts by turn, and what is made of one turn."""

    def __init__(self, sources: Sources, exchanges: Exchanges) -> None:
        record = sources.record
        self._mask, self._price, self._exchanges = sources.mask, sources.price, exchanges
        self._turns: dict[str, TurnRecord] = {turn.root_id: turn for turn in record.turns}
        self._calls: dict[str, CallRecord] = {call.call_id: call for call in record.calls}
        self._jobs: dict[str, Job] = {job.call_id: job for job in record.jobs}
        self._rows: dict[str, list[tuple[int, Message]]] = {}
        for position, row in enumerate(record.messages):
            self._rows.setdefault(row.root_id or "", []).append((position, row))
        self._steps: dict[str, list[StoredStep]] = {}
        for stored in record.steps:
            self._steps.setdefault(stored.root_id, []).append(stored)
        self._stops = record.stops
        self.roots = [row for row in record.messages if row.id == row.root_id]

    def turn(self, index: int) -> Turn:
        """Return one turn."""
        root = self.roots[index]
        begun = self._turns.get(root.id)
        began = begun.began if begun is not None else root.timestamp
        items = [*self._items(root, began)]
        later = self.roots[index + 1] if index + 1 < len(self.roots) else None
        ended = max([began, *(item.end or item.begin for item in items)])
        items += self._ending(root, later, ended)
        inferences = [item for item in items if item.kind is Kind.INFERENCE]
        return Turn(
            number=index + 1,
            root_id=root.id,
            title=self._mask(title_of(root.content)),
            status=root.status.value,
            reason=root.metadata.get("reason"),
            failure=_failure(root, items),
            began=began,
            ended=max([ended, *(item.end or item.begin for item in items)]),
            attempts=begun.attempts if begun is not None else 0,
            tokens=sum((item.tokens or Tokens() for item in inferences), Tokens()),
            cost=self._cost(root.id),
            items=tuple(items),
        )

    def _items(self, root: Message, began: float) -> Iterator[Item]:
        """Yield what happened in a turn, in the order in which the model reads it."""
        rows, steps = self._rows[root.id], self._steps.get(root.id, [])
        results = {row.parent_id: row for _, row in rows if row.type is Type.TOOL_RESULT}
        step_of = {message_id: number for number, stored in enumerate(steps) for message_id in stored.message_ids}
        said = {row.id: row for _, row in rows}
        told, now = 0, began

        def inferred(upto: int, position: int) -> Iterator[Item]:
            nonlocal told, now
            for stored in steps[told:upto]:
                item = self._inference(stored, position, [said[id] for id in stored.message_ids if id in said], now)
                now = max(now, item.end or now)
                yield item
            told = max(told, upto)

        for position, row in rows:
            if row.id in step_of:
                yield from inferred(step_of[row.id] + 1, position)
            elif row.role is Role.SYSTEM and row.id != root.id:  # says why there is no answer, or comes of a job
                yield from inferred(len(steps) if row is rows[-1][1] else told, position)
            match row.type:
                case Type.THOUGHT:
                    yield thought(row, self._mask)
                case Type.TOOL_CALL:
                    known, job = self._calls.get(row.id), self._jobs.get(row.id)
                    yield call_item(row, results.get(row.id), known, job, self._mask)
                case Type.TEXT if row.role is Role.ASSISTANT:
                    yield (answer if row.status is not Status.RESPONDED else text)(row, self._mask)
                case Type.TEXT:
                    yield message(row, self._mask)
                case Type.TOOL_RESULT:
                    pass
            now = max(now, row.timestamp)
        yield from inferred(len(steps), rows[-1][0] + 1)

    def _inference(self, stored: StoredStep, position: int, said: Sequence[Message], now: float) -> Item:
        exchange = self._exchanges.add(stored, position, said)
        inference_id = stored.step.inference_id
        times = self._exchanges.times(inference_id)
        first_s = self._exchanges.first_piece_s(inference_id)
        return inference(stored, said, times, now, exchange, first_s, self._mask)

    def _ending(self, root: Message, later: Message | None, ended: float) -> Iterator[Item]:
        for one in self._stops:
            if _stops(one, root):
                yield stop(one)
        if root.status is Status.INTERRUPTED:
            yield interruption(root, later, ended, self._mask)

    def _cost(self, root_id: str) -> float | None:
        costs = [self._cost_of(one.step) for one in self._steps.get(root_id, [])]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known and len(known) == len(costs) else None

    def _cost_of(self, step: Step) -> float | None:
        """Return what an inference cost, as it was settled; by its tokens where there was no price then."""
        return self._price(step.model, tokens_of(step.usage)) if step.usage.cost is None else step.usage.cost


def _stops(one: Stop, root: Message) -> bool:
    return one.root_id == root.id or root.id in one.covers


def _failure(root: Message, items: Sequence[Item]) -> str | None:
    """Return why a turn has no answer, or why nobody has read it."""
    undelivered = [item for item in items if item.kind is Kind.ANSWER and item.state is State.FAILED]
    if root.status is not Status.ERROR:
        return undelivered[-1].error if undelivered else None
    why = FAILURES.get(root.metadata.get("reason", ""), "The turn ended in an error")
    told = [part.text for item in items if item.kind is Kind.NOTICE for part in item.parts][-1:]
    errors = [item.error for item in items if item.kind is Kind.INFERENCE and item.error][-1:]
    details = [*(error for error in errors if not any(error in text for text in told)), *told]
    return ": ".join([why, *details[:1]]) + "".join(f" {detail}" for detail in details[1:])
