"""M1 to M4: what a message value may be, and how it may move."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.protocol import (
    ENDED,
    FAMILIES,
    MOVES,
    Draft,
    Inbound,
    InvalidMessage,
    Message,
    Outcome,
    Role,
    Status,
    Type,
    decode,
    make_converter,
)

CALL = {"tool_name": "echo", "tool_arguments": {"text": "x"}, "tool_call_id": "c1"}
RESULT = {"tool_name": "echo", "tool_call_id": "c1", "outcome": "ok"}
SENDERS = {Role.USER: "Ada", Role.ASSISTANT: "Kesoku", Role.TOOL: "echo", Role.SYSTEM: "System"}
DATA: dict[Type, dict[str, Any]] = {Type.TOOL_CALL: CALL, Type.TOOL_RESULT: RESULT}


def message(role: Role, type: Type, status: Status, **changes: Any) -> Message:
    values: dict[str, Any] = {
        "id": "m",
        "seq": 1,
        "rev": 1,
        "session_id": "s",
        "chatbot_id": "bot",
        "channel_id": "room",
        "sender": SENDERS[role],
        "role": role,
        "type": type,
        "status": status,
        "content": "text",
        "parent_id": "p",
        "timestamp": 1.0,
        "metadata": DATA.get(type, {}),
    }
    return Message(**values | changes)


@pytest.mark.parametrize(("role", "type", "status"), list(product(Role, Type, Status)))
def test_role_type_and_status_fit_or_the_value_cannot_be_made(role: Role, type: Type, status: Status) -> None:
    if status in FAMILIES.get((role, type), ()):
        assert message(role, type, status).status is status
    else:
        with pytest.raises(InvalidMessage, match="M2"):
            message(role, type, status)


@pytest.mark.parametrize("role", [Role.ASSISTANT, Role.SYSTEM])
def test_only_the_agent_speaks_as_kesoku_and_only_the_system_as_system(role: Role) -> None:
    with pytest.raises(InvalidMessage, match="M3"):
        message(role, Type.TEXT, Status.PENDING, sender="Ada")


def test_a_person_has_a_name() -> None:
    with pytest.raises(InvalidMessage, match="M3"):
        Inbound(chatbot_id="bot", channel_id="room", content="hi", sender=" ")


@pytest.mark.parametrize("key", sorted(CALL))
def test_a_call_carries_its_name_arguments_and_id(key: str) -> None:
    data = {name: value for name, value in CALL.items() if name != key}
    with pytest.raises(InvalidMessage, match="M4"):
        message(Role.ASSISTANT, Type.TOOL_CALL, Status.RESPONDED, metadata=data)


def test_a_result_has_a_known_outcome_and_its_call_as_parent() -> None:
    for outcome in Outcome:
        message(Role.TOOL, Type.TOOL_RESULT, Status.RESPONDED, metadata=RESULT | {"outcome": outcome})
    with pytest.raises(InvalidMessage, match="outcome"):
        message(Role.TOOL, Type.TOOL_RESULT, Status.RESPONDED, metadata=RESULT | {"outcome": "maybe"})
    with pytest.raises(InvalidMessage, match="parent"):
        message(Role.TOOL, Type.TOOL_RESULT, Status.RESPONDED, parent_id=None)


@pytest.mark.parametrize(("now", "then"), list(product(Status, Status)))
def test_a_status_moves_only_along_the_table(now: Status, then: Status) -> None:
    role = Role.USER if now in FAMILIES[Role.USER, Type.TEXT] else Role.ASSISTANT
    before = message(role, Type.TEXT, now)
    if (now, then) in MOVES:
        assert before.moved(then, rev=2).rev == 2
    else:
        with pytest.raises(InvalidMessage, match="M2"):
            before.moved(then)


def test_nothing_leaves_a_terminal_status() -> None:
    assert not [now for now, _ in MOVES if now in ENDED]


def test_metadata_is_a_json_object() -> None:
    with pytest.raises(InvalidMessage, match="M1"):
        message(Role.USER, Type.TEXT, Status.PROCESSED, metadata=[1])


def test_a_draft_obeys_the_same_rules() -> None:
    with pytest.raises(InvalidMessage, match="M2"):
        Draft(role=Role.TOOL, type=Type.TEXT, status=Status.RESPONDED, sender="x", content="")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(), st.dictionaries(st.text(), JSON, max_size=3))
def test_a_message_survives_the_codec(content: str, metadata: dict[str, Any]) -> None:
    before = message(Role.USER, Type.TEXT, Status.PROCESSING, content=content, metadata=metadata)
    converter = make_converter()
    assert decode(converter, converter.unstructure(before), Message) == before
