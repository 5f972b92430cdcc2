"""Values for the tests of this package: rows of a history, as the store would give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kesoku_actors.llm.port import Piece, Request, StepContent
from kesoku_actors.protocol import AGENT, SYSTEM, Message, Outcome, Role, Status, ToolSchema, Type

DATE_TOOL = ToolSchema(
    name="date",
    description="Tells the date.",
    parameters={"type": "object", "properties": {"zone": {"type": "string"}}},
)


def row(
    number: int,
    role: Role,
    type: Type,
    status: Status,
    sender: str,
    content: str,
    metadata: Mapping[str, Any] = {},
    parent: str | None = None,
) -> Message:
    """Return a stored row; its id is made from its number."""
    return Message(
        id=f"m{number}",
        seq=number,
        rev=number,
        session_id="s",
        chatbot_id="c",
        channel_id="h",
        sender=sender,
        role=role,
        type=type,
        status=status,
        content=content,
        parent_id=parent,
        root_id="m1",
        place=number,
        timestamp=float(number),
        metadata=metadata,
    )


def said(number: int, content: str, sender: str = "User") -> Message:
    """Return a person's message."""
    return row(number, Role.USER, Type.TEXT, Status.PROCESSED, sender, content)


def notice(number: int, content: str) -> Message:
    """Return a notice for the model."""
    return row(number, Role.SYSTEM, Type.TEXT, Status.PROCESSED, SYSTEM, content)


def answered(number: int, content: str, **metadata: Any) -> Message:
    """Return a text of the model."""
    return row(number, Role.ASSISTANT, Type.TEXT, Status.RESPONDED, AGENT, content, metadata)


def thought(number: int, content: str) -> Message:
    """Return a thought of the model."""
    return row(number, Role.ASSISTANT, Type.THOUGHT, Status.RESPONDED, AGENT, content)


def called(number: int, name: str = "date", call_id: str = "", **arguments: Any) -> Message:
    """Return a tool call; `call_id` is the provider's."""
    metadata = {"tool_name": name, "tool_arguments": arguments, "tool_call_id": call_id}
    return row(number, Role.ASSISTANT, Type.TOOL_CALL, Status.RESPONDED, AGENT, "", metadata)


def result(number: int, call: Message, content: str, outcome: Outcome = Outcome.OK) -> Message:
    """Return the result of that call."""
    metadata = {
        "tool_name": call.metadata["tool_name"],
        "tool_call_id": call.metadata["tool_call_id"],
        "outcome": outcome,
    }
    name = call.metadata["tool_name"]
    return row(number, Role.TOOL, Type.TOOL_RESULT, Status.RESPONDED, name, content, metadata, call.id)


def asking(*history: Message, steps: tuple[StepContent, ...] = (), **changes: Any) -> Request:
    """Return a request with this history."""
    return Request(
        **{"inference_id": "i1", "session_id": "s", "system": "Be brief.", "history": history, "steps": steps} | changes
    )


def ignore(piece: Piece) -> None:
    """Take a piece and forget it."""
