"""M8 and case rows A01 to A03: files are saved whole, beneath the workspace, or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
import trio
from trio.testing import MockClock

from kesoku_actors.adapters.saving import LARGEST, NotSaved, SavedFile, discard, in_thread, receive, save
from kesoku_actors.log import Logger
from kesoku_actors.protocol import Message, Status, attachments_in, expected
from tests.paths.house import Home, at_home

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
T = TypeVar("T")


def kept(workspace: Path) -> list[str]:
    return sorted(os.listdir(workspace / "attachments"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_saved_whole_and_for_its_owner_only(tmp_path: Path) -> None:
    saved = save(tmp_path, "cat.png", [PNG[:3], PNG[3:], b""])
    assert saved == SavedFile(path="attachments/cat.png", mime_type="image/png", size=len(PNG))
    assert (tmp_path / saved.path).read_bytes() == PNG
    assert mode(tmp_path / saved.path) == 0o600
    assert mode(tmp_path / "attachments") == 0o700


@pytest.mark.parametrize(
    "filename", ["../../x", "/etc/passwd", "", "..", "x" * 300, "a\x00b\nc", "-rf", ".hidden", "\ud800.txt"]
)
def test_a01_no_name_leads_out_of_the_folder_of_attachments(tmp_path: Path, filename: str) -> None:
    (workspace := tmp_path / "s").mkdir()
    saved = save(workspace, filename, [b"content"])
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    assert [f"attachments/{name}" for name in kept(workspace)] == [saved.path]
    assert (workspace / saved.path).read_bytes() == b"content"


async def test_a02_a_hundred_files_of_one_name_at_once_are_a_hundred_files(tmp_path: Path) -> None:
    paths: list[str] = []

    async def one(number: int) -> None:
        saved = await in_thread(partial(save, tmp_path, "../cat.png", [str(number).encode()]))
        paths.append(saved.path)

    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(one, number)
    assert len(set(paths)) == 100
    assert len(kept(tmp_path)) == 100
    assert {int((tmp_path / path).read_bytes()) for path in paths} == set(range(100))


def test_a02_what_is_there_already_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "attachments").mkdir()
    (tmp_path / "attachments" / "a.txt").write_text("a tool wrote this")
    (tmp_path / "attachments" / "a-2.txt").symlink_to(tmp_path / "elsewhere")
    assert save(tmp_path, "a.txt", [b"new"]).path == "attachments/a-3.txt"
    assert (tmp_path / "attachments" / "a.txt").read_text() == "a tool wrote this"
    assert not (tmp_path / "elsewhere").exists()


def test_a03_a_file_that_is_larger_than_it_may_be_is_cut_off_and_removed(tmp_path: Path) -> None:
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while True:
            read += 1 << 20
            yield bytes(1 << 20)

    with pytest.raises(NotSaved, match="larger than 25 MiB"):
        save(tmp_path, "a.bin", endless())
    assert read == LARGEST + (1 << 20)
    assert kept(tmp_path) == []


def test_a03_a_file_of_just_the_largest_size_is_kept(tmp_path: Path) -> None:
    assert save(tmp_path, "a.bin", [bytes(10)], largest=10).size == 10
    with pytest.raises(NotSaved):
        save(tmp_path, "a.bin", [bytes(10), b"x"], largest=10)


def test_a_transfer_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(NotSaved, match="No space left on device"):
        save(tmp_path, "a.txt", broken())
    assert kept(tmp_path) == []
    assert save(tmp_path, "a.txt", [b"whole"]).path == "attachments/a.txt"


def test_a_partial_file_that_a_crash_left_is_not_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "attachments").mkdir()
    (tmp_path / "attachments" / ".a.txt.part").write_bytes(b"half")
    saved = save(tmp_path, "a.txt", [b"whole"])
    assert (saved.path, (tmp_path / saved.path).read_bytes()) == ("attachments/a-2.txt", b"whole")


@pytest.mark.parametrize("what", ["link to a folder", "file"])
def test_a_folder_that_is_none_is_not_followed(tmp_path: Path, what: str) -> None:
    workspace, outside = tmp_path / "s", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    if what == "file":
        (workspace / "attachments").touch()
    else:
        (workspace / "attachments").symlink_to(outside)
    with pytest.raises(NotSaved):
        save(workspace, "a.txt", [b"x"])
    assert list(outside.iterdir()) == []


def test_a_workspace_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "s").symlink_to(tmp_path / "outside")
    with pytest.raises(NotSaved):
        save(tmp_path / "s", "a.txt", [b"x"])
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_discarded_file_is_gone_also_when_it_was_gone_before(tmp_path: Path) -> None:
    saved = save(tmp_path, "a.txt", [b"x"])
    for _ in range(2):
        discard(tmp_path, saved)
        assert kept(tmp_path) == []


async def here_and_now(call: Callable[[], T]) -> T:
    await trio.lowlevel.checkpoint()
    return call()


def receiving(home: Home, message: Message, workspace: Path, pieces: Iterator[bytes], **limits: int) -> Awaitable[None]:
    log = Logger(sink=lambda _entry: None, wall=trio.current_time)
    return receive(message, 0, pieces, gateway=home.gateway, workspace=workspace, log=log, run=here_and_now, **limits)


async def send(home: Home) -> Message:
    return await home.say("Look.", metadata={"attachments": [expected("cat.png", "image/gif").as_data()]})


async def test_a_received_file_is_read_by_the_turn_that_waited_for_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    (workspace := tmp_path / "files").mkdir()
    async with at_home(tmp_path) as home:
        message = await send(home)
        await receiving(home, message, workspace, iter([PNG]))
        assert (await home.ended(message)).status is Status.PROCESSED
        assert home.prompts() == [["Look.\n[attachment cat.png (image/png): attachments/cat.png]"]]
        assert (workspace / "attachments" / "cat.png").read_bytes() == PNG


async def test_a_file_that_is_not_saved_is_told_with_the_reason(tmp_path: Path, autojump_clock: MockClock) -> None:
    (workspace := tmp_path / "files").mkdir()
    async with at_home(tmp_path) as home:
        message = await send(home)
        await receiving(home, message, workspace, iter([bytes(2 << 20)]), largest=1 << 20)
        await home.ended(message)
        assert home.prompts() == [["Look.\n[attachment cat.png: not saved, it is larger than 1 MiB]"]]
        assert kept(workspace) == []


async def test_a_file_of_a_message_that_is_gone_or_has_it_already_is_not_kept(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    (workspace := tmp_path / "files").mkdir()
    async with at_home(tmp_path, channels=()) as home:
        message = await send(home)
        await receiving(home, message, workspace, iter([PNG]))
        await receiving(home, message, workspace, iter([PNG]))
        assert kept(workspace) == ["cat.png"]
        withdrawn = await send(home)
        assert await home.gateway.withdraw(withdrawn.id)
        await receiving(home, withdrawn, workspace, iter([PNG]))
        assert kept(workspace) == ["cat.png"]
        now = await home.gateway.reader.message(message.id)
        assert now is not None
        assert [item.path for item in attachments_in(now.metadata)] == ["attachments/cat.png"]
