"""Checkers of histories: is there one order that explains everything that was seen? Pure.

`linearizable`: of operations, each between its call and its return (Herlihy and Wing, 1990), checked key by key where
the model has keys, because a history is linearizable exactly when each object's is. An operation without a return may
have happened or not.

`serializable`: of transactions, whole, in any order; `strictly`: one that ended before another began comes first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol

from attrs import define, field, frozen

from kesoku_actors.harness.checks.judgement import Judgement, Trace, fails, gave_up, holds
from kesoku_actors.harness.checks.search import BUDGET, End, find_order
from kesoku_actors.harness.notes import Note


@frozen(kw_only=True)
class Operation:
    """One operation of a history."""

    name: str
    argument: Any = None
    result: Any = None
    key: Hashable = None
    call: Note
    back: Note | None = None
    """The note of its return; none: it never returned."""


class Model(Protocol):
    """What a correct object does, one operation at a time."""

    def initial(self) -> Hashable:
        """Return the state at the beginning."""

    def follow(self, state: Any, operation: Operation) -> Iterable[Hashable]:
        """Yield the states after an operation with its result, or, when it has not returned, with any result; none
        when it cannot have happened in this state."""


@frozen
class Register:
    """A place that is `write`-n and `read`, and `swap`-ped: argument (expected, new), result whether it was."""

    begin: Hashable = None

    def initial(self) -> Hashable:
        """Return what is in it at the beginning."""
        return self.begin

    def follow(self, state: Any, operation: Operation) -> Iterable[Hashable]:
        """Yield what is in it afterwards."""
        has_returned = operation.back is not None
        match operation.name:
            case "write":
                yield operation.argument
            case "read" if not has_returned or operation.result == state:
                yield state
            case "swap":
                expected, new = operation.argument
                if not has_returned or operation.result is (state == expected):
                    yield new if state == expected else state
            case _:
                return


@frozen
class Queue:
    """First in, first out: `put` an argument, `get` a result; none when it is empty."""

    def initial(self) -> Hashable:
        """Return an empty queue."""
        return ()

    def follow(self, state: Any, operation: Operation) -> Iterable[Hashable]:
        """Yield what is in it afterwards."""
        if operation.name == "put":
            yield (*state, operation.argument)
        elif operation.back is None or operation.result == (state[0] if state else None):
            yield state[1:]


def operations_of(trace: Trace, *, call: str = "call", back: str = "return", by: str = "op") -> list[Operation]:
    """Return the operations of a trace: a note `call` with `name`, and perhaps `argument` and `key`; a note `back` of
    the same `op` with a `result`."""
    returned = {note[by]: note for note in trace if note.kind == back}
    return [
        Operation(
            name=note["name"],
            argument=note.fields.get("argument"),
            key=note.fields.get("key"),
            result=returned[note[by]].fields.get("result") if note[by] in returned else None,
            call=note,
            back=returned.get(note[by]),
        )
        for note in trace
        if note.kind == call
    ]


def linearizable(
    trace: Trace, model: Model, *, call: str = "call", back: str = "return", by: str = "op", budget: int = BUDGET
) -> Judgement:
    """Check that some order of the operations, each between its call and its return, is one of the model's.

    Keys are searched one by one, the shortest history first, each with its share of the budget that is left: what is
    given up for one of them may fail for certain for another. Each operation has an id of its own, `by`: with one that
    is called twice, or returns and was never called, it fails.
    """
    name = f"linearizable({type(model).__name__})"
    called: dict[Any, Note] = {}
    for note in trace:
        if note.kind == back and note[by] not in called:
            return fails(name, f"operation {note[by]!r} returned and had not been called", note)
        if note.kind == call:
            if note[by] in called:
                return fails(name, f"operation {note[by]!r} was called twice", called[note[by]], note)
            called[note[by]] = note
    by_key: defaultdict[Hashable, list[Operation]] = defaultdict(list)
    found = operations_of(trace, call=call, back=back, by=by)
    for operation in found:
        by_key[operation.key].append(operation)
    tried, too_long = 0, 0
    for left, (key, operations) in zip(
        range(len(by_key), 0, -1), sorted(by_key.items(), key=lambda one: len(one[1])), strict=True
    ):
        spans = [(one.call.number, one.back.number if one.back is not None else None) for one in operations]
        search = find_order(
            len(operations),
            _precedence(spans),
            lambda state, number, operations=operations: model.follow(state, operations[number]),  # type: ignore[misc]  # a default binds the loop's value
            model.initial(),
            required=sum(1 << number for number, one in enumerate(operations) if one.back is not None),
            budget=(budget - tried) // left,
        )
        tried += search.tried
        if search.end is End.GAVE_UP:
            too_long = max(too_long, len(operations))
        if search.end is End.NONE:
            return _no_order(name, operations, search.order, "" if key is None else f" of {key!r}")
    if too_long:
        return gave_up(name, f"no order of {too_long} operations was found after {tried} states")
    return holds(name, len(found))


def _precedence(spans: Sequence[tuple[int, int | None]]) -> list[int]:
    """Return for each span, as bits, those that ended before it began."""
    return [
        sum(1 << other for other, (_begin, end) in enumerate(spans) if end is not None and end < begin)
        for begin, _end in spans
    ]


def _no_order(name: str, operations: Sequence[Operation], order: Sequence[int], where: str) -> Judgement:
    """Name the last operation of the longest order, and the first one that does not go on from there."""
    left = [one for number, one in enumerate(operations) if number not in order and one.back is not None]
    stuck = min(left, key=lambda one: one.back.number if one.back is not None else 0)
    before = [operations[order[-1]].call] if order else []
    assert stuck.back is not None
    why = f"no order explains `{stuck.name}`{where} with the result {stuck.result!r}"
    return fails(name, why, *before, stuck.back)


@define
class _Transaction:
    """What one transaction read and wrote, in order."""

    notes: list[Note] = field(factory=list)
    commit: Note | None = None

    def follow(self, state: frozenset[tuple[Any, Any]], names: tuple[str, str], initial: Any) -> Iterable[Hashable]:
        """Yield the state behind it, if everything it read was so."""
        read, write = names
        values = dict(state)
        for note in self.notes:
            if note.kind == write:
                values[note["key"]] = note["value"]
            elif note.kind == read and values.get(note["key"], initial) != note["value"]:
                return
        yield frozenset(values.items())


def serializable(
    trace: Trace,
    *,
    by: str = "transaction",
    read: str = "read",
    write: str = "write",
    commit: str = "commit",
    initial: Any = None,
    strictly: bool = False,
    budget: int = BUDGET,
) -> Judgement:
    """Check that the committed transactions could have run one after the other.

    Notes `read` and `write` have a `key` and a `value`; what was not committed has not happened. Values are hashable.
    Each transaction has an id of its own, `by`: with one that goes on behind its commit, it fails.
    """
    name = f"serializable(by {by})"
    found: defaultdict[Any, _Transaction] = defaultdict(_Transaction)
    for note in trace:
        if note.kind not in (read, write, commit):
            continue
        one = found[note[by]]
        if one.commit is not None:
            again = "was committed twice" if note.kind == commit else f"has a `{note.kind}` behind its commit"
            return fails(name, f"transaction {note[by]!r} {again}", one.commit, note)
        if note.kind == commit:
            one.commit = note
        else:
            one.notes.append(note)
    done = [one for one in found.values() if one.commit is not None]
    spans = [((one.notes or [one.commit])[0].number, one.commit.number) for one in done if one.commit is not None]
    search = find_order(
        len(done),
        _precedence(spans) if strictly else [0] * len(done),
        lambda state, number: done[number].follow(state, (read, write), initial),  # type: ignore[arg-type]  # pairs, not one state
        frozenset(),
        required=(1 << len(done)) - 1,
        budget=budget,
    )
    if search.end is End.GAVE_UP:
        return gave_up(name, f"no order of {len(done)} transactions was found after {search.tried} states")
    if search.end is End.NONE:
        left = next(number for number in range(len(done)) if number not in search.order)
        before = [done[search.order[-1]].commit] if search.order else []
        witnesses = [note for note in (*before, done[left].commit) if note is not None]
        return fails(name, f"no order explains what transaction {witnesses[-1][by]!r} read", *witnesses)
    return holds(name, len(done))
