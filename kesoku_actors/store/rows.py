"""Rows and values: how messages, steps, stops and chunks stand in the database. Pure.

A row was checked when it was written, so `message_of` fills a `Message` without checking it again: that is 40 % of
what reading a history costs. Rows are only ever written from checked values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final

from attrs import asdict, fields

from kesoku_actors.protocol import (
    Approval,
    InvalidMessage,
    Job,
    JobEnding,
    JobState,
    Message,
    Reason,
    Role,
    Status,
    Step,
    StepState,
    Stop,
    StoredStep,
    Type,
    Usage,
)
from kesoku_actors.store.port import Chunk
from kesoku_actors.store.sql import Row

MESSAGE_COLUMNS: Final = (
    "m.id, m.seq, m.rev, s.id, s.chatbot_id, s.channel_id, m.external_id, m.sender, m.role, m.type, m.status,"
    " m.content, m.parent_id, m.root_id, m.place, m.timestamp, m.metadata"
)
"""In the order of the fields of `Message`; `m` is messages, `s` its session."""

STOP_COLUMNS: Final = "t.seq, s.id, t.root_id, t.reason, t.requested, t.forced, t.done"
JOB_COLUMNS: Final = "j.number, s.id, j.call_id, j.title, j.state, j.began, j.ended, j.ending, j.detail, j.output_file"
CHUNK_COLUMNS: Final = "message_id, number, content, state, attempts, nonce, remote_id"

_ROLES: Final = {str(role): role for role in Role}
_TYPES: Final = {str(type): type for type in Type}
_STATUSES: Final = {str(status): status for status in Status}
_FILL: Final[tuple[Callable[[Message, Any], None], ...]] = tuple(
    getattr(Message, attribute.name).__set__ for attribute in fields(Message)
)
_NAMES: Final = tuple(attribute.name for attribute in fields(Message))
_INDEX: Final = {name: index for index, name in enumerate(_NAMES)}
_READ: Final = attrgetter(*_NAMES)


def _plain(value: object) -> object:
    """What JSON does not know but means: any mapping is an object."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is none")


_ENCODER: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"), default=_plain)


def message_of(row: Row) -> Message:
    """Return the message of a row of `MESSAGE_COLUMNS`."""
    values = list(row)
    values[8], values[9], values[10] = _ROLES[row[8]], _TYPES[row[9]], _STATUSES[row[10]]
    values[16] = {} if row[16] == "{}" else json.loads(row[16])
    return filled(values)


def filled(values: Iterable[Any]) -> Message:
    """Return the message with these values, in the order of its fields; they were checked."""
    message = Message.__new__(Message)
    for fill, value in zip(_FILL, values, strict=True):
        fill(message, value)
    return message


def changed(message: Message, **fields: Any) -> Message:
    """Return a message with other values in some fields, which must fit the rest: nothing is checked again.

    For what a transaction changes of a row: to check all of it would take three times as long.
    """
    values = list(_READ(message))
    for name, value in fields.items():
        values[_INDEX[name]] = value
    return filled(values)


def to_json(value: Mapping[str, Any] | Iterable[Any]) -> str:
    """Return `value` as JSON. Raises `InvalidMessage` for what is not JSON data (M1)."""
    try:
        return "{}" if value == {} else _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidMessage(f"M1: metadata is JSON data: {error}") from None


def step_to_json(step: Step) -> str:
    """Return a step as it is stored."""
    return to_json({**asdict(step, recurse=False), "usage": asdict(step.usage)})


def step_of(root_id: str, index: int, step: str, message_ids: str) -> StoredStep:
    """Return a step as it was stored."""
    data = json.loads(step)
    data["state"] = StepState(data["state"])
    data["usage"] = Usage(**data["usage"])
    return StoredStep(root_id=root_id, index=index, step=Step(**data), message_ids=tuple(json.loads(message_ids)))


def stop_of(row: Row, covers: Iterable[str]) -> Stop:
    """Return the stop of a row of `STOP_COLUMNS` and the ids it covers."""
    seq, session_id, root_id, reason, requested, forced, done = row
    return Stop(
        seq=seq,
        session_id=session_id,
        root_id=root_id,
        covers=frozenset(covers),
        reason=Reason(reason),
        requested=requested,
        forced=bool(forced),
        done=bool(done),
    )


def chunk_of(row: Row) -> Chunk:
    """Return the chunk of a row of `CHUNK_COLUMNS`."""
    message_id, index, content, state, attempts, nonce, remote_id = row
    return Chunk(
        message_id=message_id,
        index=index,
        content=content,
        state=state,
        attempts=attempts,
        nonce=nonce,
        remote_id=remote_id,
    )


def job_of_row(row: Row) -> Job:
    """Return the job of a row that begins with `JOB_COLUMNS`."""
    number, session_id, call_id, title, state, began, ended, ending, detail, output_file = row[:10]
    return Job(
        number=number,
        session_id=session_id,
        call_id=call_id,
        title=title,
        state=JobState(state),
        began=began,
        ended=ended,
        ending=None if ending is None else JobEnding(ending),
        detail=detail,
        output_file=output_file,
    )


def approval_of(row: Row) -> Approval:
    """Return the approval of a row of call, session, root, metadata of the call, expiry and parts."""
    call_id, session_id, root_id, metadata, expires, parts = row
    call = json.loads(metadata)
    return Approval(
        call_id=call_id,
        session_id=session_id,
        root_id=root_id,
        tool=call["tool_name"],
        arguments=call["tool_arguments"],
        expires=expires,
        parts=None if parts is None else tuple(json.loads(parts)),
    )
