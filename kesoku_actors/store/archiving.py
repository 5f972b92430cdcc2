"""Reading a session for an export: all its rows in one snapshot. Nothing here writes."""

from __future__ import annotations

import json
from typing import Final

import apsw

from kesoku_actors.protocol import CallState, JobEnding, JobState, Outcome, Role, SessionState, Status, Type
from kesoku_actors.store import queries
from kesoku_actors.store.archive import (
    ArchivedCall,
    ArchivedJob,
    ArchivedMessage,
    ArchivedStep,
    ArchivedSummary,
    ArchivedTurn,
    SessionArchive,
    SessionHead,
)
from kesoku_actors.store.rows import step_of
from kesoku_actors.store.sql import select

_MESSAGES: Final = (
    "SELECT id, seq, place, root_id, parent_id, external_id, sender, role, type, status, content, timestamp, metadata"
    " FROM messages WHERE session_no = ? ORDER BY seq"
)
_TURNS: Final = (
    "SELECT m.id, t.began, t.attempts, t.steps, t.spent_s FROM turns t JOIN messages m ON m.seq = t.root_seq"
    " WHERE t.session_no = ? ORDER BY t.root_seq"
)
_STEPS: Final = "SELECT root_id, number, step, message_ids FROM steps WHERE session_no = ? ORDER BY root_seq, number"
_CALLS: Final = (
    "SELECT id, state, outcome, content, duration_s, metadata, published, expires, decided_by"
    " FROM calls WHERE session_no = ? ORDER BY seq"
)
_JOBS: Final = (
    "SELECT call_id, number, title, output_file, state, began, ended, ending, detail, notice"
    " FROM jobs WHERE session_no = ? ORDER BY number"
)
_SUMMARIES: Final = (
    "SELECT id, level, first_root_seq, first_place, last_root_seq, last_place, content, parent_id, provider, model,"
    " created, tokens_before, tokens_after FROM summaries WHERE session_no = ?"
    " ORDER BY first_root_seq, first_place, level DESC"
)


def archive(connection: apsw.Connection, session_id: str) -> SessionArchive | None:
    """Return an open session whole; none for one that is unknown or being cleared."""
    info, no = queries.session(connection, session_id), queries.session_no(connection, session_id)
    if info is None or info.state is not SessionState.OPEN:
        return None
    return SessionArchive(
        head=SessionHead(
            id=info.id,
            chatbot_id=info.chatbot_id,
            channel_id=info.channel_id,
            created=info.created,
            last_activity=info.last_activity,
            turns=info.turns,
            title=info.title,
        ),
        messages=_messages(connection, no),
        turns=tuple(
            ArchivedTurn(root_id=root_id, began=began, attempts=attempts, steps=steps, spent_s=spent_s)
            for root_id, began, attempts, steps, spent_s in select(connection, _TURNS, (no,))
        ),
        steps=tuple(
            ArchivedStep(root_id=stored.root_id, index=stored.index, step=stored.step, message_ids=stored.message_ids)
            for stored in (step_of(*row) for row in select(connection, _STEPS, (no,)))
        ),
        calls=_calls(connection, no),
        jobs=_jobs(connection, no),
        summaries=_summaries(connection, no),
    )


def _messages(connection: apsw.Connection, no: int | None) -> tuple[ArchivedMessage, ...]:
    return tuple(
        ArchivedMessage(
            id=id,
            seq=seq,
            place=place,
            root_id=root_id,
            parent_id=parent_id,
            external_id=external_id,
            sender=sender,
            role=Role(role),
            type=Type(type),
            status=Status(status),
            content=content,
            timestamp=timestamp,
            metadata=json.loads(metadata),
        )
        for (
            id,
            seq,
            place,
            root_id,
            parent_id,
            external_id,
            sender,
            role,
            type,
            status,
            content,
            timestamp,
            metadata,
        ) in select(connection, _MESSAGES, (no,))
    )


def _calls(connection: apsw.Connection, no: int | None) -> tuple[ArchivedCall, ...]:
    return tuple(
        ArchivedCall(
            call_id=id,
            state=CallState(state),
            outcome=None if outcome is None else Outcome(outcome),
            content=content,
            duration_s=duration_s,
            metadata=None if metadata is None else json.loads(metadata),
            is_published=bool(published),
            expires=expires,
            decided_by=decided_by,
        )
        for id, state, outcome, content, duration_s, metadata, published, expires, decided_by in select(
            connection, _CALLS, (no,)
        )
    )


def _jobs(connection: apsw.Connection, no: int | None) -> tuple[ArchivedJob, ...]:
    return tuple(
        ArchivedJob(
            call_id=call_id,
            number=number,
            title=title,
            output_file=output_file,
            state=JobState(state),
            began=began,
            ended=ended,
            ending=None if ending is None else JobEnding(ending),
            detail=detail,
            notice=notice,
        )
        for call_id, number, title, output_file, state, began, ended, ending, detail, notice in select(
            connection, _JOBS, (no,)
        )
    )


def _summaries(connection: apsw.Connection, no: int | None) -> tuple[ArchivedSummary, ...]:
    return tuple(
        ArchivedSummary(
            id=id,
            level=level,
            first=(first_root, first_place),
            last=(last_root, last_place),
            content=content,
            parent_id=parent_id,
            provider=provider,
            model=model,
            created=created,
            tokens_before=before,
            tokens_after=after,
        )
        for (
            id,
            level,
            first_root,
            first_place,
            last_root,
            last_place,
            content,
            parent_id,
            provider,
            model,
            created,
            before,
            after,
        ) in select(connection, _SUMMARIES, (no,))
    )
