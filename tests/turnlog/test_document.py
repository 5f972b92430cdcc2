"""What a file of the turn log says (P4), read by somebody else's YAML reader."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML

from kesoku_actors.llm.port import CallRequest, Finish, ProviderError, Remedy
from kesoku_actors.protocol import ToolSchema, Usage
from kesoku_actors.turnlog import Inference, to_yaml
from kesoku_actors.turnlog.document import LONGEST_DATA, make_document, without_data

from .examples import BODY, inference, reply


def read(one: Inference, idx: int = 7) -> Any:
    return YAML(typ="safe").load(to_yaml(make_document(one, idx)))


def test_it_says_when_who_and_where() -> None:
    metadata = read(inference(reply()))["metadata"]
    assert metadata == {
        "unix_time": 1_700_000_000.25,
        "iso_time": "2023-11-14T22:13:20.250+00:00",
        "session_id": "s",
        "idx": 7,
        "provider": "openai",
        "model": "m-1",
        "purpose": "answer",
        "inference_id": "1.1.1",
        "root_id": "root",
        "attempt": 1,
        "sends": 1,
    }


def test_the_history_and_the_whole_body_are_as_they_were_sent() -> None:
    for key in ("messages", "contents", "input"):
        body = {key if name == "messages" else name: value for name, value in BODY.items()}
        document = read(inference(reply(), body=body))
        assert document["history"] == BODY["messages"]
        assert document["request"] == body


def test_the_tools_are_told_with_their_parameters_and_types() -> None:
    tool = ToolSchema(
        name="book",
        description="Books.",
        parameters={
            "type": "object",
            "properties": {
                "seats": {"type": "integer", "description": "How many."},
                "names": {"type": "array", "items": {"type": "string"}},
                "day": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                "class": {"enum": ["one", "two"]},
                "free": {},
            },
            "required": ["seats"],
        },
    )
    (told,) = read(inference(reply(), tools=(tool,)))["tools"]
    assert (told["name"], told["description"]) == ("book", "Books.")
    assert told["parameters"] == [
        {"name": "seats", "type": "integer", "required": True, "description": "How many."},
        {"name": "names", "type": "array of string", "required": False},
        {"name": "day", "type": "string or null", "required": False, "default": None},
        {"name": "class", "type": "one of one, two", "required": False},
        {"name": "free", "type": "any", "required": False},
    ]


def test_a_reply_is_told_with_thoughts_calls_tokens_and_latency() -> None:
    call = CallRequest(name="date", id="c1", arguments={"zone": "UTC"})
    broken = CallRequest(name="date", id="c2", arguments={}, invalid="no JSON")
    end = reply(
        "Let me see.",
        thought="Hm.\nThe date.",
        calls=(call, broken),
        usage=Usage(input=10, output=3),
        finish=Finish.CALLS,
        finish_reason="tool_calls",
    )
    assert read(inference(end))["response"] == {
        "state": "finished",
        "text": "Let me see.",
        "thoughts": "Hm.\nThe date.",
        "calls": [
            {"name": "date", "id": "c1", "arguments": {"zone": "UTC"}},
            {"name": "date", "id": "c2", "arguments": {}, "invalid": "no JSON"},
        ],
        "tokens": {"input": 10, "cached": None, "output": 3, "thinking": None},
        "finish_reason": "tool_calls",
        "latency_s": 2.0,
        "first_piece_s": 0.5,
        "native": None,
    }


def test_a_cancelled_and_a_failed_inference_say_so_and_keep_what_had_come() -> None:
    cancelled = read(inference(text="I was about"))["response"]
    assert (cancelled["state"], cancelled["text"]) == ("cancelled", "I was about")
    assert "cancelled" in cancelled["note"]
    failed = read(inference(ProviderError("openai: busy", remedy=Remedy.RETRY, kind="overload"), text="I"))["response"]
    assert (failed["state"], failed["text"], failed["finish_reason"]) == ("failed", "I", None)
    assert failed["error"] == {"kind": "overload", "message": "openai: busy", "remedy": "retry"}


def test_an_inference_that_was_never_sent_has_no_request() -> None:
    document = read(inference(ProviderError("no key", kind="auth"), body=None))
    assert (document["history"], document["request"], document["metadata"]["sends"]) == ([], None, 0)


def test_a_file_in_base64_is_told_by_its_size_and_words_are_kept_however_many() -> None:
    edit = without_data(lambda text: text.replace("key", "***"))
    assert edit("a key " * LONGEST_DATA) == "a *** " * LONGEST_DATA
    told = edit("data:image/png;base64," + "QUJD" * LONGEST_DATA)
    assert told.startswith(f"({4 * LONGEST_DATA + 22} characters of data that begin with data:image/png")
    assert len(told) < 250
