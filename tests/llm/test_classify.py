"""Table P2: what an answer of a server means."""

from __future__ import annotations

import json
from email.utils import formatdate
from typing import Any

import pytest

from kesoku_actors.llm.classify import (
    KIND_OF_CODE,
    KIND_OF_PHRASE,
    KIND_OF_STATUS,
    REMEDY,
    Source,
    from_error_object,
    from_status,
    lengths_in,
    provider_error,
    retry_after,
    without_key,
)
from kesoku_actors.llm.port import Remedy

NOW = 1_700_000_000.0
SOURCE = Source(provider="openai", key="OPENAI_API_KEY", model="[openai] model_name", address="[openai] base_url")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("12", 12.0),
        ("0.5", 0.5),
        (" 3 ", 3.0),
        ("-1", None),
        ("1e9", None),
        (formatdate(NOW + 30, usegmt=True), 30.0),
        (formatdate(NOW - 30, usegmt=True), 0.0),
        ("Fri, 99 Nov 2023 00:00:00 GMT", None),
        ("Fri, 01 Nov 99999999999999999999 00:00:00 GMT", None),
        ("Fri, 10 Nov 2023 00:00:00 +99999999999999999999", None),
    ],
)
def test_retry_after_is_read_in_both_forms(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, now=NOW) == seconds


def test_every_kind_of_the_tables_has_a_remedy() -> None:
    named = {*KIND_OF_CODE.values(), *KIND_OF_PHRASE.values(), *KIND_OF_STATUS.values()}
    assert named <= set(REMEDY)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_never_retried(status: int) -> None:
    error = from_status(SOURCE, status, {}, b"", now=NOW)
    assert error.remedy is Remedy.TELL
    assert "OPENAI_API_KEY" in str(error)


def test_a_missing_key_is_named_as_missing() -> None:
    source = Source(provider="openai", key="OPENAI_API_KEY", has_key=False)
    assert "none is set" in str(from_status(source, 401, {}, b"", now=NOW))


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 529])
def test_what_may_pass_is_retried(status: int) -> None:
    assert from_status(SOURCE, status, {}, b"busy", now=NOW).remedy is Remedy.RETRY


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"3",
        b'"text"',
        b"{broken",
        b'{"error": null}',
        b'{"error": "plain words"}',
        b'{"error": {"message": null, "code": 3}}',
        b'[{"error": {"message": "in a list"}}]',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"error": {"n_prompt_tokens": Infinity, "n_ctx": NaN}}',
    ],
)
def test_no_shape_of_an_error_body_breaks_it(body: bytes) -> None:
    error = from_status(SOURCE, 400, {}, body, now=NOW)
    assert (error.kind, error.remedy) == ("request", Remedy.REPAIR)


def test_the_servers_own_code_is_more_exact_than_its_status() -> None:
    body = b'{"error": {"code": 400, "type": "exceed_context_size_error", "message": "too long", "n_ctx": 4096}}'
    assert from_status(SOURCE, 400, {}, body, now=NOW).remedy is Remedy.COMPACT


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "slow down", "code": "rate_limit_exceeded"}, "rate_limit"),
        ({"message": "slow down", "code": 429}, "rate_limit"),
        ({"message": "?", "code": True}, "server"),
        ("just words", "server"),
        (["a list"], "server"),
    ],
)
def test_an_error_inside_a_stream_is_classified_too(error: object, kind: str) -> None:
    assert from_error_object(SOURCE, error).kind == kind


@pytest.mark.parametrize(
    ("quota", "kind"),
    [
        ("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quota"),
        ("GenerateContentInputTokensPerModelPerMinute", "rate_limit"),
    ],
)
def test_what_is_used_up_for_the_day_is_no_passing_rate(quota: str, kind: str) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]}]
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your quota", "details": details}
    assert from_status(SOURCE, 429, {}, json.dumps({"error": error}).encode(), now=NOW).kind == kind
    assert from_error_object(SOURCE, error).kind == kind


def test_a_message_is_one_bounded_line() -> None:
    text = str(provider_error(SOURCE, "server", "a\nb\r\n" + "x" * 10_000))
    assert "\n" not in text
    assert len(text) < 500


def test_an_error_text_with_half_a_character_can_be_stored() -> None:
    body = b'{"error": {"message": "bad \\ud800 thing"}}'
    for error in (from_status(SOURCE, 400, {}, body, now=NOW), from_error_object(SOURCE, "bad \ud800 thing")):
        str(error).encode()


@pytest.mark.parametrize(
    ("message", "lengths"),
    [
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
            (9001, 8192),
        ),
        ("prompt is too long: 210000 tokens > 200000 maximum", (210000, 200000)),
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            (1200000, 1048576),
        ),
        ("too much", None),
    ],
)
def test_a_refusal_for_the_length_says_how_long_it_was_and_may_be(
    message: str, lengths: tuple[int, int] | None
) -> None:
    assert lengths_in({"message": message}) == lengths
    error = from_error_object(SOURCE, {"message": message, "code": 413})
    assert error.remedy is Remedy.COMPACT
    assert (error.prompt_tokens, error.context_tokens) == (lengths or (None, None))


def test_lengths_that_are_no_numbers_are_none() -> None:
    assert lengths_in({"n_prompt_tokens": "many", "n_ctx": 12}) is None
    assert lengths_in({"n_prompt_tokens": 13}) is None
    assert lengths_in({"n_prompt_tokens": 13, "n_ctx": 12}) == (13, 12)


@pytest.mark.parametrize(
    ("details", "wait_s"),
    [
        ([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}], 17.0),
        ([{"@type": "x"}, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2.5s"}], 2.5),
        ([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "soon"}], None),
        ([{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "retryDelay": "17s"}], None),
        ("17s", None),
        ([], None),
    ],
)
def test_google_says_in_the_details_how_long_to_wait(details: Any, wait_s: float | None) -> None:
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota exceeded", "details": details}
    body = json.dumps({"error": error}).encode()
    assert from_status(SOURCE, 429, {}, body, now=0.0).retry_after_s == wait_s
    assert from_error_object(SOURCE, error).retry_after_s == wait_s
    assert from_status(SOURCE, 429, {"retry-after": "3"}, body, now=0.0).retry_after_s == 3


def test_a_key_that_is_a_word_at_most_takes_nothing_from_what_a_server_says() -> None:
    body = b'{"error": {"code": "context_length_exceeded", "message": "too long for sk-secret"}}'
    assert without_key(body, "x") == without_key(body, None) == body
    assert without_key(body, "sk-secret") == body.replace(b"sk-secret", b"***")
