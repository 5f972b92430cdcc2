"""The embedded model behind the port: the genuine server, under the genuine supervisor."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
from attrs import evolve

from kesoku_actors.actors import ChildSpec, SupervisorSpec, run_system
from kesoku_actors.errors import ConfigError, NotFound
from kesoku_actors.llm.gate import ProviderGate, infer_once, provider_actor
from kesoku_actors.llm.local import MOST_STARTS, LocalModel, local_actor
from kesoku_actors.llm.local_options import LocalOptions, check, why_not
from kesoku_actors.llm.port import Finish, Limits, Piece, ProviderError, Remedy, Reply
from kesoku_actors.log import Entry, Logger

from .examples import asking, ignore, said

SMALL = LocalOptions(context_size=512, cache_ram_mib=16)
LONG = " ".join(f"word{number}" for number in range(70))
"""About 280 tokens: several batches to read."""


@asynccontextmanager
async def running(options: LocalOptions = SMALL) -> AsyncIterator[LocalModel]:
    model = LocalModel(options, log=Logger(sink=lambda entry: None, wall=lambda: 0.0), wall=lambda: 0.0)
    child = ChildSpec(id="local", start=partial(local_actor, model=model), mailbox=model.mailbox)
    async with run_system(SupervisorSpec(id="root", children=(child,))):
        yield model


async def ask(model: LocalModel, text: str = "Say hello in one sentence.", limit: int = 12) -> tuple[Reply, str]:
    """Return the reply and what was streamed before it."""
    pieces: list[Piece] = []
    reply = await model.infer(asking(said(1, text), max_output_tokens=limit), pieces.append)
    return reply, "".join(piece.text for piece in pieces)


async def test_it_answers_and_streams_what_it_answers(smollm2):
    async with running() as model:
        reply, streamed = await ask(model)
        assert reply.text.strip()
        assert reply.text == streamed
        assert (reply.provider, reply.model) == ("local", "smollm2")
        assert reply.usage.input > 10
        assert 0 < reply.usage.output <= 12


async def test_one_server_serves_every_inference_and_ends_with_its_actor(smollm2):
    async with running() as model:
        await ask(model)
        pid = model.statistics().pid
        await ask(model)
        assert model.statistics().pid == pid
        assert model.statistics().recent_starts == 1
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_warming_returns_at_once_and_starts_the_server_that_answers_later(smollm2):
    async with running() as model:
        model.warm()
        assert model.statistics().recent_starts == 0
        await ask(model)
        assert model.statistics().recent_starts == 1


async def test_a_crash_is_an_error_to_try_again_and_the_next_inference_finds_a_new_server(smollm2):
    async with running() as model:
        with pytest.raises(ProviderError, match=r"server died: .*\(killed by signal 11\)") as failure:
            await model.infer(asking(said(1, "Tell me a long story.")), crash_at_the_first_word(model))
        assert failure.value.remedy is Remedy.RETRY
        first = model.statistics()
        assert "signal 11" in first.last_death
        reply, _ = await ask(model)
        assert reply.text
        assert model.statistics().recent_starts == 2


def crash_at_the_first_word(model: LocalModel):
    def emit(piece: Piece) -> None:
        pid = model.statistics().pid
        if piece.text and pid is not None:
            os.kill(pid, signal.SIGSEGV)

    return emit


async def test_a_server_killed_while_idle_is_replaced(smollm2):
    async with running() as model:
        await ask(model)
        os.kill(model.statistics().pid, signal.SIGKILL)
        with trio.fail_after(60):
            while model.statistics().pid is not None:
                await trio.lowlevel.checkpoint()
        assert (await ask(model))[0].text


async def test_a_model_that_never_lasts_is_given_up_and_the_user_told(smollm2, tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(smollm2.read_bytes()[:1_000_000])
    async with running(evolve(SMALL, model_path=broken)) as model:
        for _ in range(MOST_STARTS):
            with pytest.raises(ProviderError, match=r"could not be started: .*exit code 1"):
                await ask(model)
        with pytest.raises(ProviderError, match="was started 5 times within 10 minutes") as failure:
            await ask(model)
        assert failure.value.remedy is Remedy.TELL
        assert "--llm" in str(failure.value)


@pytest.mark.parametrize("moment", ["reading", "writing"])
async def test_a_cancelled_inference_frees_the_model_for_the_next_one(smollm2, moment):
    async with running() as model:
        await ask(model)
        with trio.CancelScope() as scope:

            def emit(piece: Piece) -> None:
                if piece.text:
                    scope.cancel()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(model.infer, asking(said(1, LONG)), emit if moment == "writing" else ignore)
                if moment == "reading":
                    await server_is_busy(model)
                    scope.cancel()
        assert scope.cancelled_caught
        reply, _ = await ask(model)
        assert reply.text


async def server_is_busy(model: LocalModel) -> None:
    """Wait until the server's process has used some time of the processor since this was called."""
    pid = model.statistics().pid

    def used() -> int:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[11])

    before = used()
    with trio.fail_after(60):
        while used() < before + 5:
            await trio.lowlevel.checkpoint()


