"""Import: sessions of an export become rows of this store, all of them or none.

Invariants:

* ids are kept and none may be there already; numbers are given anew, in the order they had (M1, O1);
* nothing imported is live: a turn that was open, and what waited, is `interrupted`, what was on its way to people is
  `undeliverable`, both with the reason `imported`; every call has its result then (O4), a job that ran is
  lost, and a file that was on its way is late (M8);
* external ids count as seen (M5), so that a platform that sends one again starts nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kesoku_actors.errors import UsageError
from kesoku_actors.protocol import Reason, SessionState, Status
from kesoku_actors.store import queries
from kesoku_actors.store.attachments import settle_as_late
from kesoku_actors.store.jobs import tell_end
from kesoku_actors.store.port import Ending, Imported, ImportSessions
from kesoku_actors.store.rows import step_to_json, to_json
from kesoku_actors.store.transaction import Session, Transaction
from kesoku_actors.store.turns import end, moved, publish_results, stored

if TYPE_CHECKING:
    from kesoku_actors.store.archive import SessionArchive, SessionHead

_INSERT_MESSAGE: Final = "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_CALL: Final = (
    "INSERT INTO calls (id, session_no, root_seq, seq, state, outcome, content, duration_s, metadata, published,"
    " expires, decided_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_JOB: Final = "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, '', ?, ?, ?, ?, ?)"
_LOSE_JOBS: Final = (
    "UPDATE jobs SET state = 'told', ending = 'lost', ended = began, detail = 'imported'"
    " WHERE session_no = ? AND state = 'running'"
)
_EXPECTING: Final = (
    "SELECT m.id FROM messages m WHERE m.session_no = ? AND EXISTS"
    " (SELECT 1 FROM json_each(m.metadata, '$.attachments') WHERE value ->> '$.state' = 'expected') ORDER BY m.seq"
)
_INSERT_SUMMARY: Final = (
    "INSERT INTO summaries (id, session_no, level, first_root_seq, first_place, last_root_seq, last_place, content,"
    " parent_id, provider, model, created, tokens_before, tokens_after)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class AlreadyThere(UsageError):
    """An id of the import is in the store already."""


def import_sessions(tx: Transaction, command: ImportSessions) -> Imported:
    """Insert every session. Raises `AlreadyThere`, and whatever the iteration of the sessions raises."""
    done = Imported(sessions=0, messages=0, interrupted=0, undeliverable=0)
    for archive in command.sessions:
        session = _open(tx, archive.head)
        _check_new(tx, archive)
        _insert(tx, session, archive)
        interrupted, undeliverable = _settle(tx, session)
        session.self_started, session.turns, session.title = 0, archive.head.turns, archive.head.title
        done = Imported(
            sessions=done.sessions + 1,
            messages=done.messages + len(archive.messages),
            interrupted=done.interrupted + interrupted,
            undeliverable=done.undeliverable + undeliverable,
        )
        tx.write_sessions()
        tx.forget()
        tx.begin_command()  # nobody listens to a store that is being imported into, and a whole one fits in no memory
    return done


def _open(tx: Transaction, head: SessionHead) -> Session:
    """Make the session's row, in the place of a tombstone if it was cleared here."""
    known = tx.known_session(head.id)
    if known is not None and known.state is not SessionState.TOMBSTONE:
        raise AlreadyThere(f"the session {head.id} is in this store already; nothing was imported")
    key = (head.chatbot_id, head.channel_id)
    other = tx.open_session(*key)
    if other is not None:
        raise AlreadyThere(
            f"the channel {head.chatbot_id}/{head.channel_id} of the session {head.id} has an open session here,"
            f" {other.id} (M6); nothing was imported: clear that one first"
        )
    if known is not None:
        tx.delete_session(known)
    columns = "(id, chatbot_id, channel_id, state, created, last_activity)"
    values = (head.id, *key, head.created, head.last_activity)
    tx.execute(f"INSERT INTO sessions {columns} VALUES (?, ?, ?, 'open', ?, ?)", values)
    return tx.session(head.id)


