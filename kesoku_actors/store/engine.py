"""The engine: one group of commands as one transaction of one connection. Synchronous; knows nothing of tasks.

One that is refused for its own fault leaves the others alone: the group is begun again, each command in a savepoint of
its own. A command alone is not begun again, for what it brings may be read only once. What is the database's fault
(busy, full, damaged) is not caught here: the group is rolled back and the error raised, and the caller knows that
nothing of it happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import apsw
from attrs import Factory, evolve, field

from kesoku_actors.clock import Clock
from kesoku_actors.errors import KesokuError
from kesoku_actors.protocol import InvalidMessage
from kesoku_actors.store import (
    approvals,
    attachments,
    calls,
    commits,
    deliveries,
    imports,
    jobs,
    port,
    posting,
    sessions,
    spending,
    stops,
    summaries,
    titles,
    workers,
)
from kesoku_actors.store.memory import Memory
from kesoku_actors.store.queries import head
from kesoku_actors.store.transaction import Changes, Rules, Transaction
from kesoku_actors.values import define, frozen

Handler = Callable[[Transaction, Any], object]
"""Carries out one kind of command; which kind is the table's to say."""

HANDLERS: Final[Mapping[type[port.Command], Handler]] = MappingProxyType(
    {
        port.Post: posting.post,
        port.PostNotice: posting.post_notice,
        port.EditMessage: posting.edit,
        port.WithdrawMessage: posting.withdraw,
        port.SettleAttachment: attachments.settle,
        port.RequestStop: stops.request_stop,
        port.RequestForce: stops.request_force,
        port.CloseSession: sessions.close_session,
        port.WipeSession: sessions.wipe_session,
        port.SetMode: sessions.set_mode,
        port.ChooseModel: sessions.choose_model,
        port.ReserveSpending: spending.reserve,
        port.SettleSpending: spending.settle,
        port.SetTitle: titles.set_title,
        port.ImportSessions: imports.import_sessions,
        port.BeginEpoch: workers.begin_epoch,
        port.RegisterWorker: workers.register,
        port.GiveBack: workers.end_worker,
        port.Commit: commits.commit,
        port.CallStarted: calls.start,
        port.CallWaiting: approvals.wait,
        port.CallExpired: approvals.expire,
        port.CallProcess: calls.record_process,
        port.StageOutcome: calls.stage,
        port.BeginJob: jobs.begin_job,
        port.EndJob: jobs.end_job,
        port.AnswerApproval: approvals.answer,
        port.PlanDelivery: deliveries.plan,
        port.ChunkAttempt: deliveries.attempt,
        port.ChunkSent: deliveries.sent,
        port.MarkDelivered: deliveries.mark,
        port.StoreSummaries: summaries.store_summaries,
    }
)

_UNFIT: Final = (UnicodeEncodeError, OverflowError, apsw.TooBigError)
"""Text that is not Unicode, a number of more than 64 bits, more than SQLite takes: the command is at fault."""


_PARTS: Final = ("late", "step", "insert", "results", "ends", "adopt", "claim", "give_back")
"""The parts of a `Commit`, by which the points of its kinds are told apart."""


@frozen
class Failed:
    """A command refused for its own fault: the error its asker gets."""

    error: KesokuError


