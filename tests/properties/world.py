"""Everything around the turn machine, as actions: each enabled one may come next, and the rules hold after each.

`progress` are the actions that bring work to its end when nobody interferes, `chaos` are all others: people, notices,
modes, stop, force, clear, withdrawals, failures, lost and slow replies, deaths, crashes, shutdown and restart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from attrs import define, field

from kesoku_actors.llm.port import CallRequest, Finish, Remedy, Reply
from kesoku_actors.protocol import (
    ENDED,
    Activity,
    BusyMode,
    CallState,
    JobState,
    Outcome,
    Reason,
    SessionState,
    Status,
    StepState,
    Type,
)
from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.turn import TurnLimits, activity, begin, step
from kesoku_actors.session.turn_state import Batch, Inferring, State
from kesoku_actors.store.port import Commit, Committed, WorkerKey
from tests.properties.judgement import check_batch, check_effect
from tests.properties.reference_store import MAX_WAITING, READINGS, Row, Store

Action = tuple[str, ...]

LIMITS = TurnLimits(max_steps=3, max_tries=2, max_self_started=2, max_calls=2, max_known=3)
SLOTS = 1


def _reply(text: str = "", *tools: str, thought: str = "", finish: Finish = Finish.STOP) -> Reply:
    calls = tuple(
        CallRequest(name=name, arguments={"at": at}, id=name, invalid="no JSON" if name == "garbled" else None)
        for at, name in enumerate(tools)
    )
    return Reply(provider="scripted", model="one", text=text, thought=thought, calls=calls, finish=finish)


REPLIES = {
    "text": _reply("hi"),
    "call": _reply("", "plain"),
    "two": _reply("so", "plain", "plain", thought="two are better"),
    "risky": _reply("", "risky", "plain"),
    "empty": _reply(" \n"),
    "thought": _reply(thought="hm"),
    "refused": _reply(finish=Finish.REFUSED),
    "long": _reply("and so on and", finish=Finish.LENGTH),
    "garbled": _reply("", "garbled", "plain"),
    "many": _reply("", "plain", "plain", "plain"),
}
OUTCOMES = (*REPLIES, "delta", "fail", "fatal", "no-slot")


@define
class Worker:
    """A worker: the machine, what it has yet to hear, the effects that have not ended."""

    key: WorkerKey
    state: State
    inbox: list[v.Event] = field(factory=list)
    effects: list[v.Effect] = field(factory=list)
    replies: list[v.Event] = field(factory=list)
    """Answers of the store that are on their way: older than what is in the inbox."""
    budget: str | None = None
    held: str | None = None
    """The turn whose clock stands still."""
    registered: bool = False
    streamed: str = ""
    """What the last inference streamed before it was aborted or failed: kept if the turn ends by that (I2, B4)."""
    aborted: set[str] = field(factory=set)

    def first(self, kind: type[v.Effect]) -> v.Effect | None:
        return next((each for each in self.effects if isinstance(each, kind)), None)

    def pop(self, kind: type[v.Effect]) -> v.Effect:
        effect = self.first(kind)
        assert effect is not None
        self.effects.remove(effect)
        return effect

    def drop(self, *kinds: type[v.Effect]) -> None:
        self.effects = [each for each in self.effects if not isinstance(each, kinds)]

    def commits(self) -> list[Commit]:
        return [each.commit for each in self.effects if isinstance(each, v.SendCommit)]


@define
class World:
    """One process, its store, its tools, and what people did to it."""

    store: Store = field(factory=Store)
    judged: bool = True
    """Whether each effect is judged, or only what becomes of it all."""
    up: bool = True
    shutting: bool = False
    stale: bool = False
    unclean: bool = False
    workers: dict[str, Worker] = field(factory=dict)
    tools: dict[str, str] = field(factory=dict)
    """Calls the tool actor holds: queued, waiting or running."""
    ghosts: list[Commit] = field(factory=list)
    """Commits of dead workers that are still on their way."""
    runs: Counter[str] = field(factory=Counter)
    read: dict[str, list[str]] = field(factory=dict)
    """Session -> ids of its last prompt."""
    waited: dict[int, set[str]] = field(factory=dict)
    """Stop -> those who waited when it was stored."""
    forced: set[str] = field(factory=set)
    shown: dict[str, tuple[Activity, str | None]] = field(factory=dict)
    """Session -> what surfaces were told last."""
    inferences: list[str] = field(factory=list)
    lives: int = 4
    """How many more deaths, crashes, shutdowns and clears there may be."""
    posts: int = 0
    script: list[Action] = field(factory=list)

    # What may happen next.

    def progress(self) -> list[Action]:
        if not self.up:
            return [("restart",)]
        out: list[Action] = []
        for session, worker in self.workers.items():
            if not worker.registered:
                out.append(("register", session))
            if worker.replies:
                out.append(("reply", session))
            elif worker.inbox and worker.registered:
                out.append(("deliver", session))
            for effect in worker.effects:
                out += self._completions(session, worker, effect)
        for call, state in self.tools.items():
            if state == "queued" and self._slot_free() and not self.shutting:
                if "dead-queue" in READINGS or self._owner(call):
                    out.append(("tool", call))
            elif state == "waiting" and not self.shutting:
                out.append(("approve", call))
            elif state == "running":
                out.append(("tool-end", call, "ok"))
        for known in self.store.calls.values():
            if known.job is JobState.RUNNING:
                out.append(("job-end", known.id))
        for room in self.store.rooms.values():
            free = room.id not in self.workers
            if free and not self.shutting and room.state is not SessionState.TOMBSTONE and self._runnable(room.id):
                out.append(("dispatch", room.id))
            if free and room.state is SessionState.CLOSED and not self._runnable(room.id):
                out.append(("wipe", room.id))
        out += [("ghost", str(at)) for at in range(len(self.ghosts))]
        return out + ([("exit",)] if self.shutting and not self.workers else [])

    def _completions(self, session: str, worker: Worker, effect: v.Effect) -> list[Action]:
        match effect:
            case v.SendCommit():
                return [] if worker.replies else [("commit", session)]
            case v.BuildPrompt():
                return [("prompt", session)]
            case v.SetTimer():
                return [("timer", session)]
            case v.CallModel():
                return [("model", session, what) for what in OUTCOMES]
            case v.AbortModel():
                return [("aborted", session)]
            case v.WithdrawTools():
                return [("withdrawn", session)]
            case v.EndTools():
                return [("ended", session)]
            case _:
                raise AssertionError(f"{effect} has no end")

    def chaos(self) -> list[Action]:
        if not self.up:
            return [("restart",), ("restart-late",)]
        store, out = self.store, list[Action]()
        open_rooms = [room.id for room in store.rooms.values() if room.state is SessionState.OPEN]
        if not self.shutting:
            out += [("say",), ("say-file",), ("notice",), ("passive",)]
            out += [("mode", mode) for mode in BusyMode if mode != store.mode]
            out += [("repost", external) for external in list(store.seen)[-2:]]
            out += [("stop", room) for room in open_rooms]
            out += [("force", session) for session in self.workers if store.open_stops(session)]
            out += [("withdraw", row.id) for row in store.rows.values() if self._withdrawable(row)]
            out += [
                ("attach", room.id)
                for room in store.rooms.values()
                if room.id not in self.workers and room.state is not SessionState.TOMBSTONE and self._runnable(room.id)
            ]
            if self.lives:
                out += [("clear", room) for room in open_rooms] + [("shutdown",)]
        out += [("file", row.id) for row in store.rows.values() if row.file in ("expected", "late")]
        for session, worker in self.workers.items():
            out += [("die", session, how) for how in ("lost", "applied", "later")] if self.lives else []
            if worker.inbox and worker.replies:
                out.append(("deliver", session))
            if worker.budget:
                out.append(("budget", session))
            for effect in worker.effects:
                match effect:
                    case v.SendCommit() if not worker.replies:
                        out += [("commit-unheard", session), ("commit-slow", session)]
                    case v.AbortModel():
                        out += [("model", session, what) for what in ("text", "two", "fail", "delta")]
                    case _:
                        pass
        for call, state in self.tools.items():
            out += [("deny", call), ("expire", call)] if state == "waiting" else []
            out += [("tool-end", call, how) for how in ("error", "background")] if state == "running" else []
        return out + ([("crash", "lost"), ("crash", "applied")] if self.lives else [])

    def _withdrawable(self, row: Row) -> bool:
        return row.is_person and row.status is Status.PENDING_AGENT and not row.root

    def _slot_free(self) -> bool:
        return sum(state == "running" for state in self.tools.values()) < SLOTS

    def _owner(self, call: str) -> Worker | None:
        return self.workers.get(self.store.rows[call].session) if call in self.store.rows else None

    def _runnable(self, session: str) -> bool:
        if self.store.turn(session):
            return True
        rows, room = self.store.waiting(session), self.store.rooms[session]
        if "idle-notice" in READINGS and rows:
            return True
        if any(row.is_person or any(row.id in stop.covers for stop in self.store.stops) for row in rows):
            return True
        within = room.self_started < LIMITS.max_self_started and room.state is SessionState.OPEN
        return within and any(row.wakes for row in rows)

    # Doing it.

    def do(self, action: Action) -> None:
        self.script.append(action)
        getattr(self, "do_" + action[0].replace("-", "_"))(*action[1:])
        for row in self.store.told:
            self.tell(row.session, v.NoticeArrived(row.waiting()))
        self.store.told.clear()
        self.check()

    def feed(self, session: str, event: v.Event) -> None:
        worker = self.workers[session]
        before = worker.state
        worker.state, effects = step(before, event)
        for effect in effects:
            if self.judged:
                check_effect(before, worker.state, effect)
            self._begin(session, worker, effect)
        if self.judged:
            check_batch(before, worker.state)
        if not any(isinstance(each, v.Finish) and not each.clean for each in effects):
            assert self.shown.get(session, (Activity.IDLE, None)) == activity(worker.state), "surfaces were not told"

    def _begin(self, session: str, worker: Worker, effect: v.Effect) -> None:
        match effect:
            case v.Finish(clean=clean):
                del self.workers[session]
                if self.store.rooms[session].worker == worker.key.worker:
                    assert clean, "C10: a worker that was not fenced off gave up"
                    self.store.give_back(session, clean=clean)
            case v.EndCompaction():
                pass
            case v.Notify(activity=now, root_id=root):
                self.shown[session] = now, root
            case v.SetBudget(root_id=root, seconds=seconds):
                assert seconds > 0
                worker.budget, worker.held = root, None
            case v.HoldBudget(root_id=root):
                assert worker.budget in (None, root), "B4: another turn's clock is held"
                worker.held, worker.budget = worker.budget, None
            case v.ResumeBudget(root_id=root):
                assert worker.held in (None, root), "B4: another turn's clock goes on"
                worker.budget, worker.held = worker.held, None
            case v.EndJobs(root_id=root):
                self._end_jobs(root)
            case v.StartTools(call_ids=calls):
                for call in calls:
                    self.tools.setdefault(call, "queued")
            case v.SendCommit(commit=commit):
                if self.judged:
                    self._check_left_over(worker, commit)
                worker.effects.append(effect)
            case v.AbortModel():
                worker.aborted.add(self.inferences[-1])
                worker.effects.append(effect)
            case v.BuildPrompt() | v.SetTimer():
                worker.streamed = ""
                worker.effects.append(effect)
            case v.CallModel():
                assert effect.attempt == self.store.steps_of(effect.root_id) + 1, "B2: attempts do not count up"
                assert not self.store.open_calls(effect.root_id), "I4: inferring with open calls"
                self.inferences.append(effect.inference_id)
                worker.effects.append(effect)
            case _:
                worker.effects.append(effect)

    def _check_left_over(self, worker: Worker, commit: Commit) -> None:
        made = commit.step
        if made and made.inference_id in worker.aborted:
            assert made.state is StepState.CANCELLED, "I2: what came after an abort counted"
        if made and made.state is StepState.FINISHED:
            worker.streamed = ""
        kept = worker.streamed if commit.root_id and commit.ends else ""
        partial = [draft.content for draft in commit.insert if draft.metadata.get("partial")]
        assert partial == ([kept] if kept else []), f"I2, B4, C7: {partial} kept of {kept!r}"

    def tell(self, session: str, event: v.Event) -> None:
        if session in self.workers:
            self.workers[session].inbox.append(event)

    def do_deliver(self, session: str) -> None:
        self.feed(session, self.workers[session].inbox.pop(0))

    def do_say(self, *, file: bool = False) -> None:
        self.posts += 1
        row, new = self.store.post(f"p{self.posts}", file=file)
        if row and new:
            self.tell(row.session, v.PersonSpoke(row.waiting()))

    def do_say_file(self) -> None:
        self.do_say(file=True)

    def do_repost(self, external: str) -> None:
        before = self.store.n
        row, _ = self.store.post(external)
        if row and row.status is Status.PENDING_AGENT:
            self.tell(row.session, v.PersonSpoke(row.waiting()))
        assert self.store.n == before, "M5: a second post started something"

    def do_notice(self, *, wakes: bool = True) -> None:
        row = self.store.notify(self.store.open_room().id, wakes=wakes)
        self.tell(row.session, v.NoticeArrived(row.waiting()))

    def do_passive(self) -> None:
        self.do_notice(wakes=False)

    def do_mode(self, mode: str) -> None:
        self.store.mode = BusyMode(mode)
        for session in self.workers:
            self.tell(session, v.ModeSwitched(self.store.mode))

    def do_stop(self, session: str, reason: Reason = Reason.STOPPED) -> None:
        waited = {row.id for row in self.store.waiting(session)} if "stop-people" not in READINGS else set[str]()
        if stop := self.store.stop(session, reason):
            self.waited[stop.seq] = waited
            self.tell(session, v.StopRequested(stop))

    def do_force(self, session: str) -> None:
        if stop := self.store.force(session):
            self.tell(session, v.StopRequested(stop))
        self.tell(session, v.ForceRequested())

    def do_clear(self, session: str) -> None:
        self.lives -= 1
        self.store.rooms[session].state = SessionState.CLOSED
        self.do_stop(session, Reason.CLEARED)

    def do_wipe(self, session: str) -> None:
        for call in list(self.store.calls.values()):  # a clear ends the jobs of its session first (M7)
            if self.store.rows[call.id].session == session:
                self.store.end_job(call.id, wakes=False)
        self.tools = {call: state for call, state in self.tools.items() if self.store.rows[call].session != session}
        self.store.wipe(session)

    def do_withdraw(self, message: str) -> None:
        session = self.store.rows[message].session
        if self.store.withdraw(message):
            self.tell(session, v.MessageWithdrawn(message))

    def do_file(self, message: str) -> None:
        row = self.store.rows[message]
        if row.file == "expected":
            row.content += " (file)"
        else:
            self.do_passive()
        row.file = "saved"

    def do_shutdown(self) -> None:
        self.lives -= 1
        self.shutting = True
        for session in self.workers:
            self.tell(session, v.ShutdownRequested())

    def do_exit(self) -> None:
        for call, state in self.tools.items():
            if state == "running":
                self.forced.add(call)
                self.store.stage(call, "interrupted")
        self._gone(clean=True)

    def do_crash(self, how: str) -> None:
        self.lives -= 1
        self.unclean = True
        if how == "applied":
            for worker in self.workers.values():
                for commit in worker.commits():
                    self.store.apply(commit)
        self._gone(clean=False)

    def _gone(self, *, clean: bool) -> None:
        self.up, self.shutting = False, False
        self.workers, self.tools, self.ghosts, self.shown = {}, {}, [], {}
        for call in list(self.store.calls):
            self.store.end_job(call, wakes=not clean)
        for session, room in self.store.rooms.items():
            if room.state is not SessionState.TOMBSTONE:
                self._end_runs(session)
                self.store.give_back(session, clean=clean)

    def _end_runs(self, session: str) -> None:
        for call in self.store.calls.values():
            if call.state is CallState.STARTED and self.store.rows[call.id].session == session:
                self.store.stage(call.id, "unknown")

    def do_restart(self, *, late: bool = False) -> None:
        self.up, self.stale = True, late

    def do_restart_late(self) -> None:
        self.do_restart(late=True)

    def do_die(self, session: str, how: str) -> None:
        self.lives -= 1
        self.unclean = True
        worker = self.workers.pop(session)
        self.shown.pop(session, None)
        sent = worker.commits()
        if how == "applied":
            for commit in sent:
                self.store.apply(commit)
        self.store.give_back(session, clean=False)
        if how == "later":
            self.ghosts += sent
        over = [call for call in self._running() if self._root_of(call).status in ENDED]
        if "orphan-tool" not in READINGS:
            self.tools = {call: state for call, state in self.tools.items() if call not in over}
        if "dead-queue" not in READINGS:
            self.tools = {
                call: state
                for call, state in self.tools.items()
                if state == "running" or self.store.rows[call].session != session
            }

    def _running(self) -> Iterator[str]:
        return (call for call, state in self.tools.items() if state == "running")

    def _root_of(self, call: str) -> Row:
        return self.store.rows[self.store.calls[call].root]

    def do_ghost(self, at: str) -> None:
        self.store.apply(self.ghosts.pop(int(at)))

    def do_dispatch(self, session: str) -> None:
        self.do_attach(session)
        self.do_register(session)

    def do_attach(self, session: str) -> None:
        number = self.store.tick()
        key = WorkerKey(session_id=session, epoch=1, worker=number)
        self.workers[session] = Worker(key, begin(key, LIMITS))
        if self.shutting:
            self.tell(session, v.ShutdownRequested())

    def do_register(self, session: str) -> None:
        worker = self.workers[session]
        registered = self.store.register(worker.key)
        worker.registered = True
        worker.inbox.insert(0, v.Resumed(registered, self.stale and bool(registered.returned), ("one", "two")))

    def do_commit(self, session: str) -> None:
        self.do_commit_slow(session)
        self.do_reply(session)

    def do_commit_slow(self, session: str) -> None:
        worker = self.workers[session]
        effect = worker.first(v.SendCommit)
        assert isinstance(effect, v.SendCommit)
        reply = self.store.apply(effect.commit)
        answer = v.CommitStands if isinstance(reply, Committed) else v.CommitRefused
        worker.replies.append(answer(effect.ticket, reply))  # type: ignore[arg-type]  # one class for each reply

    def do_reply(self, session: str) -> None:
        worker = self.workers[session]
        worker.pop(v.SendCommit)
        reply = worker.replies.pop()
        if isinstance(reply, v.CommitStands):
            worker.streamed = ""
        self.feed(session, reply)

    def do_commit_unheard(self, session: str) -> None:
        for commit in self.workers[session].commits():
            self.store.apply(commit)

    def do_prompt(self, session: str) -> None:
        worker = self.workers[session]
        effect = worker.pop(v.BuildPrompt)
        assert isinstance(effect, v.BuildPrompt)
        if effect.ticket == getattr(worker.state.phase, "ticket", None):
            late = tuple(row.id for row in self.store.history(session) if row.file == "expected")
            if not late:
                self.read_prompt(session)
            self.feed(session, v.PromptBuilt(effect.ticket, late))

    def do_model(self, session: str, what: str) -> None:
        worker = self.workers[session]
        effect = worker.first(v.CallModel)
        assert isinstance(effect, v.CallModel)
        if what == "delta":
            if isinstance(worker.state.phase, Inferring):
                worker.streamed += "par"
            return self.feed(session, v.ModelDelta(effect.ticket, "par"))
        if what in REPLIES and isinstance(worker.state.phase, Inferring):
            worker.streamed = ""
        worker.drop(v.CallModel, v.AbortModel)
        return self.feed(session, self._outcome(effect.ticket, what))

    def _outcome(self, ticket: int, what: str) -> v.Event:
        if what in REPLIES:
            return v.ModelFinished(ticket, REPLIES[what], 1.0)
        if what == "no-slot":
            return v.ModelAborted(ticket, "scripted", "one", 0.0)
        remedy = Remedy.TELL if what == "fatal" else Remedy.RETRY
        return v.ModelFailed(ticket, "scripted", "one", "it broke", remedy, None, 0.5, 1.0)

    def do_aborted(self, session: str) -> None:
        effect = self.workers[session].pop(v.AbortModel)
        assert isinstance(effect, v.AbortModel)
        self.workers[session].drop(v.CallModel)
        self.feed(session, v.ModelAborted(effect.ticket, "scripted", "one", 1.0))

    def do_budget(self, session: str) -> None:
        worker = self.workers[session]
        assert worker.budget
        worker.inbox.append(v.BudgetSpent(worker.budget))
        worker.budget = None

    def do_timer(self, session: str) -> None:
        effect = self.workers[session].pop(v.SetTimer)
        assert isinstance(effect, v.SetTimer)
        self.feed(session, v.TimerFired(effect.ticket))

    def do_tool(self, name: str) -> None:
        call = self.store.calls.get(name)
        if call is None or call.state is CallState.SETTLED:
            del self.tools[name]
            return None
        session = self.store.rows[name].session
        if call.invalid:
            return self._settle(name, "error")
        if call.name == "risky" and not call.approved:
            call.state, self.tools[name] = CallState.WAITING, "waiting"
            return self.tell(session, v.ToolWaiting(name))
        assert session in self.workers, "I3, C3: a call starts while nobody could withdraw it"
        return self._start(name)

    def _start(self, name: str) -> None:
        self.store.calls[name].state, self.tools[name] = CallState.STARTED, "running"
        self.runs[name] += 1
        self.tell(self.store.rows[name].session, v.ToolStarted(name))

    def do_approve(self, name: str) -> None:
        call, self.tools[name] = self.store.calls[name], "queued"
        call.approved, call.state = True, CallState.COMMITTED
        if "approve-start" in READINGS:
            self._start(name)

    def do_deny(self, name: str) -> None:
        self._settle(name, "error")

    def do_expire(self, name: str) -> None:
        self._settle(name, "error")

    def do_tool_end(self, name: str, outcome: str) -> None:
        self._settle(name, outcome)

    def _settle(self, name: str, outcome: str) -> None:
        del self.tools[name]
        if self.store.stage(name, outcome):
            self.tell(self.store.rows[name].session, v.ToolSettled(name, Outcome(outcome)))

    def do_withdrawn(self, session: str) -> None:
        effect = self.workers[session].pop(v.WithdrawTools)
        assert isinstance(effect, v.WithdrawTools)
        for name in effect.call_ids:
            if self.store.calls[name].state in (CallState.COMMITTED, CallState.WAITING):
                self.tools.setdefault(name, "queued")
                self._settle(name, "interrupted")

    def do_ended(self, session: str) -> None:
        effect = self.workers[session].pop(v.EndTools)
        assert isinstance(effect, v.EndTools)
        for name in effect.call_ids:
            if self.tools.get(name) == "running":
                self.forced.add(name)
                self._settle(name, "interrupted")

    def _end_jobs(self, root: str) -> None:
        for call in list(self.store.calls.values()):
            if call.root == root:
                self.store.end_job(call.id, wakes=False)

    def do_job_end(self, name: str) -> None:
        self.store.end_job(name, wakes=True)

    # The rules.

    def read_prompt(self, session: str) -> None:
        rows = self.store.history(session)
        assert all(row.content.strip() for row in rows), "P1: empty content in the prompt"
        assert rows[-1].asks or rows[-1].type is Type.TOOL_RESULT, "P1: nothing to answer"
        at = 0
        while at < len(rows):
            batch: list[str] = []
            made_by = rows[at].step
            while at < len(rows) and rows[at].type is Type.TOOL_CALL and rows[at].step == made_by:
                batch.append(rows[at].id)
                at += 1
            results = [row.parent for row in rows[at : at + len(batch)]]
            assert results == batch, f"O3, P1: calls {batch} not followed by their results"
            at += len(batch)
            assert at >= len(rows) or batch or rows[at].type is not Type.TOOL_RESULT, "P1: a result without its call"
            at += not batch
        ids = [row.id for row in rows]
        old = self.read.get(session, [])
        assert ids[: len(old)] == old, f"O1: history read before changed its order: {old} -> {ids}"
        self.read[session] = ids
        skipped = [
            row.id
            for row in self.store.rows.values()
            if row.session == session and row.reason is Reason.SUPERSEDED and row.id not in ids
        ]
        assert not skipped, f"I5: superseded {skipped} not in the prompt"

    def check(self) -> None:
        store = self.store
        assert sum(1 for _ in self._running()) <= SLOTS, "I1: parallel_tools exceeded"
        orphans = [call for call in self._running() if self._root_of(call).status in ENDED]
        assert not orphans, f"I3: the turn is over and its tool {orphans} still runs"
        places = Counter((row.session, row.place) for row in store.rows.values() if row.root)
        assert all(count == 1 for count in places.values()), "O1: a place twice"
        results = Counter(row.parent for row in store.rows.values() if row.type is Type.TOOL_RESULT)
        assert all(count == 1 for count in results.values()), "O4: two results"
        assert all(count <= 1 for count in self.runs.values()), "C3: a call ran twice"
        for session, room in store.rooms.items():
            store.turn(session)
            rows = [row for row in store.rows.values() if row.session == session]
            assert room.state is not SessionState.TOMBSTONE or not rows, "M7: rows after clear"
            assert sum(row.is_person for row in store.waiting(session)) <= MAX_WAITING, "B4: too many wait"
            assert room.self_started <= LIMITS.max_self_started, "I6: too many self-started turns"
        for row in store.rows.values():
            assert row.adopted <= 1, "O1: adopted twice"
            if row.asks:
                self._check_asking(row)
        for call in store.calls.values():
            assert call.job is not JobState.TOLD or store.result(call.id), "I8: the job's notice before its result"
            over = call.job is JobState.OVER and store.result(call.id)
            assert not over, "I8: a job's end is not told although its result is published"
            assert call.staged != "interrupted" or not self.runs[call.id] or call.id in self.forced, (
                "I3: a started call was cancelled"
            )
            assert not (call.invalid and self.runs[call.id]), "P3: a call that cannot be read ran"
        for session, worker in self.workers.items():
            if self.judged:
                self._check_knowledge(session, worker)
        known = [made.inference_id for _, made in store.steps]
        assert len(set(known)) == len(known), "M4: a step twice"
        assert set(known) <= set(self.inferences), "M4: a step of no inference"

    def _check_knowledge(self, session: str, worker: Worker) -> None:
        """Once it has heard everything, the machine knows what is stored (B1)."""
        applied = any(commit.id in self.store.commits for commit in worker.commits())
        if worker.inbox or applied or not worker.registered:
            return
        heard = worker.state.session
        assert heard.mode is self.store.mode, "I5: the machine has another mode"
        assert {row.id for row in self.store.waiting(session)} <= set(heard.waiting), "O2: a message is not known"
        forced = {stop.seq: stop.forced for stop in heard.stops}
        for stop in self.store.open_stops(session):
            assert forced.get(stop.seq, False) >= stop.forced, "I7: a force is not known"
            assert stop.seq in forced, "I7: a stop is not known"
        if isinstance(worker.state.phase, Batch):
            for name, state in worker.state.phase.turn.calls.items():
                settled = self.store.calls[name].state is CallState.SETTLED
                assert settled is (state is CallState.SETTLED), f"O3: call {name} is settled and nobody knows"

    def _check_asking(self, row: Row) -> None:
        store, room = self.store, self.store.rooms[row.session]
        assert row.root is None or row.reason, f"I5: {row.id} has a turn and no reason"
        if row.status is Status.PROCESSING and self.up:
            works = row.claim == room.worker and row.session in self.workers
            assert works, f"C2: nobody works on {row.id}"
        if row.status in ENDED and row.root == row.id:
            assert not store.open_calls(row.id), f"O4: turn {row.id} ended with calls without result"
            answers = sum(each.is_answer and each.root == row.id for each in store.rows.values())
            assert answers == (row.status is Status.PROCESSED), "C4: answer without processed, or the reverse"
        stopped = row.reason in (Reason.STOPPED, Reason.FORCED, Reason.CLEARED)
        if row.root and row.adopted and not stopped:
            assert row.status is store.rows[row.root].status, "I5: a turn's messages differ in status"
        unread = row.id not in self.read.get(row.session, [])
        assert row.reason is not Reason.BUDGET or not unread, f"B4: {row.id} failed for a budget unread"
        if stopped:
            earlier = any(int(row.id) < stop.seq and stop.session_id == row.session for stop in store.stops)
            assert earlier, f"I7: {row.id} is later than every stop"
        waited = any(row.id in ids for ids in self.waited.values())
        assert not (waited and row.status is Status.PROCESSED), f"I7: {row.id} waited at a stop and was answered"

    def settle_down(self) -> None:
        """Nobody interferes any more; everything asked is answered."""
        for _ in range(600):
            todo = self.progress()
            if not todo:
                break
            self.do(todo[0])
        else:
            raise AssertionError(f"livelock: {self.script[-8:]}")
        for row in self.store.rows.values():
            assert not row.is_person or row.status in ENDED, f"liveness: message {row.id} is still {row.status}"
            if row.type is Type.TOOL_CALL:
                assert self.store.result(row.id), f"O4: call {row.id} has no result"
        assert all(stop.done for stop in self.store.stops), "I7: a stop without its end"
        assert all(shown == (Activity.IDLE, None) for shown in self.shown.values()), "a surface still shows work"
        assert self.unclean or len(self.store.steps) == len(self.inferences), "M4: an inference without its step row"


def pick(todo: list[Action], number: int) -> Action:
    """First the kind of action, then which of them."""
    names = list(dict.fromkeys(action[0] for action in todo))
    name = names[number % len(names)]
    ways = [action for action in todo if action[0] == name]
    return ways[number // len(names) % len(ways)]


def replay(script: str, *, judged: bool = True) -> World:
    """Do the actions of a script, as far as they are possible, then let everything settle."""
    world = World(judged=judged)
    for line in script.split(";"):
        action = tuple(line.split())
        if action in world.progress() + world.chaos():
            world.do(action)
    world.settle_down()
    return world