async def test_an_answer_that_fills_the_context_is_cut_off_and_not_ended_well(smollm2):
    async with running(evolve(SMALL, model_path=smollm2, context_size=256)) as model:
        request = asking(said(1, f"Repeat this list of words three times: {LONG} {LONG[:63]}"))
        # The model may stop by itself before the few tokens that are left are used up; it does so once in fifty.
        replies = [await model.infer(request, ignore) for _ in range(5)]
        assert Finish.LENGTH in {reply.finish for reply in replies}
        for reply in replies:
            assert reply.usage.input is not None
            assert reply.usage.output is not None
            filled = reply.usage.input + reply.usage.output >= 256
            assert reply.finish is (Finish.LENGTH if filled else Finish.STOP)
        assert model.context_tokens == 256


async def test_a_prompt_longer_than_the_context_asks_for_compaction(smollm2):
    async with running(evolve(SMALL, context_size=256)) as model:
        with pytest.raises(ProviderError) as failure:
            await ask(model, LONG * 3)
        assert failure.value.remedy is Remedy.COMPACT
        assert failure.value.context_tokens == 256
        assert (failure.value.prompt_tokens or 0) > 256


async def test_its_gate_lets_one_inference_run_at_a_time(smollm2):
    model = LocalModel(SMALL, log=Logger(sink=lambda entry: None, wall=lambda: 0.0), wall=lambda: 0.0)
    gate = ProviderGate.of(model)
    children = (
        ChildSpec(id="server", start=partial(local_actor, model=model), mailbox=model.mailbox),
        ChildSpec(id="gate", start=partial(provider_actor, gate=gate), mailbox=gate.mailbox),
    )
    replies: list[Reply] = []

    async def one() -> None:
        request = asking(said(1, "Hello"), max_output_tokens=4)
        replies.append(await infer_once(model, gate, request, ignore))

    async with run_system(SupervisorSpec(id="root", children=children)), trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(one)
    assert len(replies) == 3
    assert model.limits == Limits(first_byte_s=600.0, idle_s=600.0, concurrency=1), "nobody else waits for this machine"


async def test_tools_are_offered_only_when_asked_for():
    def model(options: LocalOptions) -> LocalModel:
        return LocalModel(options, log=Logger(sink=lambda entry: None, wall=lambda: 0.0), wall=lambda: 0.0)

    assert not model(LocalOptions()).supports_tools
    assert model(LocalOptions(tools=True)).supports_tools


def test_what_keeps_it_from_answering_is_one_line_with_the_remedy(smollm2, tmp_path, monkeypatch):
    assert why_not(LocalOptions()) is None
    with pytest.raises(NotFound, match="set \\[local\\] model_path"):
        check(LocalOptions(model_path=tmp_path / "none.gguf"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "kesoku-actors model pull smollm2" in (why_not(LocalOptions()) or "")
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ConfigError, match="pip install xllamacpp"):
        check(LocalOptions())


async def test_what_keeps_it_from_answering_reaches_the_user_of_an_inference(tmp_path):
    async with running(LocalOptions(model_path=tmp_path / "none.gguf")) as model:
        with pytest.raises(ProviderError, match=r"does not exist; set \[local\] model_path") as failure:
            await ask(model)
        assert failure.value.remedy is Remedy.TELL


async def test_a_death_is_logged_with_its_reason(smollm2):
    entries: list[Entry] = []
    model = LocalModel(SMALL, log=Logger(sink=entries.append, wall=lambda: 0.0), wall=lambda: 0.0)
    child = ChildSpec(id="local", start=partial(local_actor, model=model), mailbox=model.mailbox)
    async with run_system(SupervisorSpec(id="root", children=(child,))):
        await ask(model)
        os.kill(model.statistics().pid, signal.SIGKILL)
        with trio.fail_after(60):
            while not entries:
                await trio.lowlevel.checkpoint()
    assert [(entry.event, entry.fields["reason"]) for entry in entries] == [
        ("the local model's server died", "it said nothing (killed by signal 9)")
    ]
