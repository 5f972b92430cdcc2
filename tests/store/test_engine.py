"""The engine: what commands of one group see of each other, what a group tells, what a failed one leaves (C9, B1)."""

from __future__ import annotations

import apsw
import pytest

from kesoku_actors.protocol import BusyMode, Channel, Inbound, Reason, Status
from kesoku_actors.store import (
    BeginEpoch,
    CloseSession,
    Command,
    Commit,
    Committed,
    EpochBegun,
    Post,
    Posted,
    PostRefused,
    RefusalReason,
    Refused,
    Registered,
    RegisterWorker,
    RequestStop,
    SetMode,
    WipeSession,
    WithdrawMessage,
    WorkerKey,
)
from kesoku_actors.store.engine import Failed
from tests.properties.reference_store import MAX_WAITING
from tests.store.home import cut, step, take
from tests.store.memory import engine_in_memory


def post(id: str, content: str = "hello", room: str = "room") -> Post:
    return Post(id=id, inbound=Inbound(chatbot_id="bot", channel_id=room, content=content))


def test_what_a_group_said_that_was_not_committed_is_forgotten():
    failing: list[Exception] = []

    def probe(point: str) -> None:
        if failing and point == "store.before_commit":
            raise failing.pop()

    engine = engine_in_memory(probe)

    def run(command: Command, *, fails: bool = False) -> object:
        if not fails:
            return engine.run([command])[0][0]
        failing.append(apsw.FullError())
        with pytest.raises(apsw.FullError):
            engine.run([command])
        return None

    run(BeginEpoch(clean=True))
    posted = run(post("p"))
    assert isinstance(posted, Posted)
    session_id = posted.message.session_id
    key = WorkerKey(session_id=session_id, epoch=1, worker=1)
    claim = Commit(id="claim", key=key, claim=take(posted.message))
    run(RegisterWorker(key=key), fails=True)
    refused = run(claim)
    assert isinstance(refused, Refused)
    assert refused.reason is RefusalReason.STALE
    run(RegisterWorker(key=key))
    stop = run(RequestStop(session_id=session_id))
    end = Commit(id="end", key=key, ends=(cut(posted.message, Reason.STOPPED),))
    run(end, fails=True)
    refused = run(claim)
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.stops) == (RefusalReason.MOVED, (stop,))
    ended = run(end)
    assert isinstance(ended, Committed)
    assert ended.stops == ()


def test_a_mode_holds_for_the_commits_behind_it_in_its_group():
    engine = engine_in_memory()
    channel = Channel(chatbot_id="bot", channel_id="room")
    other = Channel(chatbot_id="bot", channel_id="other")
    begin = BeginEpoch(clean=True)
    (_, *posted), _ = engine.run([begin, *(post(each.channel_id, room=each.channel_id) for each in (channel, other))])
    registers = [
        RegisterWorker(key=WorkerKey(session_id=reply.message.session_id, epoch=1, worker=number))
        for number, reply in enumerate(posted)
        if isinstance(reply, Posted)
    ]
    (*_, first, second), _ = engine.run([*registers, SetMode(channel=channel, mode=BusyMode.STEER), *registers])
    assert isinstance(first, Registered)
    assert isinstance(second, Registered)
    assert (first.mode, second.mode) == (BusyMode.STEER, BusyMode.INTERRUPT)
    assert engine.run(registers)[0] == [first, second]


def test_a_group_tells_all_that_it_changed_but_for_what_failed():
    engine = engine_in_memory()
    key = WorkerKey(session_id="000000.0", epoch=1, worker=1)
    engine.run([BeginEpoch(clean=True), post("a"), RegisterWorker(key=key)])
    broken = Commit(id="c", key=key, step=step())
    (first, bad, refused, second), told = engine.run([post("b"), post("c", "\ud800"), broken, post("d")])
    assert isinstance(first, Posted)
    assert isinstance(second, Posted)
    assert isinstance(bad, Failed)
    assert isinstance(refused, Refused)
    assert refused.reason is RefusalReason.INVALID
    assert told is not None
    assert told.changed == (first.message, second.message)


def test_a_group_tells_every_stop_and_mode_and_no_message_that_it_removed():
    engine = engine_in_memory()
    channels = [Channel(chatbot_id="bot", channel_id=room) for room in ("one", "two")]
    posted, _ = engine.run([post(each.channel_id, room=each.channel_id) for each in channels])
    ids = [reply.message.session_id for reply in posted if isinstance(reply, Posted)]
    modes = [SetMode(channel=each, mode=BusyMode.QUEUE) for each in channels]
    withdraw = WithdrawMessage(message_id="passing")
    commands = [*(RequestStop(session_id=each) for each in ids), *modes, post("passing", room="one"), withdraw]
    _, told = engine.run(commands)
    assert told is not None
    assert [stop.session_id for stop in told.stops] == ids
    assert told.modes == tuple((each, BusyMode.QUEUE) for each in channels)
    assert (told.changed, [message_id for message_id, _session, _rev in told.removed]) == ((), ["passing"])


def test_b4_a_message_taken_within_a_group_makes_room_for_one_behind_it():
    engine = engine_in_memory()
    posts = [post(str(number)) for number in range(MAX_WAITING)]
    (_, first, *_), _ = engine.run([BeginEpoch(clean=True), *posts])
    assert isinstance(first, Posted)
    key = WorkerKey(session_id=first.message.session_id, epoch=1, worker=1)
    claim = Commit(id="claim", key=key, claim=take(first.message))
    (refused, _, stands, taken), _ = engine.run([post("x"), RegisterWorker(key=key), claim, post("y")])
    assert isinstance(refused, PostRefused)
    assert isinstance(stands, Committed)
    assert isinstance(taken, Posted)


def test_c2_an_epoch_takes_back_what_was_claimed_in_its_own_group():
    engine = engine_in_memory()
    (_, first), _ = engine.run([BeginEpoch(clean=True), post("a")])
    assert isinstance(first, Posted)
    key = WorkerKey(session_id=first.message.session_id, epoch=1, worker=1)
    claim = Commit(id="claim", key=key, claim=take(first.message))
    (_, stands, begun), told = engine.run([RegisterWorker(key=key), claim, BeginEpoch(clean=True)])
    assert isinstance(stands, Committed)
    assert isinstance(begun, EpochBegun)
    assert begun.runnable == (key.session_id,)
    assert told is not None
    assert [row.status for row in told.changed] == [Status.PENDING_AGENT]


def test_m7_a_session_closed_and_wiped_in_one_group_is_gone():
    engine = engine_in_memory()
    (posted,), _ = engine.run([post("a")])
    assert isinstance(posted, Posted)
    session_id = posted.message.session_id
    (_, wiped), told = engine.run([CloseSession(session_id=session_id), WipeSession(session_id=session_id)])
    assert wiped == 1
    assert told is not None
    assert told.closed == (session_id,)
