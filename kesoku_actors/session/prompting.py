"""Builds the requests of a session: its history prepared, compacted where that is due, and cut to what the model reads.

A draft is made at once; what it has to wait for, a compaction or a file, its user waits for and then makes it again.
Invariant: a draft is made of the history as it is at that moment, so of two drafts the later one counts.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from attrs import field

from kesoku_actors.llm.port import ProviderError, Remedy, Request
from kesoku_actors.log import Logger
from kesoku_actors.protocol import ATTACHMENTS, Message, ToolSchema, Usage
from kesoku_actors.session.brain import Brain
from kesoku_actors.session.compaction import Compactions
from kesoku_actors.session.compaction_plan import START, old_turns, sizes, worth
from kesoku_actors.session.history import History
from kesoku_actors.session.kept_preparation import Ready
from kesoku_actors.session.ladder import NOTHING_CUT, fit
from kesoku_actors.session.preparation import Prepared, file_of, prepare
from kesoku_actors.session.reach import row_tokens, tokens_in
from kesoku_actors.session.vocabulary import BuildPrompt
from kesoku_actors.values import define, evolve, frozen

NUDGE: Final = "Please answer the last message now, in plain text."
_COUNTS: Final = 20_000
"""Texts whose length in tokens is remembered."""

KeepWhole = Callable[[Path, str, str], Awaitable[None]]
"""Keeps a text in a session's folder under a relative path, unless a file is there already. Raises `OSError`."""


@frozen(kw_only=True)
class Draft:
    """A request as it could be sent now."""

    request: Request
    tokens: float
    """Of all of it, as we count them."""
    wants_compaction: bool
    wholes: tuple[Message, ...]
    """Results shown shortened, whose whole has to be kept in a file first."""

    @property
    def is_ready(self) -> bool:
        """Whether there is nothing to wait for."""
        return not self.wants_compaction and not self.wholes


@define(eq=False)
class Prompter:
    """Builds the requests of one worker."""

    session_id: str
    history: History
    brain: Brain
    compactions: Compactions
    workspace: Callable[[], Path]
    """The session's folder, made if need be."""
    folder: Path
    """That folder, whether it is there or not."""
    keep_whole: KeepWhole
    log: Logger
    _counts: dict[str, float] = field(factory=dict, init=False)
    _sent: float = field(default=0.0, init=False)
    """Tokens of the draft that was taken last, as we count them."""

    def draft(
        self, effect: BuildPrompt, system: str, tools: tuple[ToolSchema, ...], *, may_compact: bool = True
    ) -> Draft:
        """Return the request for a turn as it could be sent now."""
        history, room = self.history, self.brain.room
        frame = self._frame(system, tools)
        ready = history.prepared.ready(history.summaries, effect.root_id, self._cost)
        is_long = effect.compact or (room is not None and frame + ready.tokens > START * room)
        if is_long or history.cut != NOTHING_CUT:
            ready = self._fitted(ready, effect.root_id, None if room is None else max(0.0, room - frame))
        rows = ready.rows
        return Draft(
            request=Request(
                inference_id="",  # given when the model is called
                session_id=self.session_id,
                system=system,
                history=rows,
                steps=tuple(evolve(step, native=None) for step in ready.steps) if effect.plain else ready.steps,
                tools=tools,
                nudge=NUDGE if effect.nudge else None,
                tokens=round((frame + ready.tokens) * self.brain.reach.ratio),
                workspace=self.folder if tools or any(ATTACHMENTS in row.metadata for row in rows) else None,
                kept=None if effect.plain else history.talks,
                is_plain=effect.plain,
            ),
            tokens=frame + ready.tokens,
            wants_compaction=may_compact and is_long and self._is_worth(effect.root_id),
            wholes=tuple(row for row in ready.wholes if row.id not in history.kept),
        )

    def must_wait(self, draft: Draft) -> bool:
        """Tell whether a draft cannot be sent yet."""
        return not draft.is_ready or self.compactions.under_way(self.session_id) is not None

    async def compact(self, draft: Draft) -> None:
        """Wait for the compaction under way, or for the one that a draft wants."""
        compaction = self.compactions.under_way(self.session_id)
        if compaction is None and draft.wants_compaction:
            compaction = self.compactions.begin(self.session_id)
        if compaction is not None:
            await compaction.wait()

    async def keep(self, draft: Draft) -> None:
        """Keep in files what a draft shows shortened. A file that cannot be written is told in the log, once."""
        for row in draft.wholes:
            try:
                await self.keep_whole(self.workspace(), file_of(row), row.content)
            except OSError as error:
                self.log.warning("a long result cannot be kept in a file", call=row.parent_id, error=str(error))
            self.history.kept |= {row.id}

    def taken(self, draft: Draft) -> Request:
        """Return the request that is sent; what is heard of it is about this draft."""
        self._sent = draft.tokens
        return draft.request

    def answered(self, usage: Usage) -> None:
        """Learn from what the model has read."""
        self.brain.reach.answered(self._sent, usage.input)

    def refused(self, error: ProviderError) -> None:
        """Learn from a refusal, if it was for the length."""
        if error.remedy is Remedy.COMPACT:
            self.brain.reach.refused(self._sent, error)

    def _frame(self, system: str, tools: tuple[ToolSchema, ...]) -> float:
        """Return the tokens of a request beside its history. Mostly it is as it was: counting takes longer than that
        look."""
        history = self.history
        if history.framed != (system, tools):
            history.framed = (system, tools)
            history.frame = tokens_in(system) + sum(map(_tool_tokens, tools))
        return history.frame

    def _prepared(self, root_id: str) -> Prepared:
        history = self.history
        return prepare(history.placed, history.steps, history.summaries, root_id)

    def _fitted(self, ready: Ready, root_id: str, room: float | None) -> Ready:
        """Cut what is ready, with all that was cut before."""
        fitted = fit(self._prepared(root_id), room, self._cost, root_id, self.history.cut)
        if fitted.done:
            self.log.warning("the history was cut for a request", session=self.session_id, done=list(fitted.done))
        self.history.cut = fitted.cut
        rows = tuple(placed.row for placed in fitted.rows)
        return evolve(ready, rows=rows, steps=fitted.steps, tokens=sum(map(self._cost, rows)))

    def _is_worth(self, root_id: str) -> bool:
        if self.compactions.is_given_up(self.session_id):
            return False
        prepared = self._prepared(root_id)
        size = self.history.frame + sum(self._cost(placed.row) for placed in prepared.rows)
        read = sum(each.parent_id is None for each in self.history.summaries)
        kept = sizes(self.brain.room, self.history.frame).kept
        return worth(old_turns(prepared.rows[read:], kept, self._cost, is_asked=False), size, self._cost)

    def _cost(self, row: Message) -> float:
        if ATTACHMENTS in row.metadata:
            return row_tokens(row)
        if len(self._counts) > _COUNTS:
            self._counts.clear()
        known = self._counts.get(row.content)
        if known is None:
            known = self._counts[row.content] = row_tokens(row)
        return known


def _tool_tokens(tool: ToolSchema) -> float:
    return tokens_in(tool.name) + tokens_in(tool.description) + tokens_in(json.dumps(tool.parameters))
