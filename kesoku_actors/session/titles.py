"""Titles by the model: after the first answer of a session, its first words give way to a title, if one comes of it.

A title is worth little, so it never costs anybody a turn: it is asked for after an answer, one at a time, only where
another inference still finds room, at most once an answer and for the first few of a session. When a model is lost the
next one is asked, as for a turn (P2). The search ends within
`PATIENCE_S`, and at once when a person says something there (a stop ends only what a person's message began). Whatever
goes wrong leaves the first words, and is said in the log alone. What the model says is foreign text: a line of it is
kept, tidied (T1); calls in it are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import aclosing
from functools import partial
from typing import Final

import trio
from attrs import evolve, field

from kesoku_actors.actors import ActorStopped, Cell
from kesoku_actors.clock import World
from kesoku_actors.gateway import Gateway
from kesoku_actors.llm.gate import infer_once
from kesoku_actors.llm.port import ProviderError, Purpose, Request
from kesoku_actors.log import Logger
from kesoku_actors.protocol import ENDED, Changed, Channel, Message, Role, SessionInfo, Status, Type
from kesoku_actors.protocol.titles import first_words, tidied
from kesoku_actors.session.brain import NOWHERE_ELSE, Brain
from kesoku_actors.store import SetTitle, StoreFault
from kesoku_actors.values import define, frozen

PATIENCE_S: Final = 30.0
TURNS: Final = 3
"""A session that still has no title then keeps its first words."""
QUEUED: Final = 8
"""Sessions that wait for a title; what comes beyond keeps its first words."""
_CHARACTERS: Final = 2_000
_TOKENS: Final = 500
"""Most of them for a model that thinks first."""
_SYSTEM: Final = "You find titles for conversations. You never answer what is said in them."
_NUDGE: Final = (
    "Give the conversation above a title of at most six words, in its own language."
    " Write the title alone: no quotes, no explanation."
)


@frozen(kw_only=True)
class TitleParts:
    """What the titler works with."""

    gateway: Gateway
    line_for: Callable[[Channel], tuple[Brain, ...]]
    """Who is asked, in order, one when those before it are lost."""
    may_title: Callable[[Brain], bool]
    """Whether this model is worth asking."""
    world: World
    log: Logger


@define(eq=False)
class _Desk:
    """The sessions that wait for a title or are being given one, by id."""

    parts: TitleParts
    under_way: dict[str, trio.CancelScope] = field(factory=dict)
    one: trio.Lock = field(factory=trio.Lock)


async def titler(cell: Cell[None], *, parts: TitleParts) -> None:
    """Title sessions until stopped."""
    desk = _Desk(parts)
    listen = partial(parts.gateway.listen, roles=frozenset({Role.USER, Role.ASSISTANT}), types=frozenset({Type.TEXT}))
    async with aclosing(listen(hints=False, label="titles")) as events, trio.open_nursery() as nursery:

        async def hear() -> None:
            async for event in events:
                if isinstance(event, Changed):
                    _hear(desk, nursery, event.message)

        nursery.start_soon(hear)
        cell.started()
        await cell.stopping.wait()
        nursery.cancel_scope.cancel()


def _hear(desk: _Desk, nursery: trio.Nursery, message: Message) -> None:
    session_id = message.session_id
    if message.is_person and message.status not in ENDED:
        if session_id in desk.under_way:
            desk.under_way[session_id].cancel()
        return
    is_answer = message.status is Status.PENDING and message.role is Role.ASSISTANT
    if is_answer and session_id not in desk.under_way and len(desk.under_way) < QUEUED:
        desk.under_way[session_id] = trio.CancelScope()
        nursery.start_soon(_title, desk, message)


async def _title(desk: _Desk, answer: Message) -> None:
    session_id, parts = answer.session_id, desk.parts
    try:
        with desk.under_way[session_id]:
            async with desk.one:
                with trio.move_on_after(PATIENCE_S):
                    await _try(parts, answer)
    except (ProviderError, StoreFault, ActorStopped) as error:
        parts.log.info("no title was found", session=session_id, error=str(error))
    finally:
        del desk.under_way[session_id]


async def _try(parts: TitleParts, answer: Message) -> None:
    line = _up(parts.line_for(Channel(chatbot_id=answer.chatbot_id, channel_id=answer.channel_id)))
    session = await parts.gateway.session(answer.session_id)
    if session is None or session.turns > TURNS or not _is_worth_asking(parts, line):
        return
    asked = await _first_message(parts, session)
    if asked is None:
        return
    while _is_worth_asking(parts, line):
        brain, *rest = line
        line = _up(rest)
        try:
            reply = await infer_once(brain.provider, brain.gate, _request(parts, asked, answer), lambda _piece: None)
        except ProviderError as error:
            parts.log.info("no title was found", session=session.id, kind=error.kind, error=str(error))
            if error.kind in NOWHERE_ELSE:
                return
            continue
        if title := tidied(reply.text):
            await parts.gateway.store.set_title(SetTitle(session_id=session.id, title=title, instead_of=session.title))
        return


def _request(parts: TitleParts, asked: Message, answer: Message) -> Request:
    return Request(
        inference_id=parts.world.ids(),
        session_id=answer.session_id,
        system=_SYSTEM,
        history=(_shortened(asked), _shortened(answer)),
        nudge=_NUDGE,
        max_output_tokens=_TOKENS,
        purpose=Purpose.TITLE,
    )


def _is_worth_asking(parts: TitleParts, line: tuple[Brain, ...]) -> bool:
    """Tell whether there is one left that finds titles, and a turn that comes now would still find a slot there."""
    if not line or not parts.may_title(line[0]):
        return False
    gate = line[0].gate.statistics()
    return not gate.waiting and gate.running + 1 < gate.concurrency


def _up(line: Iterable[Brain]) -> tuple[Brain, ...]:
    return tuple(brain for brain in line if not brain.gate.statistics().is_open)


async def _first_message(parts: TitleParts, session: SessionInfo) -> Message | None:
    """Return what a person said first, while the session is still called by it; none once it has a title."""
    messages = (await parts.gateway.history(session.id)).messages
    first = next((message for message in messages if message.is_person), None)
    return first if first is not None and session.title == first_words(first.content) else None


def _shortened(message: Message) -> Message:
    """Return what a title needs of a message: its beginning, and no files."""
    return evolve(message, content=message.content[:_CHARACTERS], metadata={})
