"""Both providers through Vertex AI: the path, the body, and a token that is fetched and renewed in a thread."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from kesoku_actors.llm.classify import Source
from kesoku_actors.llm.claude import ClaudeAccess, ClaudeModel
from kesoku_actors.llm.gemini import GeminiAccess, GeminiModel
from kesoku_actors.llm.google_token import GoogleToken
from kesoku_actors.llm.port import ProviderError, Remedy
from kesoku_actors.log import Logger

from ..llm.examples import DATE_TOOL, asking, ignore, said
from . import claude_server, gemini_server
from .google_account import PROJECT, REFUSED, TokenDesk, serving_tokens
from .loopback import Answer, LoopbackServer, Pause

CLAUDE = "claude-sonnet-4-5@20250929"
SOURCE = Source(provider="claude", key="the application default credentials of Google", address="[claude] base_url")
PLACE = f"projects/{PROJECT}/locations/us-east5/publishers"


@pytest.fixture(autouse=True)
def _no_other_account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@asynccontextmanager
async def claude(
    project: str | None, wall: Callable[[], float] = time.time
) -> AsyncIterator[tuple[LoopbackServer, Any, ClaudeModel]]:
    judge = {
        "path": f"/v1/{PLACE}/anthropic/models/{CLAUDE}:streamRawPredict",
        "header": ("authorization", "Bearer ya29.0"),
    }
    async with claude_server.serving_claude(claude_server.answering(claude_server.text("Hello.")), **judge) as served:
        server, judging = served
        access = ClaudeAccess(
            auth_mode="vertex", project_id=project, location="us-east5", base_url=f"{server.origin}/v1"
        )
        model = ClaudeModel(
            source=SOURCE, model=CLAUDE, access=access, log=Logger(sink=lambda _: None, wall=wall), wall=wall
        )
        yield server, judging, model
        await model.aclose()


@asynccontextmanager
async def gemini(
    project: str | None, wall: Callable[[], float] = time.time
) -> AsyncIterator[tuple[LoopbackServer, Any, GeminiModel]]:
    path = rf"/v1beta1/{PLACE}/google/models/([^/:]+):streamGenerateContent\?alt=sse\Z"
    judge = {"path": re.compile(path), "header": ("authorization", "Bearer ya29.0")}
    async with gemini_server.serving_gemini(gemini_server.answering(gemini_server.text("Hello.")), **judge) as served:
        server, judging = served
        access = GeminiAccess(auth_mode="vertex", project_id=project, location="us-east5", base_url=server.origin)
        model = GeminiModel(
            source=SOURCE,
            model=gemini_server.MODEL,
            access=access,
            log=Logger(sink=lambda _: None, wall=wall),
            wall=wall,
        )
        yield server, judging, model
        await model.aclose()


@pytest.mark.parametrize("project", [PROJECT, None], ids=["set", "of the credentials"])
@pytest.mark.parametrize("opened", [claude, gemini])
async def test_a_request_goes_to_the_projects_place_with_a_token(
    opened: Any, project: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, told = TokenDesk(before=(Pause(0.1),)), list[Any]()
    async with serving_tokens(tmp_path, desk) as (_, path), opened(project) as (_server, judge, model):
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        await model.warm()
        request = asking(said(1, "Hi"), tools=(DATE_TOOL,), sent=lambda body: told.append(body()))
        with trio.fail_after(60):
            for _ in range(2):
                assert (await model.infer(request, ignore)).text == "Hello."
    assert desk.given == ["ya29.0"]
    assert told == judge.bodies, "what is told is what went on the wire"
    assert "model" not in judge.bodies[0]
    if opened is claude:
        assert judge.bodies[0]["anthropic_version"]


@pytest.mark.parametrize("opened", [claude, gemini])
async def test_credentials_that_are_refused_are_told_once_and_where_they_were_looked_for(
    opened: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = TokenDesk(refusal=REFUSED)
    async with serving_tokens(tmp_path, desk) as (_, path), opened(PROJECT) as (server, _judge, model):
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        with pytest.raises(ProviderError) as caught, trio.fail_after(60):
            await model.infer(asking(said(1, "Hi")), ignore)
    assert (caught.value.kind, caught.value.remedy, server.requests) == ("auth", Remedy.TELL, 0)
    assert "the application default credentials of Google" in str(caught.value)
    assert "Invalid JWT Signature" in str(caught.value)


@pytest.mark.parametrize("opened", [claude, gemini])
async def test_credentials_that_name_no_project_say_which_setting_does(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from google.oauth2.credentials import Credentials

    credentials = Credentials(token="ya29.0")  # type: ignore[no-untyped-call]
    monkeypatch.setattr("google.auth.default", lambda **_: (credentials, None))
    async with opened(None) as (server, _judge, model):
        with pytest.raises(ProviderError) as caught, trio.fail_after(60):
            await model.infer(asking(said(1, "Hi")), ignore)
    assert (caught.value.kind, caught.value.remedy, server.requests) == ("project", Remedy.TELL, 0)
    assert "project_id" in str(caught.value)


async def test_who_asks_at_once_waits_for_one_refresh_also_when_the_first_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, got = TokenDesk(before=(Pause(0.3),)), list[str]()
    token = GoogleToken(time.time)

    async def ask() -> None:
        got.append(await token.get(SOURCE))

    async with serving_tokens(tmp_path, desk) as (server, path):
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        with trio.fail_after(60):
            async with trio.open_nursery() as first:
                first.start_soon(ask)
                await server.came[0].wait()
                first.cancel_scope.cancel()
            assert got == []
            async with trio.open_nursery() as others:
                for _ in range(5):
                    others.start_soon(ask)
    assert got == ["ya29.0"] * 5
    assert desk.given == ["ya29.0"]


async def test_a_token_about_to_end_is_renewed_and_one_that_is_good_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = TokenDesk(lasts_s=30)
    token = GoogleToken(time.time)
    async with serving_tokens(tmp_path, desk) as (_, path):
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        with trio.fail_after(60):
            assert [await token.get(SOURCE) for _ in range(2)] == ["ya29.0", "ya29.1"]
            desk.lasts_s = 3600
            assert [await token.get(SOURCE) for _ in range(2)] == ["ya29.2", "ya29.2"]
            assert token.project == PROJECT


@pytest.mark.parametrize("opened", [claude, gemini])
async def test_a_token_that_was_withdrawn_gives_way_to_another_and_a_new_one_that_is_refused_is_told(
    opened: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, later_s = TokenDesk(), [0.0]
    async with serving_tokens(tmp_path, desk) as (_, path):
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        async with opened(PROJECT, lambda: time.time() + later_s[0]) as (_server, judge, model):
            request = asking(said(1, "Hi"))
            refusals: list[ProviderError] = []
            with trio.fail_after(60):
                assert (await model.infer(request, ignore)).text == "Hello."
                later_s[0], judge.header = 120.0, ("authorization", "Bearer ya29.1")
                for attempt in range(3):
                    try:
                        assert (await model.infer(request, ignore)).text == "Hello."
                        judge.header = ("authorization", "Bearer withdrawn")
                    except ProviderError as error:
                        refusals.append(error)
                        assert attempt != 1
    assert [(each.kind, each.remedy) for each in refusals] == [("auth", Remedy.RETRY), ("auth", Remedy.TELL)]
    assert desk.given == ["ya29.0", "ya29.1"]


@pytest.mark.parametrize("opened", [claude, gemini])
async def test_a_server_that_repeats_the_token_is_not_quoted(
    opened: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said_of = "the token ya29.0 may not do that"
    in_stream = (
        claude_server.sse(claude_server.event("error", error={"type": "permission_error", "message": said_of}))
        if opened is claude
        else gemini_server.sse({"error": {"code": 403, "message": said_of, "status": "PERMISSION_DENIED"}})
    )
    refusal = (
        claude_server.error_answer(403, "permission_error", said_of)
        if opened is claude
        else gemini_server.error_answer(403, "PERMISSION_DENIED", said_of)
    )
    async with serving_tokens(tmp_path, TokenDesk()) as (_, path), opened(PROJECT) as (server, _judge, model):
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        for answer in (refusal, Answer(parts=(in_stream,))):
            server.answers = [answer]
            with pytest.raises(ProviderError, match=r"the token \*\*\* may not do that"), trio.fail_after(60):
                await model.infer(asking(said(1, "Hi")), ignore)


async def test_an_account_server_that_cannot_be_reached_is_asked_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving_tokens(tmp_path, TokenDesk()) as (server, path):
        text = path.read_text().replace(server.origin, "http://127.0.0.1:9")
        path.write_text(text)
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        with pytest.raises(ProviderError) as caught, trio.fail_after(60):
            await GoogleToken(time.time).get(SOURCE)
    assert caught.value.remedy is Remedy.RETRY


@pytest.mark.parametrize("written", [b"[]", b"5", b"{", b"\xff\xfe", b"{}", b'{"type": "service_account"}', None])
async def test_a_file_that_holds_no_credentials_is_told(
    written: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "credentials.json"
    if written is None:
        path.mkdir()
    else:
        path.write_bytes(written)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    with pytest.raises(ProviderError) as caught:
        await GoogleToken(time.time).get(SOURCE)
    assert (caught.value.kind, caught.value.remedy) == ("auth", Remedy.TELL)
    assert "the application default credentials of Google" in str(caught.value)


async def test_no_credentials_at_all_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nowhere.json"))
    with pytest.raises(ProviderError) as caught:
        await GoogleToken(time.time).get(SOURCE)
    assert (caught.value.kind, caught.value.remedy) == ("auth", Remedy.TELL)
