"""Cuts a prepared copy of a history to what a model reads at once, so that a session can always go on (P1). Pure.

A ladder: each rung is used only when those above were not enough, and the last one always is.

1. long results become a short head and tail, the oldest first; the newest batch is left alone;
2. summaries and finished turns are left out whole, the oldest first; a remark says so;
3. so are the oldest steps of the running turn, never its last one, and never what people said in it;
4. every text longer than a bound becomes its head and tail, the bound halved until all fits: first of what the model
   and its tools said, then of what people said too. So of a single message that is too long the head and the tail are
   read, and a message that is not is read whole;
5. what the running turn began with is left, alone.

Invariants: calls and results go together. What a rung took stays taken (`Cut`), and each time it takes a quarter of the
room more than it has to, so that the next requests begin with the same bytes. Sizes are tokens, as `cost` counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from kesoku_actors.llm.port import StepContent
from kesoku_actors.protocol import Message, Role, Type
from kesoku_actors.protocol.summaries import Spot
from kesoku_actors.session.preparation import Prepared, notice, shortened
from kesoku_actors.session.units import Placed, Unit, turns, units
from kesoku_actors.values import frozen

HEAD: Final = 300
TAIL: Final = 150
SHORT: Final = 600
"""Characters of a result that rung 1 leaves alone."""
LEFT_OUT: Final = "The beginning of this conversation is left out here, because it is long."
STEPS_LEFT_OUT: Final = "What was done first for this is left out here, because it is long."
_REMARK: Final = "left-out"
"""What the id of a remark ends with."""
SMALLEST: Final = 32
"""Characters: shorter texts are never clipped."""

Cost = Callable[[Message], float]


@frozen(kw_only=True)
class Cut:
    """How far each rung has gone: up to and with which row. Spots only ever grow."""

    shortened: Spot = (0, 0)
    turns: Spot = (0, 0)
    steps: Spot = (0, 0)


NOTHING_CUT: Final = Cut()


@frozen(kw_only=True)
class Fitted:
    """A copy that fits, or is as near as can be; how far was gone for it; and what was done now, in words."""

    rows: tuple[Placed, ...]
    steps: tuple[StepContent, ...]
    cut: Cut
    done: tuple[str, ...] = ()


def fit(prepared: Prepared, room: float | None, cost: Cost, running: str | None, cut: Cut = NOTHING_CUT) -> Fitted:
    """Return the copy cut to `room` tokens; none: of any length."""
    rows, steps, done = list(prepared.rows), prepared.steps, list[str]()
    rows = _apply(rows, cut, running)
    for name, rung in _RUNGS:
        excess = _size(rows, cost) - room if room is not None else 0.0
        if room is None or excess <= 0:
            break
        reached = rung(rows, _quantised(excess, room), cost, running)
        if reached is not None:
            cut = evolve(cut, **{name: max(reached, getattr(cut, name))})
            rows = _apply(list(prepared.rows), cut, running)
            done.append(f"cut {name} up to {reached}")
    if room is not None and _size(rows, cost) > room:
        if _size(_clip(rows, SMALLEST, SMALLEST), cost) > room:
            rows = _least(rows, running)
            done.append("left out all but what the turn began with")
        fitting = ((others, people) for others, people in _BOUNDS if _size(_clip(rows, others, people), cost) <= room)
        others, people = next(fitting, (SMALLEST, SMALLEST))
        clipped = _clip(rows, others, people)
        changed = {new.row.id for old, new in zip(rows, clipped, strict=True) if new is not old}
        rows = clipped
        steps = tuple(evolve(step, native=None) if changed.intersection(step.message_ids) else step for step in steps)
        done.append(f"clipped {len(changed)} texts to {others} characters, people's to {people}")
    return Fitted(rows=tuple(rows), steps=steps, cut=cut, done=tuple(done))


def _size(rows: Sequence[Placed], cost: Cost) -> float:
    return sum(cost(placed.row) for placed in rows)


def _quantised(excess: float, room: float) -> float:
    step = max(1.0, room / 4)
    return step * -(-excess // step)


def _apply(rows: list[Placed], cut: Cut, running: str | None) -> list[Placed]:
    """Return the rows without what the rungs have taken."""
    short = [Placed(each.spot, _short(each.row)) if _is_cut(each, cut.shortened) else each for each in rows]
    kept = [each for each in short if each.row.root_id == running or each.spot > cut.turns]
    if len(kept) < len(short):
        kept.insert(0, Placed(cut.turns, notice(short[0].row, _REMARK, LEFT_OUT)))
    gone = {
        each.row.id
        for unit in units(kept)
        if unit[0].row.role is Role.ASSISTANT and unit[-1].spot <= cut.steps
        for each in unit
    }
    if not gone:
        return kept
    first = next(index for index, each in enumerate(kept) if each.row.id in gone)
    remark = _steps_remark(kept[first])
    rest = [each for each in kept[first:] if each.row.id not in gone]
    return [*kept[:first], remark, *rest]


def _steps_remark(first: Placed) -> Placed:
    """Return the remark in place of steps, the first row of which is given.

    It is part of their turn: as one of its own it would part the turn in two, and rung 2 a call from its result.
    """
    row = notice(first.row, f"steps-{_REMARK}", STEPS_LEFT_OUT)
    return Placed(first.spot, evolve(row, root_id=first.row.root_id))


def _is_remark(row: Message) -> bool:
    return row.id.endswith(_REMARK)


def _is_cut(placed: Placed, upto: Spot) -> bool:
    return placed.spot <= upto and _may_shorten(placed)


def _may_shorten(placed: Placed) -> bool:
    return placed.row.type is Type.TOOL_RESULT and len(placed.row.content) > SHORT


def _short(row: Message) -> Message:
    return shortened(row, HEAD, TAIL)


def _shorten(rows: list[Placed], wanted: float, cost: Cost, _running: str | None) -> Spot | None:
    """Rung 1: return up to which row results have to be short."""
    newest = len(rows)
    while newest and rows[newest - 1].row.role is Role.TOOL:
        newest -= 1
    saved, reached = 0.0, None
    for placed in rows[:newest]:
        if saved >= wanted:
            break
        if _may_shorten(placed):
            saved += cost(placed.row) - cost(_short(placed.row))
            reached = placed.spot
    return reached


def _leave_turns(rows: list[Placed], wanted: float, cost: Cost, running: str | None) -> Spot | None:
    """Rung 2: return up to which row summaries and finished turns have to go."""
    finished = [turn for turn in turns(rows) if turn[0].row.root_id != running and not _is_remark(turn[0].row)]
    return _leave(finished, wanted, cost)


def _leave_steps(rows: list[Placed], wanted: float, cost: Cost, running: str | None) -> Spot | None:
    """Rung 3: return up to which row the steps of the running turn have to go."""
    steps = [unit for unit in units(rows) if unit[0].row.root_id == running and unit[0].row.role is Role.ASSISTANT]
    return _leave(steps[:-1], wanted, cost)


def _leave(parts: Sequence[Unit], wanted: float, cost: Cost) -> Spot | None:
    saved, reached = 0.0, None
    for part in parts:
        if saved >= wanted:
            break
        saved += _size(part, cost)
        reached = part[-1].spot
    return reached


_RUNGS: Final = (("shortened", _shorten), ("turns", _leave_turns), ("steps", _leave_steps))
_SIZES: Final = tuple(SMALLEST << power for power in range(18, -1, -1))
_BOUNDS: Final = (*((size, _SIZES[0]) for size in _SIZES), *((SMALLEST, size) for size in _SIZES))
"""Of the characters of what the model and its tools said, and of what people said, in the order of trying."""


def _least(rows: Sequence[Placed], running: str | None) -> list[Placed]:
    """Rung 5: return the first text of the running turn, or the last row there is, behind a remark."""
    first = next((placed for placed in rows if placed.row.root_id == running), rows[-1])
    return [Placed(first.spot, notice(first.row, _REMARK, LEFT_OUT)), first]


def _clip(rows: Sequence[Placed], others: int, people: int) -> list[Placed]:
    """Rung 4: return the rows with no text longer than its bound, arguments of calls included."""
    return [_clipped(placed, people if placed.row.is_person else others) for placed in rows]


def _clipped(placed: Placed, bound: int) -> Placed:
    row = placed.row
    if _is_remark(row):  # ours, and short
        return placed
    if row.type is Type.TOOL_CALL:
        arguments = row.metadata["tool_arguments"]
        short = _clipped_value(arguments, bound)
        if short != arguments:
            # The words of a call are made of its arguments, and are counted in their place.
            metadata = {**row.metadata, "tool_arguments": short}
            row = evolve(row, content=_clipped_text(row.content, bound), metadata=metadata)
            return Placed(placed.spot, row)
        return placed
    content = _clipped_text(row.content, bound)
    return placed if content == row.content else Placed(placed.spot, evolve(row, content=content))


def _clipped_value(value: Any, bound: int) -> Any:
    match value:
        case str():
            return _clipped_text(value, bound)
        case Mapping():
            return {key: _clipped_value(inner, bound) for key, inner in value.items()}
        case list() | tuple():
            return [_clipped_value(inner, bound) for inner in value]
        case _:
            return value


def _clipped_text(text: str, bound: int) -> str:
    if len(text) <= bound:
        return text
    head, tail = bound * 2 // 3, bound // 3
    clipped = f"{text[:head]}\n[... {len(text) - head - tail:,} characters left out ...]\n{text[len(text) - tail :]}"
    return clipped if len(clipped) < len(text) else text