def _check_new(tx: Transaction, archive: SessionArchive) -> None:
    for message in archive.messages:
        if tx.first("SELECT 1 FROM messages WHERE id = ?", (message.id,)):
            raise AlreadyThere(f"the message {message.id} is in this store already; nothing was imported")
        if message.external_id is None:
            continue
        key = (archive.head.chatbot_id, message.external_id)
        row = tx.first("SELECT message_id FROM seen WHERE chatbot_id = ? AND external_id = ?", key)
        if row is not None and row[0] not in (None, message.id) and tx.get(row[0]) is not None:
            raise AlreadyThere(
                f"{archive.head.chatbot_id} sent {message.external_id!r:.80} to this store already, as {row[0]} (M5);"
                " nothing was imported"
            )
    for summary in archive.summaries:
        if tx.first("SELECT 1 FROM summaries WHERE id = ?", (summary.id,)):
            raise AlreadyThere(f"the summary {summary.id} is in this store already; nothing was imported")


def _insert(tx: Transaction, session: Session, archive: SessionArchive) -> None:
    number = {old: tx.tick() for old in archive.numbers()}
    seq = {message.id: number[message.seq] for message in archive.messages}
    for message in archive.messages:
        place = None if message.place is None else number[message.place]
        root_seq = None if message.root_id is None else seq[message.root_id]
        row = (number[message.seq], max(number[message.seq], place or 0), session.no, root_seq, place)
        names = (message.id, message.external_id, message.sender, message.role, message.type, message.status)
        rest = (message.content, message.parent_id, message.root_id, message.timestamp, to_json(message.metadata))
        tx.execute(_INSERT_MESSAGE, (*row, *names, *rest))
        if message.external_id is not None:
            seen = (session.channel.chatbot_id, message.external_id, message.id)
            tx.execute("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", seen)
    for turn in archive.turns:
        values = (session.no, seq[turn.root_id], turn.began, turn.attempts, turn.steps, turn.spent_s)
        tx.execute("INSERT INTO ended_turns VALUES (?, ?, ?, ?, ?, ?)", values)
    for step in archive.steps:
        key = (session.no, seq[step.root_id], step.index)
        told = (step.root_id, step_to_json(step.step), to_json(step.message_ids))
        tx.execute("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?)", (*key, *told))
    for call in archive.calls:
        staged = None if call.metadata is None else to_json(call.metadata)
        named = (call.call_id, session.no, seq[archive.root_of(call.call_id)], seq[call.call_id])
        stands = (call.state, call.outcome, call.content, call.duration_s, staged, call.is_published)
        tx.execute(_INSERT_CALL, (*named, *stands, call.expires, call.decided_by))
    for job in archive.jobs:
        of = (session.no, job.number, job.call_id, seq[archive.root_of(job.call_id)])
        runs = (job.title, job.output_file, job.state, job.began, job.ended, job.ending, job.detail, job.notice)
        tx.execute(_INSERT_JOB, (*of, *runs))
    for summary in archive.summaries:
        spots = tuple(number[each] for each in summary.first + summary.last)
        words = (summary.content, summary.parent_id, summary.provider, summary.model)
        counts = (summary.created, summary.tokens_before, summary.tokens_after)
        tx.execute(_INSERT_SUMMARY, (summary.id, session.no, summary.level, *spots, *words, *counts))


def _settle(tx: Transaction, session: Session) -> tuple[int, int]:
    """End what is live; return how many messages were interrupted, and how many will not be delivered."""
    turn = queries.turn(tx.connection, session.no)
    root = stored(tx, turn[0].root_id or turn[0].id) if turn else None
    tx.execute(_LOSE_JOBS, (session.no,))
    for (root_id,) in tx.select(
        "SELECT DISTINCT m.id FROM calls c JOIN messages m ON m.seq = c.root_seq"
        " WHERE c.session_no = ? AND c.published = 0 ORDER BY c.root_seq",
        (session.no,),
    ):
        publish_results(tx, session, stored(tx, root_id), only_staged=False)
    for (call_id,) in tx.select("SELECT call_id FROM jobs WHERE session_no = ? AND state = 'over'", (session.no,)):
        tell_end(tx, session, call_id)
    for (message_id,) in tx.select(_EXPECTING, (session.no,)):
        settle_as_late(tx, stored(tx, message_id))
    waiting = [each.id for each in queries.waiting(tx.connection, session.no)]
    for message_id in [*(message.id for message in turn), *waiting]:
        end(tx, session, Ending(message_id=message_id, status=Status.INTERRUPTED, reason=Reason.IMPORTED), root)
    leaving = tx.select("SELECT id FROM messages WHERE session_no = ? AND status = 'pending'", (session.no,))
    for (message_id,) in leaving:
        tx.save(moved(stored(tx, message_id), Status.UNDELIVERABLE, Reason.IMPORTED))
    return len(turn) + len(waiting), len(leaving)
