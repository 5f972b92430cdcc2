"""One life of the genuine server, in a genuine process."""

from __future__ import annotations

import os
import select
import signal
import stat
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
import trio
from attrs import evolve

from kesoku_actors.llm.local_child import ChildOptions, Running, run_server
from kesoku_actors.llm.port import ProviderError, Remedy


@pytest.fixture
def options(smollm2):
    return ChildOptions(
        model_path=smollm2,
        model_name="smollm2",
        context_size=512,
        threads=1,
        cache_ram_mib=16,
        sampling={"temp": 0.0},
        most_tokens=8,
    )


async def start(nursery: trio.Nursery, options: ChildOptions) -> Running:
    return await nursery.start(run_server, options)


def client(running: Running, key: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=httpx2.AsyncHTTPTransport(uds=running.socket_path),
        base_url=running.base_url,
        headers={"Authorization": f"Bearer {key}"},
        timeout=60,
    )


def open_to_all(pid: int) -> tuple[str, str]:
    """Return the arguments of a process, and its environment."""
    process = Path("/proc") / str(pid)
    return (process / "cmdline").read_text(), (process / "environ").read_text()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_it_answers_only_who_knows_the_key_and_only_this_user_reaches_it(nursery, options):
    running = await start(nursery, options)
    assert running.socket_path is not None
    assert stat.S_IMODE(Path(running.socket_path).parent.stat().st_mode) == 0o700
    question = {"messages": [{"role": "user", "content": "Say hello."}]}
    async with client(running, "wrong") as stranger:
        assert (await stranger.post("/v1/chat/completions", json=question)).status_code == 401
    async with client(running, running.key) as friend:
        answer = (await friend.post("/v1/chat/completions", json=question)).json()
    assert answer["model"] == "smollm2"
    assert answer["choices"][0]["message"]["content"]
    assert answer["usage"]["completion_tokens"] <= 8
    nursery.cancel_scope.cancel()


async def test_the_key_can_be_read_neither_from_its_arguments_nor_from_its_environment(nursery, options, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    running = await start(nursery, options)
    arguments, environment = open_to_all(running.pid)
    assert "local_server" in arguments
    assert running.key not in arguments + environment
    assert "sk-secret" not in environment
    nursery.cancel_scope.cancel()


async def test_the_end_of_the_task_is_the_end_of_the_process_and_of_its_folder(options):
    async with trio.open_nursery() as nursery:
        running = await start(nursery, options)
        nursery.cancel_scope.cancel()
    assert running.ended.is_set()
    assert running.obituary.endswith("(exit code 0)")
    assert not is_alive(running.pid)
    assert not Path(running.socket_path).parent.exists()


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
async def test_a_death_is_noticed_and_told_apart(options, blow):
    async with trio.open_nursery() as nursery:
        running = await start(nursery, options)
        os.kill(running.pid, blow)
        await running.ended.wait()
    assert running.obituary.endswith(f"(killed by signal {blow.value})")
    assert not Path(running.socket_path).parent.exists()


async def test_a_truncated_model_is_an_error_for_the_user_with_the_servers_own_reason(smollm2, options, tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(smollm2.read_bytes()[:20_000_000])
    async with trio.open_nursery() as nursery:
        with pytest.raises(ProviderError, match=r"corrupted or incomplete \(exit code 1\)") as failure:
            await start(nursery, evolve(options, model_path=broken))
    assert failure.value.remedy is Remedy.TELL
    assert str(broken) in str(failure.value)


async def test_a_socket_path_too_long_for_the_system_falls_back_to_the_loopback_address(options, tmp_path, monkeypatch):
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    async with trio.open_nursery() as nursery:
        running = await start(nursery, options)
        assert running.socket_path is None
        assert running.base_url.startswith("http://127.0.0.1:")
        async with httpx2.AsyncClient(base_url=running.base_url) as stranger:
            assert (await stranger.get("/v1/models")).status_code == 401
        nursery.cancel_scope.cancel()
    assert list(deep.iterdir()) == []


PARENT = """
import sys, trio
from pathlib import Path
from kesoku_actors.llm.local_child import ChildOptions, run_server
options = ChildOptions(model_path=Path(sys.argv[1]), model_name="m", context_size=512, threads=1, cache_ram_mib=16,
                       sampling={}, most_tokens=8)
async def life(*, task_status):
    await run_server(options, task_status=task_status)
async def main():
    async with trio.open_nursery() as nursery:
        running = await nursery.start(life)
        print(running.pid, running.socket_path, flush=True)
trio.run(main)
"""


def test_it_ends_and_sweeps_up_after_a_parent_that_was_killed(smollm2):
    with subprocess.Popen([sys.executable, "-c", PARENT, smollm2], stdout=subprocess.PIPE, text=True) as parent:
        pid, socket_path = parent.stdout.readline().split()
        child = os.pidfd_open(int(pid))
        parent.kill()
    poll = select.poll()
    poll.register(child)
    assert poll.poll(60_000)  # milliseconds
    os.close(child)
    assert not Path(socket_path).parent.exists()
