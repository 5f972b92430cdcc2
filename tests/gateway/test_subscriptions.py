"""B1: a listener hears every row once in its present state, however it lags; hints are droppable (B2)."""

from __future__ import annotations

import trio
from attrs import define, evolve, field
from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.gateway.filters import Filter
from kesoku_actors.gateway.subscriptions import Subscription, Subscriptions
from kesoku_actors.protocol import (
    Activity,
    ActivityChanged,
    Changed,
    Channel,
    Delta,
    DeltaKind,
    Message,
    Removed,
    Role,
    Status,
    Type,
)
from kesoku_actors.store import Publication

HERE = Channel(chatbot_id="bot", channel_id="room")


def row(number: int, rev: int, **changes: object) -> Message:
    message = Message(
        id=f"m{number}",
        seq=number,
        rev=rev,
        session_id="s",
        chatbot_id=HERE.chatbot_id,
        channel_id=HERE.channel_id,
        sender="User",
        role=Role.USER,
        type=Type.TEXT,
        status=Status.PENDING_AGENT,
        content="hi",
        timestamp=1.0,
    )
    return evolve(message, **changes)


@define
class Log:
    """A store reduced to what a listener reads: the present rows and the counter."""

    rows: dict[str, Message] = field(factory=dict)
    gone: dict[str, int] = field(factory=dict)
    rev: int = 0

    async def changes(self, after_rev: int, limit: int) -> Publication:
        await trio.lowlevel.checkpoint()
        found = sorted((r for r in self.rows.values() if r.rev > after_rev), key=lambda r: r.rev)
        removed = [(key, "s", rev) for key, rev in self.gone.items() if rev > after_rev]
        revs = sorted([r.rev for r in found] + [rev for _, _, rev in removed])[:limit]
        last = revs[-1] if revs else 0
        return Publication(
            base=after_rev,
            rev=self.rev,
            changed=tuple(r for r in found if r.rev <= last),
            removed=tuple(entry for entry in removed if entry[2] <= last),
        )

    async def head(self) -> int:
        return self.rev

    def write(self, number: int) -> Changed:
        self.rev += 1
        self.rows[f"m{number}"] = row(number, self.rev)
        return Changed(message=self.rows[f"m{number}"])

    def remove(self, number: int) -> Removed:
        self.rev += 1
        del self.rows[f"m{number}"]
        self.gone[f"m{number}"] = self.rev
        return Removed(message_id=f"m{number}", session_id="s", rev=self.rev)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 5)),
        st.tuples(st.just("remove"), st.integers(0, 5)),
        st.tuples(st.just("hint"), st.just(0)),
        st.tuples(st.just("hear"), st.just(0)),
        st.tuples(st.just("silent"), st.integers(0, 5)),
    ),
    max_size=40,
)


@given(ACTIONS, st.integers(1, 4), st.one_of(st.none(), st.integers(0, 3)))
@settings(max_examples=300)
def test_a_listener_ends_with_the_present_state_of_every_row_and_never_steps_back(
    actions: list[tuple[str, int]], capacity: int, after: int | None
) -> None:
    async def play() -> None:
        log, table = Log(), Subscriptions()
        for number in range(3):
            log.write(number)
        table.last_rev = log.rev
        one = table.add(Filter(), label="test", after=after, capacity=capacity)
        heard: list[int] = []
        seen: dict[str, int | None] = {}

        async def hear() -> None:
            for event in await one.next_events(log):
                match event:
                    case Changed(message=message):
                        heard.append(message.rev)
                        seen[message.id] = message.rev
                    case Removed():
                        heard.append(event.rev)
                        seen[event.message_id] = None
                    case _:
                        pass

        for action, number in actions:
            match action:
                case "write":
                    table.offer(log.write(number), None)
                    table.last_rev = log.rev
                case "remove" if f"m{number}" in log.rows:
                    table.offer(log.remove(number), None)
                    table.last_rev = log.rev
                case "hint":
                    table.offer(ActivityChanged(session_id="s", activity=Activity.IDLE), HERE)
                case "hear" if one.lagging or one.receive.statistics().current_buffer_used:
                    with trio.move_on_after(0):
                        await hear()
                case _:
                    pass
        marker = log.write(99)
        table.offer(marker, None)
        while seen.get("m99") is None:
            await hear()
        assert heard == sorted(set(heard)), "B1: a row twice, or a step back"
        begun = 3 if after is None else after
        for message in log.rows.values():
            if message.rev > begun:
                assert seen[message.id] == message.rev
        for key, rev in log.gone.items():
            if rev > begun and key not in log.rows:
                assert seen.get(key) is None
        table.drop(one)
        assert not table.current

    trio.run(play)


async def test_a_full_queue_drops_hints_but_recovers_rows() -> None:
    log, table = Log(), Subscriptions()
    one = table.add(Filter(), label="slow", after=None, capacity=2)
    for number in range(10):
        table.offer(log.write(number), None)
    assert table.statistics()[0].lagging
    heard: list[str] = []
    while len(heard) < 10:
        heard += [event.message.id for event in await one.next_events(log) if isinstance(event, Changed)]
    assert heard == [f"m{number}" for number in range(10)]


async def test_a_dropped_hint_does_not_make_a_listener_lag() -> None:
    table = Subscriptions()
    one = table.add(Filter(), label="slow", after=None, capacity=1)
    for _ in range(3):
        table.offer(ActivityChanged(session_id="s", activity=Activity.THINKING), None)
    assert (one.lagging, one.dropped) == (False, 2)


def test_filters_judge_rows_by_every_field_and_hints_by_place() -> None:
    waiting = Changed(message=row(1, 1))
    done = Changed(message=row(1, 2, status=Status.PROCESSED))
    hint = Delta(session_id="s", root_id="m1", inference_id="i", attempt=1, offset=0, kind=DeltaKind.TEXT, text="x")
    statuses = Filter(statuses=frozenset({Status.PENDING_AGENT}), hints=False)
    assert statuses.wants(waiting, None)
    assert not statuses.wants(done, None)
    assert not statuses.wants(hint, HERE)
    assert Filter(channel=HERE).wants(waiting, None)
    assert Filter(channel=HERE).wants(hint, HERE)
    assert not Filter(channel=HERE).wants(hint, None)
    elsewhere = Channel(chatbot_id="bot", channel_id="other")
    assert not Filter(channel=elsewhere).wants(waiting, None)
    assert not Filter(channel=elsewhere).wants(hint, HERE)
    assert not Filter(session_id="t").wants(hint, HERE)
    assert not Filter(types=frozenset({Type.TOOL_CALL})).wants(waiting, None)
    assert not Filter(roles=frozenset({Role.SYSTEM})).wants(waiting, None)


def test_the_end_of_a_row_is_no_hint() -> None:
    gone = Removed(message_id="m1", session_id="s", rev=3)
    assert Filter(session_id="s", hints=False).wants(gone, None)
    assert Filter(statuses=frozenset({Status.PENDING_AGENT}), hints=False).wants(gone, None)
    assert not Filter(session_id="t", hints=False).wants(gone, None)


def test_subscription_is_compared_by_identity() -> None:
    table = Subscriptions()
    first = table.add(Filter(), label="a", after=None, capacity=1)
    second = table.add(Filter(), label="a", after=None, capacity=1)
    table.drop(first)
    assert table.current == [second]
    assert isinstance(second, Subscription)
