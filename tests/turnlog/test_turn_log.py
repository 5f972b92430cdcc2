"""The turn log writes beside the path of events, and nothing that happens to its folder harms a turn (P4, R27, T6)."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field
from ruamel.yaml import YAML
from trio.testing import MockClock, wait_all_tasks_blocked

from kesoku_actors.actors import run_system
from kesoku_actors.actors.spec import SupervisorSpec
from kesoku_actors.clock import Clock
from kesoku_actors.llm.port import ProviderError
from kesoku_actors.llm.scripted import Fail, Say, Scenario, ScriptedModel, Stall
from kesoku_actors.log import Entry, Logger, mask_secrets
from kesoku_actors.store import StoreBusy
from kesoku_actors.turnlog import LoggedProvider, TurnLog, TurnLogOptions, file_name
from kesoku_actors.turnlog.actor import in_thread

from ..llm.examples import asking, ignore, said
from .examples import inference, reply


@define
class Desk:
    """A turn log at work on one folder."""

    log: TurnLog
    folder: Path
    told: list[Entry] = field(factory=list)

    def names(self) -> list[str]:
        return sorted(entry.name for entry in self.folder.iterdir() if entry.name.endswith(".log.yaml"))

    async def write(self, *numbers: int) -> None:
        """Record inferences and wait until they were dealt with."""
        for number in numbers:
            self.log.record(inference(reply(f"Answer {number}"), number=number))
        await wait_all_tasks_blocked()

    @property
    def warnings(self) -> list[str]:
        return [entry.event for entry in self.told]


async def here_and_now(call: Callable[[], None]) -> None:
    await trio.lowlevel.checkpoint()
    call()


async def none_known(_session_id: str, _without: str) -> int:
    await trio.lowlevel.checkpoint()
    return 0


@asynccontextmanager
async def at_work(
    folder: Path, *, steps: Callable[[str, str], Any] = none_known, make: bool = True, **options: Any
) -> AsyncIterator[Desk]:
    told: list[Entry] = []

    def workspace_for(_session_id: str) -> Path:
        if make:
            folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    log = TurnLog(
        options=TurnLogOptions(**{"mask": mask_secrets(["sk-verysecret"]), "run": here_and_now} | options),
        workspace_for=workspace_for,
        count_steps=steps,
        log=Logger(sink=told.append, wall=lambda: 0.0),
    )
    async with run_system(SupervisorSpec(id="root", children=(log.spec(),))):
        yield Desk(log, folder, told)


def content(folder: Path, idx: int) -> Any:
    return YAML(typ="safe").load((folder / file_name(idx)).read_bytes())


async def test_each_inference_is_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        async with at_work(tmp_path / "s") as desk:
            await desk.write(1, 2)
    finally:
        os.umask(before)
    assert desk.names() == [file_name(1), file_name(2)]
    assert [content(desk.folder, idx)["metadata"]["idx"] for idx in (1, 2)] == [1, 2]
    assert content(desk.folder, 2)["response"]["text"] == "Answer 2"
    assert {stat.S_IMODE((desk.folder / name).stat().st_mode) for name in desk.names()} == {0o600}


async def test_known_secrets_are_masked_in_every_text_and_key(tmp_path: Path) -> None:
    body = {"messages": [{"role": "user", "content": "it is\nsk-verysecret"}], "sk-verysecret": "x"}
    async with at_work(tmp_path) as desk:
        desk.log.record(inference(reply("sk-verysecret!"), body=body))
        await wait_all_tasks_blocked()
    assert b"verysecret" not in (tmp_path / file_name(1)).read_bytes()
    assert content(tmp_path, 1)["history"] == [{"role": "user", "content": "it is\n***"}]


async def test_the_index_goes_on_above_the_store_and_above_every_file_that_is_there(tmp_path: Path) -> None:
    asked = []

    async def steps(session_id: str, without: str) -> int:
        asked.append((session_id, without))
        return 5

    async with at_work(tmp_path, steps=steps) as desk:
        await desk.write(1, 2)
    assert desk.names() == [file_name(6), file_name(7)]
    assert asked == [("s", "1.1.1")]
    (tmp_path / "llm-turn-0041.log.yaml").write_text("left by something else")
    async with at_work(tmp_path, steps=steps) as desk:
        await desk.write(3)
    assert file_name(42) in desk.names()
    assert desk.warnings == []


@pytest.mark.parametrize("name", ["99999999999999999999", "1000000", "5x", "-3", "", "\u0665", "1e3"])
async def test_an_impossible_index_is_passed_over(tmp_path: Path, name: str) -> None:
    (tmp_path / f"llm-turn-{name}.log.yaml").write_text("")
    async with at_work(tmp_path) as desk:
        await desk.write(1, 2)
    assert {file_name(1), file_name(2)} < set(desk.names())
    assert len(desk.warnings) == (1 if name.isascii() and name.isdigit() else 0)


async def test_nothing_that_is_there_is_overwritten_or_followed(tmp_path: Path) -> None:
    (folder := tmp_path / "s").mkdir()
    (outside := tmp_path / "outside").write_text("mine")
    async with at_work(folder) as desk:
        await desk.write(1)
        (folder / file_name(2)).symlink_to(outside)
        (folder / file_name(3)).mkdir()
        os.mkfifo(folder / file_name(4))
        await desk.write(2)
    assert outside.read_text() == "mine"
    assert content(folder, 5)["response"]["text"] == "Answer 2"
    assert desk.warnings == []


async def test_a_folder_that_is_gone_costs_one_warning_and_is_written_to_when_it_is_back(
    tmp_path: Path,
) -> None:
    async with at_work(tmp_path / "gone", make=False) as desk:
        await desk.write(1, 2, 3)
        assert desk.warnings == ["the turn log cannot be written"]
        (tmp_path / "gone").mkdir()
        await desk.write(4)
    assert desk.names() == [file_name(1)]
    assert desk.log.statistics().failed == 3


async def test_a_folder_that_is_replaced_by_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "s").symlink_to(tmp_path / "elsewhere")
    async with at_work(tmp_path / "s", make=False) as desk:
        await desk.write(1, 2)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert len(desk.warnings) == 1


async def test_a_folder_that_cannot_be_made_costs_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with at_work(tmp_path / "file" / "s") as desk:
        await desk.write(1, 2)
    assert desk.warnings == ["the folder of the turn log cannot be made"]


async def test_a_full_disk_costs_one_warning_and_leaves_no_half_file(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    big = {"messages": [{"role": "user", "content": "words " * 100_000}]}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with at_work(tmp_path / "s") as desk:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:
            for number in (1, 2):
                desk.log.record(inference(reply(), body=big, number=number))
            await wait_all_tasks_blocked()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert desk.names() == []
        await desk.write(3)
    assert desk.names() == [file_name(3)]
    assert desk.warnings == ["the turn log cannot be written"]


async def test_only_the_newest_files_are_kept_and_nothing_else_is_touched(tmp_path: Path) -> None:
    for name in ("llm-turn-1.log.yaml", "llm-turn-0002.log.yaml", "notes.txt"):
        (tmp_path / name).write_text("old")
    async with at_work(tmp_path, keep=3) as desk:
        await desk.write(*range(6))
    assert desk.names() == ["llm-turn-0002.log.yaml", file_name(6), file_name(7), file_name(8)]
    assert (tmp_path / "notes.txt").exists()


async def test_the_size_of_what_is_kept_is_bounded_too_and_the_newest_always_stays(tmp_path: Path) -> None:
    async with at_work(tmp_path, keep_bytes=1) as desk:
        await desk.write(1, 2, 3)
    assert desk.names() == [file_name(3)]


async def test_what_comes_while_the_log_is_full_is_dropped_with_one_warning_and_nobody_waits(tmp_path: Path) -> None:
    gate = trio.Event()

    async def stuck(call: Callable[[], None]) -> None:
        await gate.wait()
        call()

    async with at_work(tmp_path, capacity=2, run=stuck) as desk:
        desk.log.record(inference(reply()))
        await wait_all_tasks_blocked()
        for number in range(2, 8):
            desk.log.record(inference(reply(), number=number))
        assert desk.log.statistics().dropped == 4
        assert len(desk.warnings) == 1
        gate.set()
    assert len(desk.names()) == 3


async def test_long_histories_that_wait_are_bounded_by_their_messages(tmp_path: Path) -> None:
    async with at_work(tmp_path) as desk:
        for number in range(30):
            desk.log.record(inference(reply(), number=number, history=(said(1, "Hi"),) * 9_000))
        assert desk.log.statistics().waiting == 11
        await wait_all_tasks_blocked()
        await desk.write(31)
    assert len(desk.names()) == 12
    assert desk.log.statistics().dropped == 19


async def test_an_orderly_stop_writes_what_waits(tmp_path: Path) -> None:
    async with at_work(tmp_path, run=in_thread) as desk:
        for number in range(20):
            desk.log.record(inference(reply(), number=number))
    assert len(desk.names()) == 20


async def test_a_disk_that_hangs_holds_a_stop_no_longer_than_the_grace(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async def hangs(_call: Callable[[], None]) -> None:
        await trio.sleep_forever()

    async with at_work(tmp_path, run=hangs) as desk:
        desk.log.record(inference(reply()))
        begun = trio.current_time()
    assert trio.current_time() - begun <= 6


async def test_a_store_that_does_not_answer_leaves_the_index_to_the_files(tmp_path: Path) -> None:
    async def busy(_session_id: str, _without: str) -> int:
        raise StoreBusy("busy")

    (tmp_path / file_name(3)).write_text("")
    async with at_work(tmp_path, steps=busy) as desk:
        await desk.write(1)
    assert desk.names() == [file_name(3), file_name(4)]


async def test_an_inference_beside_the_turns_is_written_as_it_ends(tmp_path: Path) -> None:
    moves = ((Say(text="A title"),), (Fail(kind="auth"),), (Stall(),))
    async with at_work(tmp_path) as desk:
        provider = LoggedProvider(provider=ScriptedModel(Scenario(inferences=moves)), log=desk.log, clock=Clock())
        assert (provider.name, provider.model, provider.supports_tools) == ("scripted", "scenario", True)
        request = asking(said(1, "Hi"), inference_id="aside.1")
        heard: list[str] = []
        await provider.infer(request, lambda piece: heard.append(piece.text))
        with pytest.raises(ProviderError):
            await provider.infer(request, ignore)
        with trio.move_on_after(0):
            await provider.infer(request, ignore)
        await wait_all_tasks_blocked()
    assert "".join(heard) == "A title"
    found = [content(tmp_path, idx) for idx in (1, 2, 3)]
    assert [one["response"]["state"] for one in found] == ["finished", "failed", "cancelled"]
    assert found[0]["metadata"]["root_id"] is None
    assert found[0]["history"] == [{"role": "user", "content": "Hi"}]
