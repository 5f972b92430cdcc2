"""O1 and M8: a history keeps the newest state of each row, and knows which still await a file."""

from __future__ import annotations

from itertools import permutations

import pytest

from kesoku_actors.protocol import Message, Role, Status, Type, expected
from kesoku_actors.session.history import History

WAITS = {"attachments": [expected("a.png").as_data()]}
SAVED = {"attachments": [{"filename": "a.png", "mime_type": "image/png", "path": "attachments/a.png"}]}


def row(rev: int, content: str, metadata: dict[str, object]) -> Message:
    return Message(
        id="m",
        seq=1,
        rev=rev,
        session_id="s",
        chatbot_id="bot",
        channel_id="room",
        sender="Ada",
        role=Role.USER,
        type=Type.TEXT,
        status=Status.PROCESSING,
        content=content,
        root_id="m",
        place=1,
        timestamp=0.0,
        metadata=metadata,
    )


STATES = [row(1, "look", WAITS), row(2, "look again", WAITS), row(3, "look again [a.png]", SAVED)]


@pytest.mark.parametrize(
    "order", list(permutations(STATES)), ids=lambda order: "".join(str(each.rev) for each in order)
)
def test_the_newest_state_of_a_row_stands_in_whatever_order_it_is_heard(order: tuple[Message, ...]) -> None:
    history = History()
    for each in order:
        history.add([each])
    assert history.rows == [STATES[-1]]
    assert history.awaiting == ()


def test_a_row_awaits_its_files_until_all_are_settled() -> None:
    history = History()
    history.add([row(1, "look", {"attachments": [*WAITS["attachments"], *SAVED["attachments"]]})])
    assert history.awaiting == ("m",)
    history.add([row(2, "look", {"attachments": SAVED["attachments"] * 2})])
    assert history.awaiting == ()
