"""The strict servers refuse what the services refuse, also as the SDKs write it: else nothing here would mean much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anthropic
import httpx2
import pytest
from google import genai
from google.genai import errors, types

from . import claude_server as claude
from . import gemini_server as gemini

HI = {"role": "user", "content": [claude.text("Hi")]}
DATE = {"name": "date", "description": "", "input_schema": {"type": "object"}}
USED = {"role": "assistant", "content": [claude.use("date", "toolu_1")]}
CLAUDE: Mapping[str, tuple[dict[str, Any], str]] = {
    "no message": ({"messages": []}, "at least one message"),
    "roles": ({"messages": [HI, HI]}, "roles must alternate"),
    "prefill": ({"messages": [HI, {"role": "assistant", "content": [claude.text("Yes")]}]}, "prefill"),
    "blank": ({"messages": [{"role": "user", "content": [claude.text(" ")]}]}, "non-whitespace"),
    "no result": ({"messages": [HI, USED, HI], "tools": [DATE]}, "without `tool_result`"),
    "no tools": ({"messages": [HI, USED, HI]}, "must define tools"),
    "field": ({"messages": [{"role": "user", "content": [claude.text("Hi") | {"light": 1}]}]}, "light"),
    "forged": (
        {"messages": [HI, {"role": "assistant", "content": [claude.thinking("Hm", "c2ln"), claude.text("A")]}, HI]},
        "Invalid `signature`",
    ),
    "changed": (
        {"messages": [HI, {"role": "assistant", "content": [claude.redacted("Hm") | {"data": "x"}]}, HI]},
        "Invalid `data`",
    ),
    "twice": ({"messages": [HI], "tools": [DATE, DATE]}, "must be unique"),
    "budget": ({"messages": [HI], "thinking": {"type": "enabled", "budget_tokens": 9000}}, "must be greater than"),
    "adaptive": ({"messages": [HI], "thinking": {"type": "adaptive"}}, "not supported"),
    "too much": ({"messages": [HI], "max_tokens": 65_000}, "maximum allowed"),
    "marks": (
        {"messages": [{"role": "user", "content": [claude.text("a") | {"cache_control": {"type": "ephemeral"}}] * 5}]},
        "maximum of 4 blocks",
    ),
}


@pytest.mark.parametrize(("fields", "said"), CLAUDE.values(), ids=CLAUDE)
async def test_claudes_refuses(fields: dict[str, Any], said: str) -> None:
    serving = claude.serving_claude(claude.answering(claude.text("Hm?")))
    async with serving as (server, _judge), httpx2.AsyncClient() as http:
        sdk = anthropic.AsyncAnthropic(
            api_key=None, auth_token=claude.KEY, base_url=server.origin, http_client=http, max_retries=0
        )
        with pytest.raises(anthropic.BadRequestError, match=said):
            await sdk.messages.create(**{"model": claude.MODEL, "max_tokens": 9000, "stream": True, **fields})


ASKED: dict[str, Any] = {"role": "user", "parts": [gemini.text("Hi")]}
TOOL = {"functionDeclarations": [{"name": "date", "description": "Tells the date."}]}
CALLED = {"role": "model", "parts": [gemini.signed(gemini.use("date"))]}
ANSWER = {"role": "user", "parts": [{"functionResponse": {"name": "date", "response": {"result": "x"}}}]}
TIFF = {"inlineData": {"mimeType": "image/tiff", "data": "AA=="}}
GEMINI: Mapping[str, tuple[list[dict[str, Any]], dict[str, Any], str]] = {
    "roles": ([ASKED, ASKED], {}, "alternate"),
    "prefill": ([ASKED, {"role": "model", "parts": [gemini.text("Yes")]}], {}, "end with a user role"),
    "begins": ([{"role": "model", "parts": [gemini.text("Yes")]}, ASKED], {}, "begins with a user turn"),
    "empty": ([{"role": "user", "parts": [gemini.text("")]}], {}, "must have a text parameter"),
    "type": ([{"role": "user", "parts": [TIFF]}], {}, "Unsupported MIME type: image/tiff"),
    "no response": ([ASKED, CALLED, ASKED], {"tools": [TOOL]}, "number of function response parts"),
    "no functions": ([ASKED, CALLED, ANSWER], {}, "without function declarations"),
    "unsigned": (
        [ASKED, {"role": "model", "parts": [gemini.use("date")]}, ANSWER],
        {"tools": [TOOL]},
        "missing a thought_signature",
    ),
    "forged": (
        [ASKED, {"role": "model", "parts": [gemini.use("date", "c2ln")]}, ANSWER],
        {"tools": [TOOL]},
        "not valid",
    ),
    "swapped": (
        [ASKED, {"role": "model", "parts": [gemini.signed(gemini.text("a")) | {"text": "b"}]}, ASKED],
        {},
        "not valid",
    ),
    "twice": ([ASKED], {"tools": [TOOL, TOOL]}, "Duplicate function"),
    "both": ([ASKED], {"thinkingConfig": {"thinkingBudget": 5, "thinkingLevel": "LOW"}}, "only one of"),
    "misplaced": ([{"role": "user", "parts": [gemini.use("date")]}], {"tools": [TOOL]}, "in a content of role user"),
}


@pytest.mark.parametrize(("contents", "config", "said"), GEMINI.values(), ids=GEMINI)
async def test_geminis_refuses(contents: Any, config: Any, said: str) -> None:
    serving = gemini.serving_gemini(gemini.answering(gemini.text("Hm?")))
    async with serving as (server, _judge), httpx2.AsyncClient() as http:
        options = types.HttpOptions(base_url=server.origin, httpx_async_client=http)
        sdk = genai.Client(api_key=gemini.KEY, vertexai=False, http_options=options)
        further: Any = {**config, "automaticFunctionCalling": {"disable": True}}
        with pytest.raises(errors.ClientError, match=said):
            async for _chunk in await sdk.aio.models.generate_content_stream(
                model=gemini.MODEL, contents=contents, config=further
            ):
                pass


async def test_an_older_gemini_is_asked_for_no_level_and_a_very_old_one_for_no_thought() -> None:
    body: dict[str, Any] = {"contents": [ASKED], "generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}}
    assert gemini.refusals(body, gemini.MODEL) == []
    assert gemini.refusals(body, "gemini-2.5-flash") == ["Thinking level is not supported for this model."]
    assert "Thinking is not enabled for this model." in gemini.refusals(body, "gemini-2.0-flash")
