"""Attachments on their way to a model (case rows A04, A05, 67): what it reads goes, of anything else it hears."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from kesoku_actors.llm.media import Item, Media, Unsent
from kesoku_actors.llm.media_files import MediaFiles
from kesoku_actors.llm.media_rules import CLAUDE, GEMINI, MediaRules
from kesoku_actors.log import Entry, Logger
from kesoku_actors.protocol import ATTACHMENTS, Attachment, Message

from .examples import asking, said
from .pictures import claims, pdf, picture

MP3 = b"ID3\x04\0\0\0\0\0\0" + b"\xff\xfb\x90\x64" * 100


def with_files(row: Message, *paths: str, mime_type: str = "image/png") -> Message:
    files = [Attachment(filename=Path(path).name, mime_type=mime_type, path=path).as_data() for path in paths]
    return evolve(row, metadata={**row.metadata, ATTACHMENTS: files})


def files_of(rules: MediaRules, entries: list[Entry] | None = None) -> MediaFiles:
    sink: list[Entry] = entries if entries is not None else []
    return MediaFiles(rules=rules, log=Logger(sink=sink.append, wall=lambda: 0.0))


async def loaded(rules: MediaRules, folder: Path, *paths: str, entries: list[Entry] | None = None) -> list[Item]:
    request = asking(with_files(said(1, "Look"), *paths), workspace=folder)
    return list((await files_of(rules, entries).of(request)).get("m1", ()))


async def one(rules: MediaRules, folder: Path, name: str, data: bytes) -> Item:
    (folder / name).write_bytes(data)
    [item] = await loaded(rules, folder, name)
    return item


def note(item: Item) -> str:
    assert isinstance(item, Unsent)
    return item.note


def sent(item: Item) -> Media:
    assert isinstance(item, Media), item
    return item


def size_of(media: Media) -> tuple[int, int]:
    with Image.open(io.BytesIO(media.data)) as image:
        return image.size


@pytest.mark.parametrize("rules", [CLAUDE, GEMINI])
@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
async def test_a_picture_that_is_taken_goes_byte_for_byte(rules: MediaRules, form: str, tmp_path: Path) -> None:
    data = picture(40, 30, form)
    item = sent(await one(rules, tmp_path, "a.bin", data))
    assert (item.data, item.mime_type) == (data, f"image/{form.lower()}")


async def test_a_picture_over_the_limit_of_bytes_is_made_smaller(tmp_path: Path) -> None:
    data = picture(1500, 1400, noisy=True)
    assert len(data) > 5_800_000
    item = sent(await one(CLAUDE, tmp_path, "noise.png", data))
    assert len(item.base64) <= 5 << 20
    assert max(size_of(item)) <= 1568


@pytest.mark.parametrize(("rules", "edge"), [(CLAUDE, 1568), (GEMINI, 3072)])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "L", "1", "CMYK"])
async def test_a_picture_of_many_pixels_keeps_its_proportions(
    rules: MediaRules, edge: int, mode: str, tmp_path: Path
) -> None:
    data = picture(6000, 1500, "TIFF" if mode == "CMYK" else "PNG", mode=mode) if mode != "CMYK" else _cmyk(6000, 1500)
    item = sent(await one(rules, tmp_path, "wide", data))
    assert size_of(item) == (edge, edge // 4)


def _cmyk(width: int, height: int) -> bytes:
    return picture(width, height, "JPEG", mode="CMYK")


async def test_a_photo_stands_as_it_was_taken(tmp_path: Path) -> None:
    out, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    Image.new("RGB", (4000, 2000)).save(out, "JPEG", exif=exif)
    item = sent(await one(CLAUDE, tmp_path, "photo.jpg", out.getvalue()))
    assert size_of(item) == (784, 1568)


async def test_a_kind_that_one_model_does_not_take_is_made_another(tmp_path: Path) -> None:
    data = picture(20, 20, "GIF")
    assert sent(await one(CLAUDE, tmp_path, "a.gif", data)).mime_type == "image/gif"
    assert sent(await one(GEMINI, tmp_path, "a.gif", data)).mime_type in ("image/png", "image/jpeg")


REFUSED = {
    "of many pixels": (claims(50_000, 50_000), "50,000 x 50,000 pixels"),
    "long": (claims(50_001, 1_000), "50,001 x 1,000 pixels"),
    "of no pixels": (claims(0, 0), "how many pixels"),
    "without pixels": (claims(30, 30), "no whole image/png"),
    "cut off": (picture(30, 30, noisy=True)[:-900], "no whole image/png"),
    "cut off in its header": (b"\x89PNG\r\n\x1a\n\0\0", "how many pixels"),
    "a JPEG without a size": (b"\xff\xd8\xff\xe0", "how many pixels"),
    "of many pages": (pdf(10_000), "10,000 pages"),
    "of many packed pages": (pdf(10_000, packed=True, told=False), "10,000 pages"),
    "locked": (pdf(1) + b"/Encrypt 9 0 R", "encrypted"),
    "packed": (b"PK\x03\x04\x14\0\xff\xff", "reads no application"),
    "empty": (b"", "nothing in it"),
    "blank": (b" \n", "nothing in it"),
    "a long text": (b"x" * (600 << 10), "614,400 bytes"),
    "large": (bytes(26 << 20), "27,262,976 bytes"),
}


@pytest.mark.parametrize("rules", [CLAUDE, GEMINI], ids=["claude", "gemini"])
@pytest.mark.parametrize("what", REFUSED)
async def test_what_cannot_go_is_told_and_logged(rules: MediaRules, what: str, tmp_path: Path) -> None:
    data, reason = REFUSED[what]
    entries: list[Entry] = []
    (tmp_path / "a").write_bytes(data)
    [item] = await loaded(rules, tmp_path, "a", entries=entries)
    assert reason in note(item)
    assert note(item).startswith("[a is not shown to you here: ")
    assert [entry.fields["path"] for entry in entries] == ["a"]


async def test_pages_within_the_limit_sounds_and_films_go_to_who_reads_them(tmp_path: Path) -> None:
    assert sent(await one(CLAUDE, tmp_path, "a.pdf", pdf(100))).mime_type == "application/pdf"
    assert sent(await one(GEMINI, tmp_path, "a.pdf", pdf(1000))).mime_type == "application/pdf"
    assert sent(await one(GEMINI, tmp_path, "a.bin", MP3)).mime_type == "audio/mpeg"
    film = b"\0\0\0\x20ftypisom\0\0\2\0" + b"\0" * 100
    assert sent(await one(GEMINI, tmp_path, "a.mov", film)).mime_type == "video/mp4"
    assert "reads no audio/mpeg" in note(await one(CLAUDE, tmp_path, "a.mp3", MP3))
    assert "reads no application/octet-stream" in note(await one(GEMINI, tmp_path, "fake.mp3", b"\0\1\2\3"))


@pytest.mark.parametrize("text", ["<html><script>alert(1)</script></html>", "<svg onload='x'/>", "日本", "a,b\n1,2"])
async def test_a_text_goes_as_plain_text_whatever_it_is_called(text: str, tmp_path: Path) -> None:
    for name in ("cat.png", "a.html", "a.svg", "a.csv", "a.json"):
        item = sent(await one(CLAUDE, tmp_path, name, text.encode()))
        assert (item.mime_type, item.data) == ("text/plain", text.encode())


async def test_no_link_is_followed_and_what_is_gone_or_no_file_is_told(tmp_path: Path) -> None:
    folder, secret = tmp_path / "session", tmp_path / "secret.txt"
    (folder / "attachments").mkdir(parents=True)
    secret.write_text("the key")
    (folder / "attachments" / "a.txt").symlink_to(secret)
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    paths = ("attachments/a.txt", "up/secret.txt", "pipe", "attachments", "nowhere.txt")
    with trio.fail_after(60):
        items = await loaded(CLAUDE, folder, *paths)
    assert len(items) == len(paths)
    assert all(isinstance(item, Unsent) for item in items)


async def test_the_newest_go_when_not_all_fit(tmp_path: Path) -> None:
    films = [b"\0\0\0\x20ftypisom" + bytes([number]) * (5 << 20) for number in range(4)]
    for number, film in enumerate(films):
        (tmp_path / f"{number}.mp4").write_bytes(film)
    rows = [with_files(said(number + 1, "Look"), f"{number}.mp4") for number in range(4)]
    found = await files_of(GEMINI).of(asking(*rows, workspace=tmp_path))
    assert [isinstance(found[row.id][0], Media) for row in rows] == [False, False, True, True]
    assert "newer files" in note(found["m1"][0])


async def test_a_turn_sends_the_same_bytes_again_and_what_changed_anew(tmp_path: Path) -> None:
    files = files_of(CLAUDE)
    request = asking(with_files(said(1, "Look"), "a.txt"), workspace=tmp_path)
    (tmp_path / "a.txt").write_text("one")
    first, again = [(await files.of(request))["m1"][0] for _ in range(2)]
    assert first is again
    (tmp_path / "a.txt").write_text("two, later")
    assert sent((await files.of(request))["m1"][0]).data == b"two, later"


async def test_without_pillow_what_fits_goes_and_the_rest_names_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    small = picture_without_pillow = claims(7000, 100)
    assert sent(await one(CLAUDE, tmp_path, "a.png", small)).data == picture_without_pillow
    assert "kesoku-actors[images]" in note(await one(CLAUDE, tmp_path, "b.png", claims(9000, 100)))
    gif = b"GIF89a\x10\0\x10\0" + b"\0" * 20
    assert "kesoku-actors[images]" in note(await one(GEMINI, tmp_path, "c.gif", gif))


async def test_a_session_without_a_folder_sends_none() -> None:
    assert await files_of(CLAUDE).of(asking(with_files(said(1, "Look"), "a.png"))) == {}


HEADS = st.sampled_from(
    [
        b"",
        b"\x89PNG\r\n\x1a\n",
        b"GIF89a",
        b"\xff\xd8\xff",
        b"RIFF\0\0\0\0WEBPVP8X",
        b"%PDF-",
        b"ID3\x04",
        b"\0\0\0\x18ftypheic",
    ]
)
SOUND = st.sampled_from([picture(9, 9, form) for form in ("PNG", "GIF", "JPEG", "WEBP", "TIFF", "BMP")])


@pytest.mark.parametrize("rules", [CLAUDE, GEMINI])
@given(
    st.builds(bytes.__add__, HEADS, st.binary(max_size=60))
    | st.builds(lambda data, at, bit: _flipped(data, at, bit), SOUND, st.integers(0, 200), st.integers(0, 7))
)
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_file_can_spoil_a_turn(rules: MediaRules, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.png").write_bytes(data)
    request = asking(with_files(said(1, "Look"), "a.png"), workspace=tmp_path)
    items: Any = trio.run(files_of(rules).of, request)
    assert len(items["m1"]) == 1


def _flipped(data: bytes, at: int, bit: int) -> bytes:
    at %= len(data)
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
