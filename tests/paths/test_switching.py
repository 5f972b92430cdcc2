"""A session goes from one provider to another and back, over real connections to strict servers of their wires (P1).

Each server refuses with 400 what the real one would; a turn that ends well was accepted in every request of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import define, evolve

from kesoku_actors.actors import DynamicSpec, run_system
from kesoku_actors.app.brains import Brains
from kesoku_actors.app.house import House, build_house
from kesoku_actors.app.models import provider_registry
from kesoku_actors.app.money import gate_of
from kesoku_actors.app.plan import plan_run
from kesoku_actors.app.settings import load_settings
from kesoku_actors.clock import real_world
from kesoku_actors.log import Logger
from kesoku_actors.protocol import Channel, Inbound, Message, Role, Status, Type
from kesoku_actors.store import Posted
from tests.wire import claude_server as claude
from tests.wire import gemini_server as gemini
from tests.wire import openai_server as openai
from tests.wire.loopback import Answer

ROOM = Channel(chatbot_id="test", channel_id="room")
CONFIG = """
[agent]
llm = "gemini"
model_titles = false
failover = {failover}
{agent}
[gemini]
api_key = "{gemini_key}"
model_name = "{gemini_model}"
base_url = "{gemini_url}"
[claude]
api_key = "{claude_key}"
model_name = "{claude_model}"
thinking_level = "low"
base_url = "{claude_url}"
[openai]
api_key = "{openai_key}"
model_name = "{openai_model}"
base_url = "{openai_url}"
[workspace]
durability = "normal"
[shell]
enabled = false
"""

GEMINI_CALLS = gemini.answering(
    gemini.thinking("Both at once."), gemini.signed(gemini.use("echo", text="one")), gemini.use("echo", text="two")
)
GEMINI_SAYS = gemini.answering(gemini.thinking("Done."), gemini.signed(gemini.text("Gemini has it.")))
CLAUDE_CALLS = claude.answering(
    claude.thinking("I try it too."),
    claude.text("I try it."),
    claude.use("echo", "toolu_1", text="three"),
    claude.use("echo", "toolu_2", text="four"),
)
CLAUDE_SAYS = claude.answering(claude.thinking("Good."), claude.text("Claude has it."))
OPENAI_SAYS = openai.text_answer("OpenAI ", "has it.")


def openai_calls() -> openai.Answer:
    calls = [
        {"index": n, "id": f"call_{n}", "function": {"name": "echo", "arguments": f'{{"text": "{word}"}}'}}
        for n, word in enumerate(("five", "six"))
    ]
    chunks = (openai.chunk({"tool_calls": calls}), openai.chunk(finish="tool_calls"))
    return openai.Answer(parts=(openai.sse(*chunks),))


@define
class Talk:
    """A daemon that speaks with three servers."""

    house: House
    brains: Brains
    gemini: gemini.GeminiJudge
    claude: claude.ClaudeJudge
    openai: openai.OpenAIServer

    async def ask(self, text: str) -> Message:
        """Post a text and return its message when its turn has ended."""
        gateway = self.house.gateway
        inbound = Inbound(chatbot_id=ROOM.chatbot_id, channel_id=ROOM.channel_id, content=text)
        posted = await gateway.post(inbound)
        assert isinstance(posted, Posted)
        async for event in gateway.listen(after=0, hints=False):
            row = getattr(event, "message", None)
            if isinstance(row, Message) and row.id == posted.message.id and row.has_ended:
                return row
        raise AssertionError("listening does not end")

    async def said(self, session_id: str, role: Role = Role.ASSISTANT) -> list[str]:
        rows = (await self.house.gateway.history(session_id)).messages
        return [row.content for row in rows if row.role is role and row.status is Status.PENDING]


async def echo(text: str) -> str:
    """Return the text."""
    await trio.lowlevel.checkpoint()
    return text


@asynccontextmanager
async def talking(
    folder: Path,
    *,
    to_gemini: tuple[Answer, ...],
    to_claude: tuple[Answer, ...],
    to_openai: tuple[openai.Answer, ...],
    failover: str = "[]",
    agent: str = "",
    more: str = "",
) -> AsyncIterator[Talk]:
    async with AsyncExitStack() as stack:
        gemini_at, gemini_judge = await stack.enter_async_context(gemini.serving_gemini(*to_gemini))
        claude_at, claude_judge = await stack.enter_async_context(claude.serving_claude(*to_claude))
        openai_at = await stack.enter_async_context(openai.serving(*to_openai))
        config = folder / "config.toml"
        config.write_text(
            CONFIG.format(
                failover=failover,
                agent=agent,
                gemini_key=gemini.KEY,
                gemini_model=gemini.MODEL,
                gemini_url=gemini_at.origin,
                claude_key=claude.KEY,
                claude_model=claude.MODEL,
                claude_url=claude_at.origin,
                openai_key=openai.KEY,
                openai_model=openai.MODEL,
                openai_url=openai_at.url,
            )
            + more
        )
        settings, world = load_settings(config, environ={}), real_world()
        log = Logger(sink=lambda _entry: None, wall=world.clock.wall)
        registry = provider_registry(settings, world, log)
        provider = registry.choose(settings.agent.llm).provider
        plan = plan_run(
            settings,
            provider,
            world=world,
            log=log,
            channels=None,
            edges=lambda _gateway: (),
            probe=lambda _point: None,
            spares=registry.spares(settings.agent.failover, provider).providers,
        )
        plan.registry.add(echo, owner="test")
        brains = Brains(
            registry=registry,
            default=plan.brains[0],
            spares=plan.failover,
            gate_for=lambda provider: gate_of(settings, provider, plan.purse),
        )
        children: Any = (*plan.provider_children, DynamicSpec(id="models", dynamic=brains.models))
        house = build_house(evolve(plan, brain_for=brains.of, provider_children=children))
        with trio.fail_after(60):
            async with run_system(house.spec):
                yield Talk(house, brains, gemini_judge, claude_judge, openai_at)


async def test_a_session_goes_round_all_providers_with_tools_and_thoughts(tmp_path: Path) -> None:
    async with talking(
        tmp_path,
        to_gemini=(GEMINI_CALLS, GEMINI_SAYS, GEMINI_CALLS, GEMINI_SAYS),
        to_claude=(CLAUDE_CALLS, CLAUDE_SAYS, CLAUDE_CALLS, CLAUDE_SAYS),
        to_openai=(openai_calls(), OPENAI_SAYS, openai_calls(), OPENAI_SAYS),
    ) as talk:
        for name in ("gemini", "claude", "openai", "gemini", "openai", "claude"):
            await talk.brains.choose(ROOM, name)
            asked = await talk.ask(f"Try it, {name}.")
            assert asked.status is Status.PROCESSED, await talk.said(asked.session_id, Role.SYSTEM)
        names = {"gemini": "Gemini", "claude": "Claude", "openai": "OpenAI"}
        assert await talk.said(asked.session_id) == [
            f"{names[name]} has it." for name in ("gemini", "claude", "openai", "gemini", "openai", "claude")
        ]
        calls = [
            row for row in (await talk.house.gateway.history(asked.session_id)).messages if row.type is Type.TOOL_CALL
        ]
        assert ["thought_signature" in call.metadata for call in calls[:4]] == [True, False, False, False]
        bodies = (talk.gemini.bodies, talk.claude.bodies, talk.openai.bodies)
        assert [len(each) for each in bodies] == [4, 4, 4]
        own = [part for content in talk.gemini.bodies[-1]["contents"] for part in content["parts"]]
        signatures = [gemini.signed(gemini.use("echo", text="one")), gemini.signed(gemini.text("Gemini has it."))]
        assert signatures[0] in own, "its own signatures come back"
        for foreign in (*(part["thoughtSignature"] for part in signatures), "Both at once."):
            assert foreign not in str(talk.claude.bodies), "thoughts go to nobody but who thought them"
        for foreign in (claude.thinking("I try it too.")["signature"], "I try it too."):
            assert foreign not in str(talk.gemini.bodies)
        heard = str(talk.claude.bodies[-1])
        assert all(word in heard for word in ("one", "two", "five", "six")), "what the others' tools said is read"


async def test_a_tool_loop_goes_on_with_the_next_provider_where_the_first_one_failed(tmp_path: Path) -> None:
    async with talking(
        tmp_path,
        to_gemini=(GEMINI_CALLS, gemini.error_answer(403, "PERMISSION_DENIED", "the key was revoked")),
        to_claude=(CLAUDE_CALLS, claude.error_answer(401, "authentication_error", "invalid x-api-key")),
        to_openai=(OPENAI_SAYS,),
        failover='["claude", "openai"]',
    ) as talk:
        asked = await talk.ask("Try it.")
        assert asked.status is Status.PROCESSED, await talk.said(asked.session_id, Role.SYSTEM)
        assert await talk.said(asked.session_id) == ["OpenAI has it."]
        told = await talk.said(asked.session_id, Role.SYSTEM)
        assert [each.splitlines()[-1] for each in told] == [
            f"{claude.MODEL} (claude) goes on instead.",
            f"{openai.MODEL} (openai) goes on instead.",
        ]
        assert "GEMINI_API_KEY" in told[0]
        assert "ANTHROPIC_API_KEY" in told[1]
        assert [len(each) for each in (talk.gemini.bodies, talk.claude.bodies, talk.openai.bodies)] == [2, 2, 1]
        results = [row["content"] for row in talk.openai.bodies[0]["messages"] if row["role"] == "tool"]
        assert results == ["one", "two", "three", "four"]
        steps = (await talk.house.gateway.history(asked.session_id)).steps
        assert [each.step.provider for each in steps] == ["gemini", "gemini", "claude", "claude", "openai"]
        assert [each.step.error is None for each in steps] == [True, False, True, False, True]
