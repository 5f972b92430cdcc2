"""What an import refuses: every line is looked at, the error names line and key, and nothing is kept."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.app.history.export_lines import DEEPEST, BadExport, end_line, header_line
from kesoku_actors.app.history.importing import ImportRequest, import_history, sessions_of
from kesoku_actors.app.settings import load_settings
from kesoku_actors.clock import seeded_world
from kesoku_actors.errors import KesokuError

SESSION = "01ABCDEFGHJKMNPQRSTVWXYZ00"


def message(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "kind": "message",
        "id": f"m{number}",
        "seq": number,
        "place": number,
        "root_id": f"m{number}",
        "parent_id": None,
        "external_id": None,
        "sender": "Ada",
        "role": "user",
        "type": "text",
        "status": "processed",
        "content": f"message {number}",
        "timestamp": 5.0,
        "metadata": {},
        **changes,
    }


def session(**changes: Any) -> dict[str, Any]:
    head = {"id": SESSION, "chatbot_id": "bot", "channel_id": "room", "created": 1.0, "last_activity": 5.0}
    return {"kind": "session", **head, "turns": 1, "title": "t", **changes}


def call(number: int, **changes: Any) -> dict[str, Any]:
    facts = {"tool_name": "t", "tool_arguments": {}, "tool_call_id": "c"}
    place = {"root_id": "m1", "parent_id": "m1", "role": "assistant", "type": "tool_call", "status": "responded"}
    return message(number, sender="Kesoku", content="", metadata=facts, **place, **changes)


def state(number: int, **changes: Any) -> dict[str, Any]:
    facts = {"state": "settled", "outcome": "ok", "content": None, "duration_s": 1.0, "metadata": None}
    return {
        "kind": "call", "call_id": f"m{number}", **facts, "is_published": True, "expires": None, "decided_by": None,
        **changes,
    }  # fmt: skip


def result(number: int, of: int, **changes: Any) -> dict[str, Any]:
    facts = {"tool_name": "t", "tool_call_id": "c", "outcome": "ok", "duration_s": 1.0}
    place = {"root_id": "m1", "parent_id": f"m{of}", "role": "tool", "type": "tool_result", "status": "responded"}
    return message(number, sender="t", metadata=facts, **place, **changes)


def export(*lines: Any) -> bytes:
    whole = [header_line(), *lines]
    whole.append(end_line(len(whole)))
    return b"".join((each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in whole)


GOOD = (session(), message(1), call(2), result(3, 2), state(2))


def read(data: bytes) -> int:
    return sum(len(archive.messages) for archive in sessions_of(io.BytesIO(data)))


def telling(row: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return {**row, "metadata": {**row["metadata"], **facts}}


def summary(name: str, level: int, parent: str | None) -> dict[str, Any]:
    spots = {"first": [1, 1], "last": [1, 1], "tokens_before": 9, "tokens_after": 1}
    said = {"content": "s", "provider": "p", "model": "m", "created": 1.0}
    return {"kind": "summary", "id": name, "level": level, "parent_id": parent, **spots, **said}


def test_a_good_export_is_taken() -> None:
    assert read(export(*GOOD)) == 3
    assert read(export()) == 0
    assert read(export(session(), message(1), summary("a", 0, "b"), summary("b", 1, None))) == 1


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": value}
    return value


BAD: list[tuple[Any, str]] = [
    ((message(1),), r"line 2: a message stands here before any session"),
    ((session(), {"kind": "mesage"}), r"line 3: kind: 'mesage' is not known here"),
    ((session(), []), r"line 3: it is not an object with a kind"),
    ((session(), b"{"), r"line 3: it is not JSON"),
    ((session(), b"\xff"), r"line 3: it is not UTF-8"),
    ((session(), b'{"kind": NaN}'), r"line 3: it is not JSON: NaN is not a number"),
    ((session(), b'{"kind":"message","id":1,"id":2}'), r"line 3: .*the key 'id' stands there twice"),
    ((session(), b"[" * 100_000), r"line 3: it is nested too deep"),
    ((session(), message(1, metadata=nested(DEEPEST))), rf"line 3: it is nested deeper than {DEEPEST}"),
    ((session(), message(1, content="\ud800")), r"line 3: it has half of a surrogate pair"),
    ((session(), message(1, extra=1)), r"line 3: message: .*extra"),
    ((session(), {k: v for k, v in message(1).items() if k != "sender"}), r"line 3: message: .*sender"),
    ((session(), message(1, seq="1")), r"line 3: message: seq: .*int"),
    ((session(), message(1, seq=True)), r"line 3: message: seq: .*int"),
    ((session(), message(1, timestamp=1e400)), r"line 3: .*timestamp|Infinity"),
    ((session(), message(1, timestamp=-5.0)), r"line 3: timestamp: -5.0 is not a time"),
    ((session(), message(1, status="finished")), r"line 3: message: status: .*expected Status"),
    ((session(), message(1, status="delivered")), r"line 3: M2: a user text cannot have the status delivered"),
    ((session(), message(1, sender=" ")), r"line 3: M3"),
    ((session(), message(1, id="../x")), r"line 3: id: '../x' is not an id"),
    ((session(), message(1), message(1)), r"line 4: id: m1 stands here twice"),
    ((session(), message(2), message(1)), r"line 4: seq: 1 is not higher"),
    ((session(), message(1, seq=1 << 60, place=1 << 60)), r"line 3: place: .*numbers"),
    ((session(), message(1, place=7, root_id=None)), r"line 3: place: a message has both"),
    ((session(), message(1, root_id="m9")), r"line 3: root_id: 'm9' is not the first"),
    ((session(), message(1), message(2, root_id="m1", place=1)), r"line 4: place"),
    ((session(), message(1, external_id="x"), message(2, external_id="x")), r"line 4: external_id: 'x'"),
    ((session(), message(1), call(2)), r"line 4: id: nothing says how the call m2 stands"),
    ((session(), message(1), call(2), state(2)), r"line 5: is_published"),
    ((session(), message(1), result(2, 1)), r"line 4: parent_id: 'm1' is not a call"),
    ((session(), message(1), call(2), result(3, 2), result(4, 2), state(2)), r"line 6: parent_id: .* has a result"),
    ((session(), message(1), call(2), result(3, 2), state(2), state(2)), r"line 7: call_id"),
    ((session(), message(1), call(2), result(3, 2), state(2, outcome=None)), r"line 6: outcome"),
    ((session(), message(1), {"kind": "turn", "root_id": "m9", "began": 1.0, "attempts": 0, "steps": 0,
      "spent_s": 0.0}), r"line 4: root_id"),
    ((session(), message(1), telling(call(2), tool_arguments=[]), result(3, 2), state(2)), r"line 4: metadata: tool_a"),
    ((session(), message(1), telling(call(2), tool_call_id=1), result(3, 2), state(2)), r"line 4: metadata: tool_call"),
    ((session(), message(1), call(2), telling(result(3, 2), outcome=[]), state(2)), r"line 5: metadata: outcome of"),
    ((session(), message(1), call(2), telling(result(3, 2), duration_s=None), state(2)), r"line 5: metadata: durat"),
    ((session(), message(1), call(2), telling(result(3, 2), duration_s=-1), state(2)), r"line 5: metadata: duration_s"),
    ((session(), message(1), summary("a", 0, "b"), summary("b", 0, "a")), r"line 4: parent_id: 'b' is not a summary"),
    ((session(id="../../x"),), r"line 2: id: '../../x' is not a session's id"),
    ((session(id=["x"]),), r"line 2: session: id"),
    ((session(), session()), r"line 3: the session .* stands here twice"),
    ((session(chatbot_id=""),), r"line 2: chatbot_id"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "words"), BAD, ids=[words for _, words in BAD])
def test_a_bad_line_is_named_with_its_key(lines: Any, words: str) -> None:
    with pytest.raises(BadExport, match=words):
        read(export(*lines))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[: data.rindex(b'{"kind": "end"')], "its end is missing"),
        (lambda data: data[:-1], "line 7: the file is cut short: this line does not end"),
        (lambda data: data.replace(b'"lines": 6', b'"lines": 5'), "line 7: the file is cut short or was changed"),
        (lambda data: data + b"{}\n", "line 8: "),
        (lambda data: data.replace(b'"version": 1', b'"version": 2'), "line 1: version: 2 is not 1"),
        (lambda data: data.replace(b"kesoku-actors history", b"other"), "line 1: this is no export"),
        (lambda data: b"", "line 1: the file is empty"),
    ],
)
def test_a_file_that_is_not_whole_is_refused(change: Callable[[bytes], bytes], words: str) -> None:
    with pytest.raises(BadExport, match=words):
        read(change(export(*GOOD)))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_change_of_a_file_is_a_surprise(data: st.DataObject) -> None:
    rng = random.Random(data.draw(st.integers(0, 1 << 30)))
    raw = bytearray(export(*GOOD))
    for _ in range(data.draw(st.integers(1, 5))):
        at = rng.randrange(len(raw))
        raw[at : at + rng.randrange(3)] = rng.choice(
            [b"", b"9", b'"', b"}", b"null", b"\\ud800", bytes([rng.randrange(256)])]
        )
    with suppress(BadExport):
        read(bytes(raw))


def test_nothing_of_a_file_with_a_bad_end_is_kept(tmp_path: Path) -> None:
    other = session(id="01ABCDEFGHJKMNPQRSTVWXYZ11", channel_id="other")
    (tmp_path / "file").write_bytes(export(*GOOD, other, message(1)))
    found = load_settings(None, environ={}, home=tmp_path)
    request = ImportRequest(settings=found, file=str(tmp_path / "file"))
    with pytest.raises(KesokuError, match="m1"):
        import_history(request, seeded_world(1), lambda _line: None)
    (tmp_path / "file").write_bytes(export(*GOOD))
    assert import_history(request, seeded_world(2), lambda _line: None).messages == 3
