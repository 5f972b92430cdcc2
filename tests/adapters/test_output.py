"""Writing to real descriptors."""

from __future__ import annotations

import os
import random
import sys

import pytest
import trio

from kesoku_actors.adapters import SurfaceGone
from kesoku_actors.adapters.terminal import DescriptorOutput, ViewKind, fitting_kind, stream_output


async def read_all(descriptor: int) -> bytes:
    """Read until the other end is closed."""
    found = b""
    while data := await trio.to_thread.run_sync(os.read, descriptor, 65536):
        found += data
    return found


@pytest.mark.parametrize("is_blocking", [True, False])
async def test_everything_is_written_however_small_the_pipe(is_blocking):
    reader, writer = os.pipe()
    os.set_blocking(writer, is_blocking)
    text = "".join(random.Random(7).choices("abcdé漢👍\n", k=200_000))
    found = []
    async with trio.open_nursery() as nursery:

        async def read() -> None:
            found.append(await read_all(reader))

        nursery.start_soon(read)
        await DescriptorOutput(writer).write(text)
        os.close(writer)
    os.close(reader)
    assert found[0].decode() == text


async def test_a_pipe_that_nobody_reads_is_a_surface_that_is_gone():
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.raises(SurfaceGone, match="Broken pipe"):
        await DescriptorOutput(writer).write("text")
    os.close(writer)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device that is always full")
async def test_a_full_disk_is_a_surface_that_is_gone():
    descriptor = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(SurfaceGone, match="No space left"):
        await DescriptorOutput(descriptor).write("text")
    os.close(descriptor)


async def test_a_reader_that_hangs_holds_up_nothing_and_can_be_left():
    reader, writer = os.pipe()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(DescriptorOutput(writer).write, "x" * 1_000_000)
        assert await trio.to_thread.run_sync(os.read, reader, 1) == b"x"
        nursery.cancel_scope.cancel()
    os.close(reader)  # lets the abandoned thread end
    while trio.to_thread.current_default_thread_limiter().borrowed_tokens:
        await trio.lowlevel.checkpoint()
    os.close(writer)  # not sooner: the thread would write to whatever is opened next under that number


async def test_a_closed_stream_takes_nothing():
    with pytest.raises(SurfaceGone, match="closed before"):
        await stream_output(None).write("text")
    await stream_output(None).write("")


async def test_a_character_the_encoding_lacks_becomes_a_question_mark():
    reader, writer = os.pipe()
    await DescriptorOutput(writer, "ascii").write("⚡ é\n")
    os.close(writer)
    assert await read_all(reader) == b"? ?\n"
    os.close(reader)


def test_a_pipe_gets_the_plain_view():
    reader, writer = os.pipe()
    with os.fdopen(reader), os.fdopen(writer, "w") as stream:
        assert fitting_kind(stream, {"TERM": "xterm"}) is ViewKind.PLAIN
    assert fitting_kind(None, {"TERM": "xterm"}) is ViewKind.PLAIN


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")
def test_a_terminal_gets_the_rich_view_unless_it_cannot_draw():
    master, slave = os.openpty()
    with os.fdopen(slave, "w") as stream:
        assert fitting_kind(stream, {"TERM": "xterm-256color"}) is ViewKind.RICH
        assert fitting_kind(stream, {"TERM": "dumb"}) is ViewKind.PLAIN
        assert fitting_kind(stream, {}) is ViewKind.PLAIN
    os.close(master)
