"""Requests and replies of a trace: from the turn log where it is there, else rebuilt from what is stored. Pure.

The messages of a request are nearly those of the one before it, so each text stands once in the pool and each exchange
names only what it adds to an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import evolve, field

from kesoku_actors.protocol import Message, StoredStep, Type
from kesoku_actors.trace.model import Exchange, Source, Tokens
from kesoku_actors.turnlog import LoggedInference, to_yaml
from kesoku_actors.values import define

Mask = Callable[[str], str]

REBUILT: Final = "# Rebuilt from the stored rows: the turn log does not have this inference.\n"


@define(eq=False)
class Pool:
    """Texts by index; each stands once, masked (T6)."""

    mask: Mask
    texts: list[str] = field(factory=list, init=False)
    _indices: dict[str, int] = field(factory=dict, init=False)

    def add(self, text: str) -> int:
        """Return the index of a text."""
        index = self._indices.get(text)
        if index is None:
            index = self._indices[text] = len(self.texts)
            self.texts.append(self.mask(text))
        return index


@define(eq=False)
class Logged:
    """An inference of the log whose texts are in the pool."""

    inference_id: str
    name: str
    model: str
    purpose: str
    state: str
    tokens: Tokens
    messages: list[int]
    request: int
    tools: int
    response: int
    began: float | None
    latency_s: float | None
    first_piece_s: float | None


@define(eq=False)
class Exchanges:
    """The exchanges so far. Give it the log and the session's rows, then ask for each inference in order."""

    pool: Pool
    rows: Sequence[Message]
    """In the order of the history."""
    found: list[Exchange] = field(factory=list, init=False)
    _logged: dict[str, Logged] = field(factory=dict, init=False)
    _asked: set[str] = field(factory=set, init=False)
    _last_logged: tuple[int, list[int]] | None = field(default=None, init=False)
    _last_rebuilt: tuple[int, int] | None = field(default=None, init=False)
    """The latest rebuilt exchange, and how many rows it has."""
    _row_texts: list[int] = field(factory=list, init=False)

    def read(self, logs: Iterable[LoggedInference]) -> None:
        """Take the turn log."""
        add = self.pool.add
        for log in logs:
            self._logged[log.inference_id] = Logged(
                inference_id=log.inference_id,
                name=log.name,
                model=log.model,
                purpose=log.purpose,
                state=log.state,
                tokens=Tokens(**dict(log.tokens), is_known=bool(log.tokens)),
                messages=[add(message) for message in log.history],
                request=add(log.request),
                tools=add(log.tools),
                response=add(log.response),
                began=log.began,
                latency_s=log.latency_s,
                first_piece_s=log.first_piece_s,
            )

    def times(self, inference_id: str) -> tuple[float, float] | None:
        """Return when an inference began and ended, if the log tells."""
        logged = self._logged.get(inference_id)
        if logged is None or logged.began is None or logged.latency_s is None:
            return None
        return logged.began, logged.began + logged.latency_s

    def first_piece_s(self, inference_id: str) -> float | None:
        """Return how long the first piece of an answer took, if the log tells."""
        logged = self._logged.get(inference_id)
        return None if logged is None else logged.first_piece_s

    def asides(self) -> Iterator[tuple[Logged, int]]:
        """Yield the inferences of the log that no step asked for, each with its exchange: titles, summaries, and what
        was logged and never committed."""
        for logged in self._logged.values():
            if logged.inference_id not in self._asked:
                self.found.append(self._exact(logged))
                yield logged, len(self.found) - 1

    def add(self, stored: StoredStep, rows_before: int, said: Sequence[Message]) -> int:
        """Return the index of an inference's exchange: `rows_before` of the rows were there, `said` came of it."""
        logged = self._logged.get(stored.step.inference_id)
        self._asked.add(stored.step.inference_id)
        self.found.append(self._rebuilt(stored, rows_before, said) if logged is None else self._exact(logged))
        return len(self.found) - 1

    def _exact(self, logged: Logged) -> Exchange:
        base, same = None, 0
        if self._last_logged is not None:
            base, before = self._last_logged
            same = _same(before, logged.messages)
        self._last_logged = (len(self.found), logged.messages)
        return Exchange(
            source=Source.LOG,
            name=logged.name,
            base=base if same else None,
            same=same,
            messages=tuple(logged.messages[same:]),
            request=logged.request,
            tools=logged.tools,
            response=logged.response,
        )

    def _rebuilt(self, stored: StoredStep, rows_before: int, said: Sequence[Message]) -> Exchange:
        while len(self._row_texts) < rows_before:
            self._row_texts.append(self.pool.add(row_text(self.rows[len(self._row_texts)])))
        base, same = self._last_rebuilt or (None, 0)
        if same > rows_before:
            base, same = None, 0
        self._last_rebuilt = (len(self.found), rows_before)
        return Exchange(
            source=Source.ROWS,
            name="",
            base=base if same else None,
            same=same,
            messages=tuple(self._row_texts[same:rows_before]),
            request=self.pool.add(REBUILT + to_yaml({"model": stored.step.model, "provider": stored.step.provider})),
            tools=self.pool.add(""),
            response=self.pool.add(to_yaml(_response(stored, said))),
        )


def needed(found: Sequence[Exchange], texts: Sequence[str]) -> tuple[tuple[Exchange, ...], tuple[str, ...]]:
    """Return the exchanges with the texts they name, and no others: the log may tell of other turns too."""
    order: dict[int, int] = {}

    def of(index: int) -> int:
        return order.setdefault(index, len(order))

    moved = tuple(
        evolve(
            exchange,
            messages=tuple(map(of, exchange.messages)),
            request=of(exchange.request),
            tools=of(exchange.tools),
            response=of(exchange.response),
        )
        for exchange in found
    )
    return moved, tuple(texts[index] for index in order)


def row_text(row: Message) -> str:
    """Return a row as it stands in the messages of a rebuilt request."""
    return to_yaml({"": [_plain(row)]}).partition("\n")[2].rstrip("\n")


def _plain(row: Message) -> Mapping[str, Any]:
    plain: dict[str, Any] = {"role": row.role.value}
    if row.type is not Type.TEXT:
        plain["type"] = row.type.value
    if row.type is Type.TOOL_CALL:
        return {**plain, "id": row.id, "name": row.metadata["tool_name"], "arguments": row.metadata["tool_arguments"]}
    if row.type is Type.TOOL_RESULT:
        plain |= {"id": row.parent_id, "outcome": row.metadata["outcome"]}
    return {**plain, "content": row.content}


def _response(stored: StoredStep, said: Sequence[Message]) -> dict[str, Any]:
    step, usage = stored.step, stored.step.usage
    texts: dict[Type, list[str]] = {Type.TEXT: [], Type.THOUGHT: []}
    for row in said:
        texts.get(row.type, []).append(row.content)
    return {
        "state": step.state.value,
        **({} if step.error is None else {"error": step.error}),
        "text": "\n\n".join(texts[Type.TEXT]),
        "thoughts": "\n\n".join(texts[Type.THOUGHT]),
        "calls": [
            {"name": row.metadata["tool_name"], "arguments": row.metadata["tool_arguments"]}
            for row in said
            if row.type is Type.TOOL_CALL
        ],
        "tokens": {
            "input": usage.input,
            "cached": usage.cached,
            "output": usage.output,
            "thinking": usage.thinking,
        },
        "finish_reason": step.finish_reason,
        "latency_s": round(step.duration_s, 6),
        "native": step.native,
    }


def _same(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many of the first members are the same."""
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return number
    return min(len(one), len(other))
