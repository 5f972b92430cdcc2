"""Where a talk takes place, as the adapter noted it with the first message of a person."""

from __future__ import annotations

from typing import Any

import pytest

from kesoku_actors.prompt import Place, place_in
from kesoku_actors.protocol import SYSTEM, Message, Role, Status, Type


def row(metadata: dict[str, Any], role: Role = Role.USER) -> Message:
    return Message(
        id="m",
        seq=1,
        rev=1,
        session_id="s",
        chatbot_id="bot",
        channel_id="room",
        sender="Ada" if role is Role.USER else SYSTEM,
        role=role,
        type=Type.TEXT,
        status=Status.PROCESSED,
        content="hello",
        root_id="m",
        place=1,
        timestamp=0.0,
        metadata=metadata,
    )


GENERAL = {"place": {"channel": "general", "server": "Gardeners", "person": "Ada"}}


def test_names_stand_from_the_widest_to_the_narrowest() -> None:
    assert place_in([row(GENERAL)]) == Place(names=(("server", "Gardeners"), ("channel", "general"), ("person", "Ada")))


def test_the_first_message_of_a_person_decides_so_that_a_rename_changes_no_prompt() -> None:
    renamed = {"place": {"channel": "renamed"}}
    notice = row(renamed, Role.SYSTEM)
    assert place_in([notice, row(GENERAL), row(renamed)]) == place_in([row(GENERAL)])


@pytest.mark.parametrize(
    "metadata", [{}, {"place": None}, {"place": "general"}, {"place": {"channel": 7, "mood": "good", "thread": " "}}]
)
def test_what_names_no_place_is_no_place(metadata: dict[str, Any]) -> None:
    assert place_in([row(metadata)]) is None


def test_an_empty_history_has_no_place() -> None:
    assert place_in([]) is None
