"""The store as plain data: the rules of its transactions, word for word, speaking the values of its port.

`READINGS` holds names of rules to be read differently; each is a reading that looked right and loses something.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, evolve, field

from kesoku_actors.protocol import (
    ASKS,
    ENDED,
    LEAVES,
    MOVES,
    SYSTEM,
    BusyMode,
    CallState,
    Channel,
    Draft,
    JobState,
    Reason,
    Role,
    SessionState,
    Status,
    Step,
    Stop,
    Type,
    Waiting,
)
from kesoku_actors.protocol.messages import check_shape
from kesoku_actors.store.port import (
    Commit,
    CommitReply,
    Committed,
    OpenCall,
    RefusalReason,
    Refused,
    Registered,
    ResultMode,
    WorkerKey,
)

MAX_WAITING, MAX_ATTEMPTS = 3, 3
CHANNEL = Channel(chatbot_id="bot", channel_id="room")
READINGS: dict[str, bool] = {}


@define(kw_only=True)
class Row:
    """A stored message."""

    id: str
    seq: int
    session: str
    role: Role
    type: Type
    status: Status
    content: str
    metadata: Mapping[str, Any] = field(factory=dict)
    root: str | None = None
    place: int
    parent: str | None = None
    reason: Reason | None = None
    claim: int | None = None
    attempts: int = 0
    file: str | None = None
    adopted: int = 0
    step: int = 0

    @property
    def is_person(self) -> bool:
        return self.role is Role.USER

    @property
    def asks(self) -> bool:
        return self.type is Type.TEXT and self.status in ASKS

    @property
    def is_answer(self) -> bool:
        return self.role is Role.ASSISTANT and self.status in LEAVES

    @property
    def is_notice(self) -> bool:
        return self.role is Role.SYSTEM and self.status in LEAVES

    @property
    def wakes(self) -> bool:
        return self.is_person or bool(self.metadata.get("wakes"))

    def waiting(self) -> Waiting:
        return Waiting(id=self.id, seq=self.seq, is_person=self.is_person, wakes=self.wakes)


@define(kw_only=True)
class Call:
    """A tool call beside its row."""

    id: str
    root: str
    name: str
    invalid: bool
    state: CallState = CallState.COMMITTED
    approved: bool = False
    staged: str | None = None
    job: JobState | None = None
    wakes: bool = True
    """Whether the end of the job does."""


@define(kw_only=True)
class Room:
    """A session."""

    id: str
    state: SessionState = SessionState.OPEN
    worker: int | None = None
    self_started: int = 0


@define
class Store:
    """Everything that is stored."""

    n: int = 0
    mode: BusyMode = BusyMode.INTERRUPT
    rows: dict[str, Row] = field(factory=dict)
    calls: dict[str, Call] = field(factory=dict)
    steps: list[tuple[str, Step]] = field(factory=list)
    stops: list[Stop] = field(factory=list)
    rooms: dict[str, Room] = field(factory=dict)
    seen: dict[str, str | None] = field(factory=dict)
    commits: dict[str, tuple[Commit, RefusalReason | None]] = field(factory=dict)
    told: list[Row] = field(factory=list)
    """Notices of jobs, to be broadcast."""

    def tick(self) -> int:
        self.n += 1
        return self.n

    def move(self, row: Row, status: Status, reason: Reason | None = None) -> None:
        assert (row.status, status) in MOVES, f"M2: {row.status} -> {status}"
        row.status, row.reason = status, reason or row.reason

    def add(self, session: str, draft: Draft, root: str | None = None, parent: str | None = None) -> Row:
        check_shape(draft.role, draft.type, draft.status, draft.sender, parent or "", draft.metadata)
        n = self.tick()
        row = Row(
            id=str(n),
            seq=n,
            session=session,
            role=draft.role,
            type=draft.type,
            status=draft.status,
            content=draft.content,
            metadata=draft.metadata,
            root=root,
            place=n,
            parent=parent,
            step=len(self.steps),
        )
        self.rows[row.id] = row
        return row

    # Reading.

    def open_room(self) -> Room:
        for room in self.rooms.values():
            if room.state is SessionState.OPEN:
                return room
        name = str(self.tick())
        return self.rooms.setdefault(name, Room(id=name))

    def waiting(self, session: str) -> list[Row]:
        return [
            row
            for row in self.rows.values()
            if row.session == session and row.status is Status.PENDING_AGENT and row.root is None
        ]

    def turn(self, session: str) -> list[Row]:
        """The messages of the one turn that is claimed or returned, root first."""
        rows = [
            row
            for row in self.rows.values()
            if row.session == session and row.asks and row.root and row.status not in ENDED
        ]
        assert len({row.root for row in rows}) <= 1, "two open turns in one session"
        return sorted(rows, key=lambda row: row.place)

    def open_calls(self, root: str) -> list[Call]:
        return [call for call in self.calls.values() if call.root == root and not self.result(call.id)]

    def result(self, call: str) -> Row | None:
        results = (row for row in self.rows.values() if row.type is Type.TOOL_RESULT)
        return next((row for row in results if row.parent == call), None)

    def steps_of(self, root: str) -> int:
        return sum(each == root for each, _ in self.steps)

    def history(self, session: str) -> list[Row]:
        rows = [row for row in self.rows.values() if row.session == session and row.root and not row.is_notice]
        return sorted(rows, key=lambda row: (self.rows[row.root or ""].seq, row.place))  # O1

    def open_stops(self, session: str) -> tuple[Stop, ...]:
        return tuple(stop for stop in self.stops if stop.session_id == session and not stop.done)

    # Commands of people, and notices.

    def post(self, external: str, *, file: bool = False) -> tuple[Row | None, bool]:
        if external in self.seen:  # M5
            known = self.seen[external]
            if "repost" in READINGS:
                return self.rows[known or ""], False
            return self.rows.get(known or ""), False
        room = self.open_room()
        if sum(row.is_person for row in self.waiting(room.id)) >= MAX_WAITING:  # B4
            self.seen[external] = None
            return None, False
        row = self.add(
            room.id,
            Draft(role=Role.USER, type=Type.TEXT, status=Status.PENDING_AGENT, sender="Ada", content=external),
        )
        row.file = "expected" if file else None
        self.seen[external] = row.id
        return row, True

    def notify(self, session: str, *, wakes: bool) -> Row:
        return self.add(
            session,
            Draft(
                role=Role.SYSTEM,
                type=Type.TEXT,
                status=Status.PENDING_AGENT,
                sender=SYSTEM,
                content="job",
                metadata={"wakes": wakes},
            ),
        )

    def stop(self, session: str, reason: Reason = Reason.STOPPED) -> Stop | None:
        turn = self.turn(session)
        waiting = [row for row in self.waiting(session) if row.is_person or "stop-people" not in READINGS]
        if not turn and not waiting:
            return None
        stop = Stop(
            seq=self.tick(),
            session_id=session,
            root_id=(turn or waiting)[0].id,
            covers=frozenset(row.id for row in turn + waiting),
            reason=reason,
        )
        self.stops.append(stop)
        return stop

    def force(self, session: str) -> Stop | None:
        for at, stop in enumerate(self.stops):
            if stop.session_id == session and not stop.done and not stop.forced:
                self.stops[at] = evolve(stop, forced=True)
                return self.stops[at]
        return None

    def withdraw(self, message: str) -> bool:
        row = self.rows.get(message)
        if not row or row.status is not Status.PENDING_AGENT or row.root is not None:  # M8
            return False
        del self.rows[message]
        self.settle_stops()
        return True

    def stage(self, call_id: str, outcome: str) -> bool:
        call = self.calls.get(call_id)
        if not call or call.state is CallState.SETTLED:
            return False
        call.state, call.staged = CallState.SETTLED, outcome
        if outcome == "background":
            call.job = JobState.RUNNING
        return True

    # Approvals and jobs.

    def wait(self, call_id: str) -> CallState | None:
        """Let a call wait for a person, unless one has said yes; return what it is now."""
        call = self.calls.get(call_id)
        if call and call.state is CallState.COMMITTED and not call.approved:
            call.state = CallState.WAITING
        return call and call.state

    def answer(self, call_id: str, *, approved: bool) -> bool:
        """The first answer decides (T7)."""
        call = self.calls.get(call_id)
        if not call or call.state is not CallState.WAITING:
            return False
        if approved:
            call.state, call.approved = CallState.COMMITTED, True
            return True
        return self.stage(call_id, "error")

    def end_job(self, call_id: str, *, wakes: bool) -> bool:
        """A job ends once; it is told when its result is published (I8)."""
        call = self.calls.get(call_id)
        if not call or call.job is not JobState.RUNNING:
            return False
        call.job, call.wakes = JobState.OVER, wakes
        if self.result(call_id):
            self.tell_end(call)
        return True

    def tell_end(self, call: Call) -> None:
        call.job = JobState.TOLD
        session = self.rows[call.id].session
        if self.rooms[session].state is SessionState.OPEN:
            self.told.append(self.notify(session, wakes=call.wakes))

    def wipe(self, session: str) -> None:
        self.rows = {name: row for name, row in self.rows.items() if row.session != session}
        self.calls = {name: call for name, call in self.calls.items() if name in self.rows}
        self.rooms[session].state, self.rooms[session].worker = SessionState.TOMBSTONE, None
        self.settle_stops()

    # Workers.

    def register(self, key: WorkerKey) -> Registered:
        room = self.rooms[key.session_id]
        room.worker = key.worker
        return Registered(
            channel=CHANNEL,
            mode=self.mode,
            waiting=tuple(row.waiting() for row in self.waiting(room.id)),
            returned=tuple(row.id for row in self.turn(room.id)),
            returned_began=None,
            stops=self.open_stops(room.id),
            self_started=room.self_started,
        )

    def give_back(self, session: str, *, clean: bool) -> None:
        """Rows whose claim has no live worker go back, the turn whole (C2, C7)."""
        self.rooms[session].worker = None
        turn = [row for row in self.turn(session) if row.status is Status.PROCESSING]
        if not turn:
            return
        root = self.rows[turn[0].root or ""]
        root.attempts += not clean
        over = root.attempts >= MAX_ATTEMPTS
        if over:
            self.settle(root.id)
            self.add(session, note(Reason.ATTEMPTS), root.id, root.id)
        for row in turn:
            row.claim = None
            self.move(row, Status.ERROR if over else Status.PENDING_AGENT, Reason.ATTEMPTS if over else None)
        self.settle_stops()

    def settle(self, root: str, *, publish: bool = False) -> None:
        """Results in call order with consecutive seqs (O3, O4)."""
        opened = self.open_calls(root)
        for call in opened:
            if call.state is CallState.SETTLED and "open-calls" in READINGS and not publish:
                continue
            if call.state is not CallState.SETTLED:
                assert not publish, "O3: published before every call is settled"
                call.staged = "unknown" if call.state is CallState.STARTED else "interrupted"
                call.state = CallState.SETTLED
            made = self.rows[call.id]
            metadata = {"tool_name": call.name, "tool_call_id": "", "outcome": call.staged}
            draft = Draft(
                role=Role.TOOL,
                type=Type.TOOL_RESULT,
                status=Status.RESPONDED,
                sender=call.name,
                content=call.staged or "",
                metadata=metadata,
            )
            self.add(made.session, draft, root, call.id)
        for call in opened:
            if call.job is JobState.OVER and self.result(call.id):
                self.tell_end(call)

    def settle_stops(self) -> None:
        self.stops = [
            evolve(stop, done=all(each not in self.rows or self.rows[each].status in ENDED for each in stop.covers))
            for stop in self.stops
        ]

    def apply(self, commit: Commit) -> CommitReply:
        """Carry out a commit once; the reply is read fresh each time it is asked for (C10)."""
        if commit.id not in self.commits:
            refusal = self._refusal(commit)
            self.commits[commit.id] = commit, refusal
            if refusal is None:
                self._apply(commit)
            elif refusal is RefusalReason.MOVED and commit.step and commit.root_id:
                self.steps.append((commit.root_id, commit.step))
        known, refusal = self.commits[commit.id]
        assert known == commit, "C10: one id, two commits"
        session = commit.key.session_id
        stops = self.open_stops(session)
        if refusal is not None:
            waiting = tuple(row.waiting() for row in self.waiting(session))
            return Refused(reason=refusal, detail="", waiting=waiting, stops=stops)
        if "stop-take" in READINGS:
            stops = ()
        root = commit.claim.message_id if commit.claim else commit.root_id
        return Committed(
            rows=(),
            open_calls=tuple(OpenCall(call_id=call.id, state=call.state) for call in self.open_calls(root or "")),
            steps=self.steps_of(root or ""),
            spent_s=0.0,
            mode=self.mode,
            stops=stops,
            waiting=tuple(row.waiting() for row in self.waiting(session)),
        )

    def _refusal(self, commit: Commit) -> RefusalReason | None:
        assert not commit.claim or commit.claim.message_id != commit.root_id, "I2: a turn pivots to itself"
        room, root = self.rooms[commit.key.session_id], self.rows.get(commit.root_id or "")
        unguarded = "first-claim" in READINGS and commit.root_id is None
        if (room.worker != commit.key.worker and not unguarded) or room.state is SessionState.TOMBSTONE:
            return RefusalReason.STALE
        if commit.root_id and (root is None or root.claim != commit.key.worker):
            return RefusalReason.STALE
        if any(self._gone(each.message_id) for each in commit.ends):
            return RefusalReason.MOVED
        taken = taken_by(commit)
        if any(name not in self.rows or self.rows[name].status is not Status.PENDING_AGENT for name in taken):
            return RefusalReason.MOVED
        covers = {name for stop in self.stops for name in stop.covers if not stop.done}
        if "stop-take" not in READINGS and any(name in covers and self.rows[name].root is None for name in taken):
            return RefusalReason.MOVED
        return None

    def _gone(self, message: str) -> bool:
        return message not in self.rows or self.rows[message].status in ENDED

    def _apply(self, commit: Commit) -> None:
        room, root = self.rooms[commit.key.session_id], commit.root_id
        assert root or not (commit.insert or commit.step or commit.adopt), "M4: rows of no turn"
        for name in commit.late:
            if self.rows[name].file == "expected":
                self.rows[name].file = "late"
                self.rows[name].content += " (file late)"
        if commit.step and root:
            self.steps.append((root, commit.step))
        for draft in commit.insert:
            row = self.add(room.id, draft, root, root)
            if row.type is Type.TOOL_CALL:
                name, invalid = row.metadata["tool_name"], "invalid" in row.metadata
                self.calls[row.id] = Call(id=row.id, root=root or "", name=name, invalid=invalid)
        if commit.results is not ResultMode.NONE:
            self.settle(root or "", publish=commit.results is ResultMode.PUBLISH)
        for ending in commit.ends:
            row = self.rows[ending.message_id]
            if row.root is None and "superseded" not in READINGS:
                home = root if root and row.seq < self.rows[root].seq else row.id
                row.root, row.place = home, (row.place if home == row.id else self.tick())
            assert ending.reason or ending.status is Status.PROCESSED, f"I5: {row.id} ended without a reason"
            self.move(row, ending.status, ending.reason)
            row.claim = None
        before = [row for row in self.waiting(room.id) if row.is_person]
        reasons = {each.message_id: each.reason for each in commit.adopt}
        for name in reasons:
            self.take(self.rows[name], root or "", commit.key.worker)
            room.self_started = 0 if self.rows[name].is_person else room.self_started
        if commit.claim:
            claimed = self.rows[commit.claim.message_id]
            fresh = claimed.root is None
            reasons |= {each.message_id: each.reason for each in (commit.claim, *commit.claim_adopts)}
            for each in (commit.claim, *commit.claim_adopts):
                self.take(self.rows[each.message_id], claimed.id, commit.key.worker)
            if fresh:
                room.self_started = 0 if claimed.is_person else room.self_started + 1
            heard = [row.seq for row in before if row.id in reasons]
            early = [row.id for row in self.waiting(room.id) if row.is_person and heard and row.seq < max(heard)]
            assert not early, f"O2: {early} waits behind {heard}"
        for name, reason in reasons.items():
            assert reason in Reason, "I5: taken without a reason"
            self.rows[name].reason = reason
        if commit.give_back:
            for row in self.turn(room.id):
                row.claim = None
                self.move(row, Status.PENDING_AGENT)
            room.worker = None
        self.settle_stops()

    def take(self, row: Row, root: str, worker: int) -> None:
        assert row.root in (None, root), "C2: an adopted message became a root"
        assert row.root == root or all(each.root == root for each in self.turn(row.session)), (
            "C2: a returned turn was passed over"
        )
        if row.root is None:
            row.root = root
            if row.id != root:
                row.place, row.adopted = self.tick(), row.adopted + 1
        self.move(row, Status.PROCESSING)
        row.claim = worker


def taken_by(commit: Commit) -> list[str]:
    """The messages a commit takes."""
    claimed = (commit.claim, *commit.claim_adopts) if commit.claim else ()
    return [each.message_id for each in (*commit.adopt, *claimed)]


def note(reason: Reason) -> Draft:
    """A notice to people."""
    return Draft(
        role=Role.SYSTEM,
        type=Type.TEXT,
        status=Status.PENDING,
        sender=SYSTEM,
        content="gave up",
        metadata={"notice": reason.value},
    )
