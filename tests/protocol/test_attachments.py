"""M8: what a message may say of its attachments, and what the model reads of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.protocol import (
    UNKNOWN_TYPE,
    Attachment,
    AttachmentState,
    Inbound,
    InvalidMessage,
    attachments_in,
    awaits_attachments,
    expected,
)

SAVED = {"filename": "a.png", "mime_type": "image/png", "path": "attachments/a.png"}
EXPECTED = {"filename": "a.png", "mime_type": "image/png", "state": "expected"}
FAILED = {"filename": "a.png", "mime_type": "image/png", "state": "failed", "reason": "it is too large"}
LATE = {"filename": "a.png", "mime_type": "image/png", "state": "late"}
ARRIVED = {**LATE, "path": "attachments/a.png"}


def inbound(items: Any) -> Inbound:
    return Inbound(chatbot_id="bot", channel_id="room", content="look", metadata={"attachments": items})


@pytest.mark.parametrize("item", [SAVED, EXPECTED, FAILED, LATE, ARRIVED])
def test_the_data_of_an_attachment_is_what_it_was_made_from(item: dict[str, str]) -> None:
    [attachment] = attachments_in(inbound([item]).metadata)
    assert attachment.as_data() == item


@pytest.mark.parametrize(
    "items",
    [
        "a.png",
        {"0": SAVED},
        ["a.png"],
        [{"filename": "a.png"}],
        [{**SAVED, "url": "https://example.org"}],
        [{**SAVED, "state": "lost"}],
        [{**SAVED, "state": ["saved"]}],
        [{**SAVED, "filename": 7}],
        [{**SAVED, "filename": " "}],
        [{**SAVED, "mime_type": "png"}],
        [{**SAVED, "path": None}],
        [{**SAVED, "path": ""}],
        [{**SAVED, "path": 7}],
        [{**SAVED, "path": "/etc/passwd"}],
        [{**SAVED, "path": "attachments/../../x"}],
        [{**SAVED, "path": "attachments/a\nb"}],
        [{**SAVED, "reason": "it came"}],
        [{**EXPECTED, "path": "attachments/a.png"}],
        [{**FAILED, "reason": None}],
        [{**FAILED, "reason": {"why": "no"}}],
        [{**FAILED, "path": "attachments/a.png"}],
    ],
)
def test_any_other_shape_is_refused(items: Any) -> None:
    with pytest.raises(InvalidMessage, match="M8"):
        inbound(items)


def test_only_an_expected_attachment_is_awaited() -> None:
    assert [awaits_attachments({"attachments": [item]}) for item in (SAVED, EXPECTED, FAILED, LATE)] == [
        False,
        True,
        False,
        False,
    ]
    assert awaits_attachments({"attachments": [SAVED, EXPECTED]})
    assert not awaits_attachments({})


@given(st.text(), st.none() | st.text() | st.just("image/PNG; charset=utf-8"))
def test_whatever_a_sender_says_can_be_expected(filename: str, declared: str | None) -> None:
    attachment = expected(filename, declared)
    assert attachment.is_expected
    assert attachments_in({"attachments": [attachment.as_data()]}) == (attachment,)


def test_the_declared_type_is_taken_without_its_parameters() -> None:
    assert expected("a", "Text/Plain; charset=utf-8").mime_type == "text/plain"
    assert expected("a", "anything").mime_type == UNKNOWN_TYPE


@given(st.text(min_size=1).filter(str.strip), st.text(min_size=1).filter(str.strip))
def test_a_reference_stays_one_line_between_its_brackets(filename: str, reason: str) -> None:
    attachment = Attachment(filename=filename, mime_type="image/png", state=AttachmentState.FAILED, reason=reason)
    line = attachment.reference
    assert line.startswith("[attachment ")
    assert line.endswith("]")
    assert line[1:-1].isprintable()
    assert not set(line[1:-1]) & {"[", "]"}
    assert len(line) < 400
