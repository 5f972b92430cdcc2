"""The SQL engine against the reference store: any commands in any order, the same state after each.

The reference says what each transaction does, in plain data (`tests/properties/reference_store.py`). A plan that the
reference cannot carry out must be refused by the engine, without a trace. The engine may refuse more than the
reference only for what the contract forbids and no worker plans: parts of a turn without one (M4), ending one in part
(O4, I5), and passing over somebody who spoke before (O2).
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import apsw
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kesoku_actors.protocol import (
    SYSTEM,
    WAKING,
    AttachmentState,
    CallState,
    Inbound,
    JobBegun,
    JobEnding,
    Message,
    Outcome,
    Reason,
    Role,
    SessionState,
    Standing,
    Status,
    attachments_in,
    expected,
)
from kesoku_actors.store import (
    AnswerApproval,
    ApprovalAnswer,
    BeginEpoch,
    BeginJob,
    CallExpired,
    CallStarted,
    CallWaiting,
    CloseSession,
    Command,
    Commit,
    CommitReply,
    Committed,
    Ending,
    EndJob,
    EpochBegun,
    GiveBack,
    NothingToStop,
    Post,
    Posted,
    RefusalReason,
    Refused,
    Registered,
    RegisterWorker,
    RequestStop,
    ResultMode,
    SettleAttachment,
    StageOutcome,
    Taking,
    WipeSession,
    WithdrawMessage,
    WorkerKey,
    queries,
)
from tests.properties import reference_store
from tests.store.home import calling, saying, step
from tests.store.memory import engine_in_memory

MAY_REFUSE_MORE = ("M4:", "O4:", "I5:", "O2:")


def contents(connection: apsw.Connection) -> dict[str, list[object]]:
    """Return every row of every table, but the counter, which stands in the rows as well."""
    names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
    tables = {name: list(connection.execute(f"SELECT * FROM {name}").fetchall()) for (name,) in names}
    tables["meta"] = [row for row in tables["meta"] if row[0] != "counter"]
    return {**tables, "head": [queries.head(connection)]}


def some(data: st.DataObject, rows: list[reference_store.Row]) -> list[reference_store.Row]:
    return [row for row in rows if data.draw(st.integers(0, 3))]


def cut(rows: list[reference_store.Row], reason: Reason) -> tuple[Ending, ...]:
    return tuple(Ending(message_id=row.id, status=Status.INTERRUPTED, reason=reason) for row in rows)


def taken(rows: list[reference_store.Row], reason: Reason) -> tuple[Taking, ...]:
    return tuple(Taking(message_id=row.id, reason=reason) for row in rows)


def root_of(store: reference_store.Store, room: str) -> str | None:
    turn = store.turn(room)
    return turn[0].id if turn else None


def doomed(store: reference_store.Store, room: str, but: list[reference_store.Row]) -> list[reference_store.Row]:
    """Those who wait and are covered by a stop: a worker ends them before it goes past them."""
    covers = {message for stop in store.open_stops(room) for message in stop.covers}
    return [row for row in store.waiting(room) if row.id in covers and row not in but]


Parts = dict[str, Any]


def claim(store: reference_store.Store, room: str, data: st.DataObject) -> Parts:
    """From idle: a returned turn, or some of those who wait."""
    turn = store.turn(room)
    rows = turn or sorted(some(data, store.waiting(room)), key=lambda row: not row.is_person)
    if not rows:
        return {}
    root, rest = rows[0], rows[1:]
    return {
        "ends": cut(doomed(store, room, rows), Reason.STOPPED),
        "claim": Taking(message_id=root.id, reason=Reason.FRESH),
        "claim_adopts": taken(rest, Reason.COLLECTED),
    }


def infer(store: reference_store.Store, room: str, data: st.DataObject) -> Parts:
    """The model spoke and called tools."""
    calls = tuple(calling(name) for name in data.draw(st.sampled_from(["a", "ab", "abc"])))
    said = (saying("so", Status.RESPONDED),) if data.draw(st.booleans()) else ()
    return {"root_id": root_of(store, room), "step": step(), "insert": said + calls}


def answer(store: reference_store.Store, room: str, data: st.DataObject) -> Parts:
    """The turn ends with its answer."""
    ends = tuple(Ending(message_id=row.id, status=Status.PROCESSED) for row in store.turn(room))
    parts = {"root_id": root_of(store, room), "step": step(), "insert": (saying("hi"),), "ends": ends}
    return {**parts, "results": data.draw(st.sampled_from(ResultMode))}


def publish(store: reference_store.Store, room: str, data: st.DataObject) -> Parts:
    """A batch is over."""
    return {"root_id": root_of(store, room), "results": ResultMode.PUBLISH}


def obey(store: reference_store.Store, room: str, data: st.DataObject) -> Parts:
    """The turn ends by a stop, with some of those who wait."""
    ends = cut(store.turn(room) + some(data, store.waiting(room)), Reason.STOPPED)
    return {"root_id": root_of(store, room), "results": ResultMode.SETTLE, "ends": ends}


def pivot(store: reference_store.Store, room: str, data: st.DataObject) -> Parts:
    """Somebody interrupts."""
    waiting = some(data, store.waiting(room))
    people = [row for row in waiting if row.is_person]
    if not people:
        return obey(store, room, data)
    notices = [row for row in waiting if not row.is_person]
    return {
        "root_id": root_of(store, room),
        "step": step(),
        "insert": (saying("par", Status.RESPONDED),),
        "results": ResultMode.SETTLE,
        "ends": cut(store.turn(room) + people[:-1] + doomed(store, room, waiting), Reason.SUPERSEDED),
        "claim": Taking(message_id=people[-1].id, reason=Reason.INTERRUPTED),
        "claim_adopts": taken(notices, Reason.INTERRUPTED),
    }


def adopt(store: reference_store.Store, room: str, data: st.DataObject) -> Parts:
    """The running turn takes some of those who wait along."""
    return {"root_id": root_of(store, room), "adopt": taken(some(data, store.waiting(room)), Reason.STEERED)}


def drop(store: reference_store.Store, room: str, data: st.DataObject) -> Parts:
    """Idle: some of those who wait end."""
    return {"ends": cut(some(data, store.waiting(room)), Reason.STOPPED)}


def leave(store: reference_store.Store, room: str, data: st.DataObject) -> Parts:
    """Shutdown."""
    return {"root_id": root_of(store, room), "step": step(), "give_back": True}


def give_up_files(store: reference_store.Store, room: str, data: st.DataObject) -> Parts:
    """The turn has waited long enough for files, also for some that nobody expects."""
    rows = [row for row in store.history(room) if row.is_person]
    return {"root_id": root_of(store, room), "late": tuple(row.id for row in some(data, rows))}


def anything(store: reference_store.Store, room: str, data: st.DataObject) -> Parts:
    """No worker would plan this."""
    rows = [row for row in store.rows.values() if row.asks and row.session == room]
    picked = some(data, rows)
    parts = [publish, pivot, adopt, drop, infer, claim, leave]
    mixed: Parts = {}
    for plan in data.draw(st.lists(st.sampled_from(parts), max_size=3)):
        mixed |= plan(store, room, data)
    return {**mixed, "ends": cut(picked, Reason.STOPPED)}


Plan = Callable[[reference_store.Store, str, st.DataObject], Parts]

IDLE: tuple[Plan, ...] = (claim, claim, claim, drop, anything)
BUSY: tuple[Plan, ...] = (
    infer,
    infer,
    infer,
    answer,
    publish,
    publish,
    obey,
    pivot,
    adopt,
    leave,
    give_up_files,
    anything,
)


def agree(expected: CommitReply | None, reply: Refused) -> bool:
    """Whether the reference refused for the same reason; if not, the engine must have been free to refuse."""
    if isinstance(expected, Committed):
        assert reply.detail.startswith(MAY_REFUSE_MORE), (expected, reply)
        return False
    if expected is None or expected.reason is reply.reason:
        return expected is not None
    assert reply.reason is RefusalReason.INVALID, (expected, reply)
    return False


class Twins(RuleBasedStateMachine):
    """Both stores, and which message of one is which of the other."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = engine_in_memory()
        self.reference = reference_store.Store()
        self.ours: dict[str, str] = {}
        self.theirs: dict[str, str] = {}
        self.keys: dict[str, WorkerKey] = {}
        self.sent: list[tuple[Commit, Commit]] = []
        self.done: list[Command] = []
        self.epoch = self.count = 0
        self.new_epoch(clean=True)

    # Doing the same to both.

    def do(self, command: Command) -> object:
        remembered = self.engine.from_memory([command])
        (reply,), _publication = self.engine.run([command])
        assert remembered in (None, [reply]), "what is remembered is what is stored"
        self.done.append(command)
        return reply

    def teardown(self) -> None:
        """However commands are grouped, and however often a group fails before it stands, the same is stored."""
        chance = random.Random(len(self.done))

        def fail(point: str) -> None:
            if point == "store.before_commit" and chance.random() < 0.3:
                raise apsw.BusyError("not now")

        alone, grouped = engine_in_memory(), engine_in_memory(fail)
        for command in self.done:
            alone.run([command])
        rest = list(self.done)
        while rest:
            size = chance.randint(1, 8)
            with suppress(apsw.BusyError):
                if grouped.from_memory(rest[:size]) is None:
                    grouped.run(rest[:size])
                del rest[:size]
        assert contents(grouped.connection) == contents(alone.connection)
        for engine in (self.engine, alone, grouped):
            engine.connection.close()

    def next(self) -> int:
        self.count += 1
        return self.count

    def pair(self) -> None:
        """Rows and sessions made by the last command come in the same order on both sides."""
        made = [row for row in self.reference.rows.values() if row.id not in self.ours and not row.is_notice]
        found = self.engine.connection.execute(
            "SELECT m.id FROM messages m WHERE NOT (role = 'system' AND status = 'pending') ORDER BY seq"
        ).fetchall()
        new = [id for (id,) in found if id not in self.theirs]
        assert len(made) == len(new), (made, new)
        rooms = [name for name in self.reference.rooms if name not in self.ours]
        sessions = self.engine.connection.execute("SELECT id FROM sessions ORDER BY no").fetchall()
        opened = [id for (id,) in sessions if id not in self.theirs]
        for theirs, ours in zip([*(row.id for row in made), *rooms], [*new, *opened], strict=True):
            self.ours[theirs], self.theirs[ours] = ours, theirs

    def rooms(self) -> list[str]:
        return [room.id for room in self.reference.rooms.values() if room.state is not SessionState.TOMBSTONE]

    @rule(times=st.integers(1, 3), file=st.booleans())
    def say(self, times: int, file: bool = False) -> None:
        for _ in range(times):
            self.post(f"x{self.next()}", file=file)

    @precondition(lambda self: self.reference.seen)
    @rule(data=st.data())
    def say_again(self, data: st.DataObject) -> None:
        self.post(data.draw(st.sampled_from(sorted(self.reference.seen))))

    def post(self, external: str, *, file: bool = False) -> None:
        row, is_new = self.reference.post(external, file=file)
        inbound = Inbound(
            chatbot_id="bot",
            channel_id="room",
            content=external,
            sender="Ada",
            external_id=external,
            metadata={"attachments": [expected("a").as_data()]} if file else {},
        )
        reply = self.do(Post(id=f"p{self.next()}", inbound=inbound))
        self.pair()
        assert isinstance(reply, Posted) == (row is not None)
        if row is not None:
            assert isinstance(reply, Posted)
            assert (reply.is_new, self.theirs[reply.message.id]) == (is_new, row.id)

    @precondition(lambda self: any(row.file for row in self.reference.rows.values()))
    @rule(data=st.data())
    def settle_file(self, data: st.DataObject) -> None:
        """A file arrives, in time or late, or once more."""
        self.arrive(data.draw(st.sampled_from([row for row in self.reference.rows.values() if row.file])))

    def arrive(self, row: reference_store.Row) -> None:
        if row.file == "late" and self.reference.rooms[row.session].state is SessionState.OPEN:
            self.reference.notify(row.session, wakes=False)
        row.file = {"expected": "saved", "late": "arrived"}.get(row.file or "", row.file)
        reply = self.do(SettleAttachment(message_id=self.ours[row.id], index=0, path="attachments/a"))
        assert isinstance(reply, Message)
        self.pair()

    @rule(wakes=st.booleans())
    def ring(self, wakes: bool) -> None:
        self.reference.notify(self.reference.open_room().id, wakes=wakes)
        inbound = Inbound(
            chatbot_id="bot",
            channel_id="room",
            content="job",
            sender=SYSTEM,
            role=Role.SYSTEM,
            metadata={"wakes": wakes},
        )
        self.do(Post(id=f"p{self.next()}", inbound=inbound))
        self.pair()

    @precondition(lambda self: self.rooms())
    @rule(data=st.data())
    def stop(self, data: st.DataObject) -> None:
        room = data.draw(st.sampled_from(self.rooms()))
        stop = self.reference.stop(room)
        reply = self.do(RequestStop(session_id=self.ours[room]))
        assert isinstance(reply, NothingToStop) == (stop is None)

    @precondition(lambda self: self.reference.rows)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from([row for row in self.reference.rows.values() if row.id in self.ours]))
        assert self.do(WithdrawMessage(message_id=self.ours[row.id])) == self.reference.withdraw(row.id)

    @precondition(lambda self: self.rooms())
    @rule(data=st.data(), rarely=st.integers(0, 3))
    def clear(self, data: st.DataObject, rarely: int) -> None:
        name = data.draw(st.sampled_from(self.rooms()))
        if rarely:
            return
        room = self.reference.rooms[name]
        if room.state is SessionState.OPEN:
            room.state = SessionState.CLOSED
            self.reference.stop(name, Reason.CLEARED)
            self.do(CloseSession(session_id=self.ours[name]))
        else:
            self.reference.wipe(name)
            self.do(WipeSession(session_id=self.ours[name]))

    # Workers.

    def take_back(self, room: str, *, clean: bool) -> None:
        """As the reference does it, except that a stored stop wins over the last attempt (C2)."""
        turn, stops = self.reference.turn(room), self.reference.open_stops(room)
        self.reference.give_back(room, clean=clean)
        for row in turn:
            reasons = [stop.reason for stop in stops if any(other.id in stop.covers for other in turn)]
            if row.status is Status.ERROR and reasons:
                row.status, row.reason = Status.INTERRUPTED, reasons[0]

    @rule(clean=st.booleans())
    def new_epoch(self, clean: bool) -> None:
        for room in self.reference.rooms.values():
            if room.worker is not None:
                self.take_back(room.id, clean=clean)
        begun = self.do(BeginEpoch(clean=clean))
        assert isinstance(begun, EpochBegun)
        self.epoch = begun.epoch
        self.pair()

    @precondition(lambda self: self.rooms())
    @rule(data=st.data())
    def hire(self, data: st.DataObject) -> None:
        self.engage(data.draw(st.sampled_from(self.rooms())))

    def engage(self, room: str) -> None:
        if self.reference.rooms[room].worker is not None:
            self.take_back(room, clean=False)
        key = WorkerKey(session_id=room, epoch=self.epoch, worker=self.next())
        theirs = self.reference.register(key)
        self.keys[room] = key
        ours = self.do(RegisterWorker(key=self.key_of(key)))
        self.pair()
        assert isinstance(ours, Registered)
        assert [self.theirs[message] for message in ours.returned] == list(theirs.returned)
        assert ours.self_started == theirs.self_started

    @precondition(lambda self: self.keys)
    @rule(data=st.data(), clean=st.booleans())
    def fire(self, data: st.DataObject, clean: bool) -> None:
        room = data.draw(st.sampled_from(sorted(self.keys)))
        key = self.keys[room]
        if self.reference.rooms[room].worker == key.worker:
            self.take_back(room, clean=clean)
        self.do(GiveBack(key=self.key_of(key), clean=clean))
        self.pair()

    # Calls.

    @precondition(lambda self: self.reference.calls)
    @rule(data=st.data(), what=st.sampled_from(["start", "stage", "stage", "background", "end"]))
    def call(self, data: st.DataObject, what: str) -> None:
        call = data.draw(st.sampled_from(list(self.reference.calls.values())))
        id, state = self.ours[call.id], call.state
        match what:
            case "start":
                may = state is CallState.COMMITTED
                call.state = CallState.STARTED if may else state
                assert self.do(CallStarted(call_id=id)) == may
            case "stage":
                staged = self.reference.stage(call.id, "ok")
                outcome = StageOutcome(call_id=id, outcome=Outcome.OK, content="ok", duration_s=1.0)
                assert self.do(outcome) == staged
            case "background":
                begins = state is CallState.STARTED and self.reference.stage(call.id, "background")
                reply = self.do(BeginJob(call_id=id, title="t", content=("", ""), duration_s=1.0, max_jobs=100))
                assert isinstance(reply, JobBegun) == (begins or call.job is not None)
            case "end":
                self.end_job(call, data.draw(st.sampled_from(JobEnding)))

    def end_job(self, call: reference_store.Call, ending: JobEnding) -> None:
        ends = self.reference.end_job(call.id, wakes=ending in WAKING)
        assert self.do(EndJob(call_id=self.ours[call.id], ending=ending, detail="", notice="job")) == ends
        self.pair()

    @precondition(lambda self: self.reference.calls)
    @rule(data=st.data(), what=st.sampled_from(["wait", "wait", "approve", "deny", "expire"]))
    def ask(self, data: st.DataObject, what: str) -> None:
        """A call waits for a person, who says yes, no or nothing."""
        call = data.draw(st.sampled_from(list(self.reference.calls.values())))
        id = self.ours[call.id]
        if what == "wait":
            standing = self.do(CallWaiting(call_id=id, expires=1.0))
            assert isinstance(standing, Standing)
            assert standing.state is self.reference.wait(call.id)
            assert standing.is_approved == (call.approved and call.state is CallState.COMMITTED)
            return
        accepted = self.reference.answer(call.id, approved=what == "approve")
        if what == "expire":
            assert self.do(CallExpired(call_id=id)) == accepted
            return
        answer = self.do(AnswerApproval(call_id=id, approved=what == "approve", by="Ada", is_admin=True))
        assert isinstance(answer, ApprovalAnswer)
        assert (answer.accepted, answer.state) == (accepted, call.state)

    # Commits.

    def key_of(self, key: WorkerKey) -> WorkerKey:
        return WorkerKey(session_id=self.ours[key.session_id], epoch=key.epoch, worker=key.worker)

    def translated(self, commit: Commit) -> Commit:
        def taking(each: Taking) -> Taking:
            return Taking(message_id=self.ours[each.message_id], reason=each.reason)

        return Commit(
            id=commit.id,
            key=self.key_of(commit.key),
            root_id=self.ours[commit.root_id] if commit.root_id else None,
            late=tuple(self.ours[message] for message in commit.late),
            step=commit.step,
            insert=commit.insert,
            results=commit.results,
            ends=tuple(
                Ending(message_id=self.ours[each.message_id], status=each.status, reason=each.reason)
                for each in commit.ends
            ),
            adopt=tuple(map(taking, commit.adopt)),
            claim=taking(commit.claim) if commit.claim else None,
            claim_adopts=tuple(map(taking, commit.claim_adopts)),
            give_back=commit.give_back,
        )

    @rule(data=st.data(), commits=st.integers(2, 8))
    def work(self, data: st.DataObject, commits: int) -> None:
        """A worker, hired if there is none, plans one commit after the other."""
        room = data.draw(st.sampled_from(self.rooms())) if self.rooms() else None
        if room is None or not self.reference.waiting(room):
            self.say(times=2, file=True)
            room = self.rooms()[-1]
        if self.reference.rooms[room].worker is None:
            self.engage(room)
        for _ in range(commits):
            if self.reference.rooms[room].worker is None:
                return
            self.settle_some(data)
            is_busy = any(row.status is Status.PROCESSING for row in self.reference.turn(room))
            plan = data.draw(st.sampled_from(BUSY if is_busy else IDLE))
            self.send(Commit(id=f"c{self.next()}", key=self.keys[room], **plan(self.reference, room, data)))
            self.the_histories_are_the_same()
            self.what_is_open_is_the_same()

    def settle_some(self, data: st.DataObject) -> None:
        for call in list(self.reference.calls.values()):
            if call.state is not CallState.SETTLED and data.draw(st.booleans()):
                outcome = StageOutcome(call_id=self.ours[call.id], outcome=Outcome.OK, content="ok", duration_s=1.0)
                assert self.do(outcome) == self.reference.stage(call.id, "ok")
        for row in list(self.reference.rows.values()):
            if row.file and not data.draw(st.integers(0, 3)):
                self.arrive(row)

    @precondition(lambda self: self.keys)
    @rule(data=st.data())
    def work_of_a_stranger(self, data: st.DataObject) -> None:
        room = data.draw(st.sampled_from(sorted(self.keys)))
        key = WorkerKey(session_id=room, epoch=self.epoch, worker=-1)
        self.send(Commit(id=f"c{self.next()}", key=key, **claim(self.reference, room, data)))

    def send(self, theirs: Commit) -> None:
        ours = self.translated(theirs)
        before = copy.deepcopy(self.reference)
        try:
            expected: CommitReply | None = self.reference.apply(theirs)
        except (AssertionError, KeyError):
            expected = None
        reply = self.do(ours)
        if isinstance(reply, Refused) and not agree(expected, reply):
            self.reference = before
            if reply.reason is RefusalReason.MOVED and theirs.step and theirs.root_id:
                self.reference.steps.append((theirs.root_id, theirs.step))
            return
        assert expected is not None, f"the reference cannot carry it out: {ours}"
        self.pair()
        self.compare(expected, reply)
        if not (isinstance(reply, Refused) and reply.reason is RefusalReason.STALE):
            self.sent.append((theirs, ours))

    def compare(self, expected: CommitReply, reply: object) -> None:
        assert isinstance(reply, Committed | Refused)
        assert [self.covered(stop) for stop in reply.stops] == [stop.covers for stop in expected.stops] or (
            isinstance(reply, Refused) and reply.reason is RefusalReason.STALE
        )
        if isinstance(expected, Refused):
            assert isinstance(reply, Refused), (expected, reply)
            return
        assert isinstance(reply, Committed), (expected, reply)
        calls = [(self.theirs[call.call_id], call.state) for call in reply.open_calls]
        assert calls == [(call.call_id, call.state) for call in expected.open_calls]
        assert reply.steps == expected.steps

    def covered(self, stop: object) -> frozenset[str]:
        return frozenset(self.theirs[id] for id in stop.covers)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        theirs, ours = data.draw(st.sampled_from(self.sent))
        room = theirs.key.session_id
        if self.keys.get(room) == theirs.key and self.reference.rooms[room].state is not SessionState.TOMBSTONE:
            self.compare(self.reference.apply(theirs), self.do(ours))

    # What must be the same.

    @invariant()
    def the_histories_are_the_same(self) -> None:
        for room in self.rooms():
            history = queries.history(self.engine.connection, self.ours[room])
            ours = [self.seen(row) for row in history.messages if not is_notice(row)]
            theirs = [
                (row.id, row.status, row.root, row.parent, reason_of(row), row.file)
                for row in self.reference.history(room)
            ]
            assert ours == theirs
            roots = [self.theirs[stored.root_id] for stored in history.steps]
            steps = [root for root, _ in self.reference.steps if self.session_of(root) == room]
            assert sorted(roots) == sorted(steps)

    def session_of(self, message: str) -> str | None:
        row = self.reference.rows.get(message)
        return row.session if row else None

    def seen(self, row: Message) -> tuple[object, ...]:
        root = self.theirs[row.root_id] if row.root_id else None
        parent = self.theirs[row.parent_id] if row.parent_id else None
        return self.theirs[row.id], row.status, root, parent, row.metadata.get("reason"), file_of(row)

    @invariant()
    def what_is_open_is_the_same(self) -> None:
        for name in self.rooms():
            room, no = self.reference.rooms[name], queries.session_no(self.engine.connection, self.ours[name])
            assert no is not None
            waiting = [self.theirs[each.id] for each in queries.waiting(self.engine.connection, no)]
            assert waiting == [row.id for row in self.reference.waiting(name)]
            turn = [self.theirs[each.id] for each in queries.turn(self.engine.connection, no)]
            assert turn == [row.id for row in self.reference.turn(name)]
            asked = [self.theirs[each.call_id] for each in queries.approvals(self.engine.connection, no)]
            calls = [call for call in self.reference.calls.values() if self.session_of(call.id) == name]
            assert asked == [call.id for call in calls if call.state is CallState.WAITING]
            jobs = {self.theirs[job.call_id]: job.state for job in queries.jobs(self.engine.connection, no)}
            assert jobs == {call.id: call.job for call in calls if call.job is not None}
            stops = [self.covered(stop) for stop in queries.stops(self.engine.connection, no, False)]
            assert stops == [stop.covers for stop in self.reference.open_stops(name)]
            facts = self.engine.connection.execute("SELECT self_started, worker FROM sessions WHERE no = ?", (no,))
            ((self_started, worker),) = facts.fetchall()
            hired = self.engine.memory.hired(self.ours[name])
            assert (self_started, hired[1] if hired else worker) == (room.self_started, room.worker)


def is_notice(row: Message) -> bool:
    return row.role is Role.SYSTEM and row.status is Status.PENDING


def file_of(row: Message) -> str | None:
    """The state of a person's one attachment, in the words of the reference."""
    if not row.is_person or not (attachments := attachments_in(row.metadata)):
        return None
    [attachment] = attachments
    return "arrived" if attachment.state is AttachmentState.LATE and attachment.path else str(attachment.state)


def reason_of(row: reference_store.Row) -> str | None:
    return None if row.reason is None else str(row.reason)


TestTwins = Twins.TestCase
TestTwins.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