@define(eq=False, kw_only=True)
class Engine:
    """One connection that writes, and what its transactions need."""

    connection: apsw.Connection
    clock: Clock
    ids: Callable[[], str]
    rules: Rules
    life: str
    probe: Callable[[str], None]
    _counter: int | None = None
    """As committed last; none before the first group and after one that failed: then it is read."""
    memory: Memory = field(default=Factory(lambda self: Memory.of(self.connection), takes_self=True), init=False)

    def run(self, commands: Sequence[port.Command]) -> tuple[list[object], port.Publication | None]:
        """Commit a group; return the replies in order (`Failed` for a refused one) and what changed, if anything.

        Raises `apsw.Error` when the database failed: then nothing was kept.
        """
        kinds = tuple(dict.fromkeys(map(_kind, commands)))
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            counter, self._counter = self._counter if self._counter is not None else head(self.connection), None
            tx, replies, changes = self._together(commands, counter)
            if tx.keeps_counter:
                self.connection.execute("UPDATE meta SET value = ? WHERE name = 'counter'", (tx.counter,))
            self._pass("store.before_commit", kinds)
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise
        self._counter = tx.counter
        tx.keep()
        self._pass("store.after_commit", kinds)
        return replies, changes.publication(counter, tx.counter) if changes.are_any else None

    def from_memory(self, commands: Sequence[port.Command]) -> Sequence[object] | None:
        """Return the replies to commands of which none needs the database; none where one does: nothing is done then.

        It takes no transaction and no thread, and is called while no group runs.
        """
        simple = [each for each in commands if isinstance(each, port.RegisterWorker)]
        if len(simple) < len(commands) or not all(workers.is_simple(self.memory, each) for each in simple):
            return None
        self.memory.drop()
        replies = [workers.register_simply(self.memory, self.rules, each) for each in simple]
        self.memory.keep((), ())
        return replies

    def beginning(self) -> port.Publication:
        """Return a publication of nothing, with the counter as it is, which tells that the store begins."""
        counter = head(self.connection)
        return evolve(Changes().publication(counter, counter), begins=True)

    def _pass(self, point: str, kinds: tuple[str, ...]) -> None:
        """Tell the probe the point, then the point of each kind of command in the group."""
        self.probe(point)
        for kind in kinds:
            self.probe(f"{point}/{kind}")

    def _begin(self, counter: int) -> Transaction:
        self.memory.drop()
        return Transaction(
            connection=self.connection,
            clock=self.clock,
            ids=self.ids,
            rules=self.rules,
            life=self.life,
            counter=counter,
            memory=self.memory,
        )

    def _together(self, commands: Sequence[port.Command], counter: int) -> tuple[Transaction, list[object], Changes]:
        """Carry out all commands, of which hardly ever one fails; if one does, begin again with each apart."""
        tx, changes, replies = self._begin(counter), Changes(), list[object]()
        try:
            for command in commands:
                tx.begin_command()
                replies.append(HANDLERS[type(command)](tx, command))
                changes.absorb(tx.changes)
            tx.write_sessions()
        except (KesokuError, *_UNFIT) as error:
            self.connection.execute("ROLLBACK")
            self.connection.execute("BEGIN IMMEDIATE")
            tx, changes = self._begin(counter), Changes()
            if len(commands) == 1:
                return tx, [_refusal(commands[0], error)], changes
            return tx, [self._apart(tx, command, changes) for command in commands], changes
        return tx, replies, changes

    def _apart(self, tx: Transaction, command: port.Command, changes: Changes) -> object:
        """Carry out one command of several: what it fails with is no concern of the others."""
        counter, mark = tx.counter, self.memory.mark()
        tx.begin_command()
        tx.forget()
        tx.execute("SAVEPOINT command")
        try:
            reply = HANDLERS[type(command)](tx, command)
            tx.write_sessions()
        except (KesokuError, *_UNFIT) as error:
            tx.execute("ROLLBACK TO command")
            tx.execute("RELEASE command")
            tx.forget()
            self.memory.back_to(mark)
            tx.counter = counter
            return _refusal(command, error)
        tx.execute("RELEASE command")
        changes.absorb(tx.changes)
        return reply


def _kind(command: port.Command) -> str:
    """Return the name of the command; of a worker's commit also what it carries, as `Commit(step insert)`."""
    name = type(command).__name__
    if not isinstance(command, port.Commit):
        return name
    parts = {part: getattr(command, part) for part in _PARTS}
    return f"{name}({' '.join(part for part, value in parts.items() if value and value != port.ResultMode.NONE)})"


def _refusal(command: port.Command, error: Exception) -> object:
    if not isinstance(error, KesokuError):
        error = InvalidMessage(f"M1: a value cannot be stored: {error}")
    return commits.invalid(str(error)) if isinstance(command, port.Commit) else Failed(error)
