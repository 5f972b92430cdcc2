"""The meter of one model: what its inferences use and cost, and the money reserved for each before it begins (B4).

Each inference, whatever it is for, has an account from before its send to after its end, however it ends. Invariants:
with a purse nothing is sent before what it may cost is reserved; every reservation is settled once, by what the
provider counted, else by what is known: the request as we count it, once it was sent, and what was heard of the answer.
An inference that failed before its provider counted anything and before a word of it was heard costs nothing. Who asked
is told the same (`Request.used`).
"""

from __future__ import annotations

import json
from typing import Final, Protocol

from attrs import field

from kesoku_actors.llm.port import Body, Piece, ProviderError, Remedy, Reply, Request
from kesoku_actors.llm.prices import Price, cost_of
from kesoku_actors.protocol import Usage
from kesoku_actors.values import define, evolve, frozen

_CHARACTERS_A_TOKEN: Final = 4
_USUAL_OUTPUT: Final = 500
"""Tokens expected of a model that has not answered yet."""
_REMEMBERS: Final = 0.8


class Purse(Protocol):
    """Where the money comes from."""

    async def reserve(self, id: str, dollars: float) -> str | None:
        """Reserve what an inference may cost; return why not, in words, when there is too little."""

    def settle(self, id: str, dollars: float) -> None:
        """Put what it really cost in the place of that. Does not wait."""


@frozen(kw_only=True)
class MeterStatistics:
    """What a model was used for since the program began."""

    inferences: int = 0
    """Answered ones."""
    broken: int = 0
    """Those that failed or were cancelled."""
    input: int = 0
    cached: int = 0
    output: int = 0
    thinking: int = 0
    cost: float = 0.0
    """US dollars, as far as the price is known."""


@define(eq=False)
class Meter:
    """Counts for one model."""

    price: Price | None = None
    purse: Purse | None = None
    _read: MeterStatistics = field(factory=MeterStatistics, init=False)
    _usual_output: float = field(default=_USUAL_OUTPUT, init=False)

    def statistics(self) -> MeterStatistics:
        """Return a reading."""
        return self._read

    def account(self, request: Request) -> Account:
        """Return a block that reserves what an inference may cost, and settles it in the end. Entering it raises
        `ProviderError` of the kind `budget`."""
        return Account(meter=self, request=request)

    async def _reserve(self, account: Account) -> None:
        if self.purse is None:
            return
        expected = self._priced(account.expected(self._usual_output))
        try:
            refusal = await self.purse.reserve(account.request.inference_id, expected)
        except BaseException:  # who is cancelled while it waits for it has it, perhaps
            self._settle(account, Usage())
            raise
        if refusal is not None:
            self._settle(account, Usage())
            raise ProviderError(refusal, remedy=Remedy.TELL, kind="budget")

    def _end(self, account: Account, *, is_refused: bool) -> None:
        usage = Usage()
        try:
            usage = account.usage(is_refused=is_refused)
            self._count(account, usage)
            account.request.used(self._with_cost(usage))
        finally:
            self._settle(account, usage)

    def _settle(self, account: Account, usage: Usage) -> None:
        if self.purse is not None:
            self.purse.settle(account.request.inference_id, self._priced(usage))

    def priced(self, reply: Reply) -> Reply:
        """Return a reply whose usage tells what it cost."""
        return reply if self.price is None else evolve(reply, usage=self._with_cost(reply.usage))

    def _with_cost(self, usage: Usage) -> Usage:
        return usage if self.price is None else evolve(usage, cost=cost_of(usage, self.price))

    def _priced(self, usage: Usage) -> float:
        return 0.0 if self.price is None else cost_of(usage, self.price) or 0.0

    def _count(self, account: Account, usage: Usage) -> None:
        read, is_answered = self._read, account.reply is not None
        if is_answered and usage.output is not None:
            self._usual_output += (1 - _REMEMBERS) * (usage.output - self._usual_output)
        self._read = MeterStatistics(
            inferences=read.inferences + is_answered,
            broken=read.broken + (not is_answered),
            input=read.input + (usage.input or 0),
            cached=read.cached + (usage.cached or 0),
            output=read.output + (usage.output or 0),
            thinking=read.thinking + (usage.thinking or 0),
            cost=read.cost + self._priced(usage),
        )


@define(eq=False)
class Account:
    """One inference, for as long as its block runs."""

    meter: Meter
    request: Request
    is_sent: bool = False
    heard: int = 0
    """Characters of the answer."""
    counted: Usage = field(factory=Usage)
    """By the provider, of an answer that did not come to its end."""
    reply: Reply | None = None

    async def __aenter__(self) -> Account:
        await self.meter._reserve(self)
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.meter._end(self, is_refused=isinstance(error, ProviderError) and not self.heard)

    def noting(self) -> Request:
        """Return the request so that note is taken of its send, and of what its provider counts."""
        return evolve(self.request, sent=self._leave, used=self._take)

    def _leave(self, body: Body) -> None:
        self.is_sent = True
        self.request.sent(body)

    def _take(self, counted: Usage) -> None:
        self.counted = counted

    def hear(self, piece: Piece) -> None:
        """Take note of a piece of the answer."""
        self.heard += len(piece.text)

    def answered(self, reply: Reply) -> Reply:
        """Take note of the whole answer, and return it with what it cost."""
        self.reply = reply
        return self.meter.priced(reply)

    def expected(self, output: float) -> Usage:
        """Return what it may use."""
        most = self.request.max_output_tokens
        return Usage(input=self._request_tokens(), output=int(output if most is None else min(output, most)))

    def usage(self, *, is_refused: bool) -> Usage:
        """Return what it used, as the provider counted it, else as far as it is known."""
        if self.reply is not None and self.reply.usage.tokens:
            return self.reply.usage
        said = self.heard if self.reply is None else max(self.heard, len(self.reply.text) + len(self.reply.thought))
        output = said // _CHARACTERS_A_TOKEN
        if self.counted.tokens:  # most count their answer only when it is whole
            asked = self._request_tokens() if self.counted.input is None else self.counted.input
            return evolve(self.counted, input=asked, output=max(output, self.counted.output or 0))
        if not self.is_sent or is_refused:
            return Usage()
        return Usage(input=self._request_tokens(), output=output)

    def _request_tokens(self) -> int:
        request = self.request
        if request.tokens is not None:
            return request.tokens
        tools = sum(len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters)) for tool in request.tools)
        characters = len(request.system) + sum(len(row.content) for row in request.history) + tools
        return characters // _CHARACTERS_A_TOKEN
