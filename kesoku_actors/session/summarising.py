"""The work of one compaction: read what is old, have it summarised piece by piece, store the summaries.

One that needs more than a model can be asked at once is parted (`compaction_plan`), and summaries that have become many
are summarised themselves. A piece that the model refuses as too long is halved. When a model is lost the next one
begins anew, as a turn would (P2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import trio
from attrs import evolve

from kesoku_actors.clock import World
from kesoku_actors.gateway import Gateway
from kesoku_actors.llm.gate import Patience, infer_once
from kesoku_actors.llm.port import Piece as Streamed
from kesoku_actors.llm.port import ProviderError, Purpose, Remedy, Request
from kesoku_actors.llm.wellformed import whole_text
from kesoku_actors.log import Logger
from kesoku_actors.protocol import Channel, Message
from kesoku_actors.protocol.summaries import Summary
from kesoku_actors.session.brain import NOWHERE_ELSE, Brain
from kesoku_actors.session.compaction_plan import LEAST_SAVING, Sizes, groups, old_turns, pieces, sizes, worth
from kesoku_actors.session.histories import Histories, read_history
from kesoku_actors.session.history import History
from kesoku_actors.session.preparation import prepare
from kesoku_actors.session.reach import row_tokens, tokens_in
from kesoku_actors.session.summary_prompt import SYSTEM, asking, bundled, question
from kesoku_actors.store import StoreSummaries
from kesoku_actors.store.again import until_answered
from kesoku_actors.values import define, frozen

MOST_TRIES: Final = 3
MOST_HALVINGS: Final = 4
FIRST_BACKOFF_S: Final = 1.0
LONGEST_BACKOFF_S: Final = 60.0


@frozen(kw_only=True)
class Compacted:
    """It stands. Tokens are estimates of what the model reads of the session."""

    turns: int
    summaries: int
    """Written for it."""
    before: int
    after: int


@frozen
class NothingOld:
    """There is nothing to summarise: every turn is recent, or runs."""


@frozen(kw_only=True)
class TooLittle:
    """It saved less than a tenth; nothing was kept."""

    before: int
    after: int


@frozen(kw_only=True)
class CompactionFailed:
    """The model or the store did not take part; nothing was kept."""

    why: str


Verdict = Compacted | NothingOld | TooLittle | CompactionFailed


class _TooLong(Exception):
    """The model refused a piece as too long."""


async def compact(
    session_id: str,
    *,
    gateway: Gateway,
    histories: Histories,
    line_for: Callable[[Channel], tuple[Brain, ...]],
    world: World,
    log: Logger,
    is_asked: bool,
) -> Verdict:
    """Summarise the old turns of a session, if there are any. Cancelled, it leaves nothing behind."""
    session = await until_answered(partial(gateway.reader.session, session_id), log, "read a session")
    if session is None:
        return NothingOld()
    line = line_for(Channel(chatbot_id=session.chatbot_id, channel_id=session.channel_id))
    history = histories.find(session_id) or await read_history(gateway, session_id)
    read = partial(gateway.reader.summaries, session_id)
    history.summarise(await until_answered(read, log, "read summaries"))
    lost: list[str] = []
    made: _Made | NothingOld | TooLittle | CompactionFailed | None = None
    for brain in line:
        patience = Patience.WAITS if brain is line[-1] else Patience.LEAVES
        try:
            made = await _make(history, brain, patience, world, log, is_asked)
            break
        except ProviderError as error:
            log.warning("a model wrote no summary", session=session_id, kind=error.kind, error=str(error))
            lost.append(whole_text(str(error)))
            if error.kind in NOWHERE_ELSE:
                break
    if made is None:
        return CompactionFailed(why="; ".join(lost))
    if not isinstance(made, _Made):
        return made
    store = partial(gateway.store.store_summaries, StoreSummaries(session_id=session_id, summaries=made.summaries))
    stands = await until_answered(store, log, "store summaries")
    stored = await until_answered(read, log, "read summaries")
    for held in {id(each): each for each in (history, histories.find(session_id)) if each is not None}.values():
        held.summarise(stored)
    return made.outcome if stands else CompactionFailed(why="the session has changed meanwhile")


@frozen(kw_only=True)
class _Made:
    """New summaries, each child before its parent, and what they are worth."""

    summaries: tuple[Summary, ...]
    outcome: Compacted


async def _make(
    history: History, brain: Brain, patience: Patience, world: World, log: Logger, is_asked: bool
) -> _Made | NothingOld | TooLittle | CompactionFailed:
    room, frame = brain.room, history.frame
    rows = prepare(history.placed, (), history.summaries, None).rows
    before = frame + sum(row_tokens(placed.row) for placed in rows)
    read = [each for each in history.summaries if each.parent_id is None]
    fresh = rows[len(read) :]
    old = old_turns(fresh, sizes(room, frame).kept, row_tokens, is_asked=is_asked)
    if not worth(old, before, row_tokens):
        return NothingOld()
    replaced = _tokens(read) + sum(row_tokens(placed.row) for turn in old for placed in turn)
    for halving in range(MOST_HALVINGS + 1):
        fitting = sizes(brain.room, frame, 0.5**halving)
        writer = _Writer(brain=brain, patience=patience, world=world, like=fresh[0].row, sizes=fitting)
        try:
            leaves = [
                await writer.summarise(piece.log, first=piece.first, last=piece.last, before=piece.tokens)
                for piece in pieces(old, writer.sizes.piece, row_tokens)
            ]
            tops, made = await writer.bundle([*read, *leaves])
        except _TooLong:
            log.info("a piece of a compaction was too long and is halved", halving=halving)
            continue
        after = before - replaced + _tokens(tops)
        if after > before * (1 - LEAST_SAVING):
            return TooLittle(before=int(before), after=int(after))
        outcome = Compacted(turns=len(old), summaries=len(leaves) + len(made), before=int(before), after=int(after))
        return _Made(summaries=(*leaves, *made), outcome=outcome)
    return CompactionFailed(why="the model refuses every piece as too long")


def _tokens(summaries: Sequence[Summary]) -> float:
    return sum(each.tokens_after for each in summaries)


@define(kw_only=True)
class _Writer:
    """Has a model write summaries."""

    brain: Brain
    patience: Patience
    world: World
    like: Message
    sizes: Sizes

    async def bundle(self, tops: list[Summary]) -> tuple[list[Summary], list[Summary]]:
        """Summarise summaries until those read are few enough; return them, and all that were made."""
        made: list[Summary] = []
        while _tokens(tops) > self.sizes.together:
            found = groups([each.tokens_after for each in tops], self.sizes.piece)
            if not found:
                break
            bundles = {group.start: await self._bundle([tops[at] for at in group]) for group in found}
            inner = {at for group in found for at in group}
            tops = [bundles.get(at, top) for at, top in enumerate(tops) if at in bundles or at not in inner]
            made += bundles.values()
        return tops, made

    async def _bundle(self, children: Sequence[Summary]) -> Summary:
        return await self.summarise(
            bundled(child.content for child in children),
            first=children[0].first,
            last=children[-1].last,
            before=_tokens(children),
            children=children,
        )

    async def summarise(
        self,
        log: str,
        *,
        first: tuple[int, int],
        last: tuple[int, int],
        before: float,
        children: Sequence[Summary] = (),
    ) -> Summary:
        """Return a summary of a log. Raises `ProviderError`, and `_TooLong` when a shorter log may help."""
        content = await self._ask(log)
        return Summary(
            id=self.world.ids(),
            level=1 + max(child.level for child in children) if children else 0,
            first=first,
            last=last,
            content=content,
            children=tuple(child.id for child in children),
            provider=self.brain.provider.name,
            model=self.brain.provider.model,
            created=self.world.clock.wall(),
            tokens_before=int(before),
            tokens_after=int(tokens_in(content)) + 40,
        )

    async def _ask(self, log: str) -> str:
        provider, text = self.brain.provider, question(log, self.sizes.words)
        request = Request(
            inference_id="",
            session_id=self.like.session_id,
            system=SYSTEM,
            history=(asking(self.like, text),),
            max_output_tokens=self.sizes.reply,
            purpose=Purpose.SUMMARY,
        )
        ours = tokens_in(SYSTEM) + tokens_in(text)
        for tries in range(1, MOST_TRIES + 1):
            asked = evolve(request, inference_id=f"summary.{self.world.ids()}")  # each try is paid for
            try:
                reply = await infer_once(provider, self.brain.gate, asked, _unheard, self.patience)
            except ProviderError as error:
                if error.remedy is Remedy.COMPACT:
                    self.brain.reach.refused(ours, error)
                    raise _TooLong from error
                if error.remedy is not Remedy.RETRY or tries == MOST_TRIES:
                    raise
                await trio.sleep(self._pause_s(tries, error.retry_after_s))
                continue
            content = whole_text(reply.text).strip()
            if content:
                return _cut(content, 1.5 * self.sizes.summary)
        raise ProviderError(f"{provider.name}: it wrote no summary", remedy=Remedy.TELL, kind="empty")

    def _pause_s(self, tries: int, asked_s: float | None) -> float:
        bound = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** (tries - 1))
        return max(bound * self.world.rng.random(), min(asked_s or 0.0, LONGEST_BACKOFF_S))


def _cut(text: str, most: float) -> str:
    """Return the beginning of a text, at most so many tokens of it: not every server keeps the limit it was given."""
    while tokens_in(text) > most:
        text = text[: len(text) * 3 // 4]
    return text


def _unheard(_piece: Streamed) -> None:
    """Nobody reads a summary while it is written."""
