"""Case row A04: a file is what its bytes say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.files.kinds import HEAD_BYTES, mime_type_of

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
SIGNED = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "image/gif": b"GIF89a\x01\0\x01\0",
    "image/webp": b"RIFF\x24\0\0\0WEBPVP8 ",
    "application/pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3",
    "audio/flac": b"fLaC\0\0\0\x22",
    "audio/ogg": b"OggS\0\x02",
    "audio/wav": b"RIFF\x24\0\0\0WAVEfmt ",
    "audio/mp4": b"\0\0\0\x20ftypM4A \0\0\2\0",
    "video/mp4": b"\0\0\0\x20ftypisom\0\0\2\0",
    "video/quicktime": b"\0\0\0\x14ftypqt  \0\0\2\0",
    "video/webm": b"\x1a\x45\xdf\xa3\x9fB\x86\x81\1B\x82\x84webm",
    "image/heic": b"\0\0\0\x18ftypheic\0\0\0\0",
}
NAMES = st.sampled_from(["a", "a.png", "a.JPG", "a.gif", "a.webp", "a.pdf", "a.html", "a.txt", "a.zip", "a.svg", ""])


@pytest.mark.parametrize("mime_type", SIGNED)
@given(name=NAMES)
def test_a_signature_decides_whatever_the_name(mime_type: str, name: str) -> None:
    assert mime_type_of(SIGNED[mime_type], name) == mime_type


@given(head=st.binary(max_size=100), name=NAMES)
def test_a_type_with_a_signature_is_never_believed_without_it(head: bytes, name: str) -> None:
    found = mime_type_of(head, name)
    if not any(head.startswith(signed[:3]) or head[4:8] == b"ftyp" for signed in SIGNED.values()):
        assert found not in SIGNED


@pytest.mark.parametrize("frame", [b"\xff\xfb\x90\x64", b"\xff\xf3\x48\xc4", b"ID3\x04\0\0"])
def test_sound_is_known_by_its_first_frame_or_its_tag(frame: bytes) -> None:
    assert mime_type_of(frame, "a.bin") == "audio/mpeg"
    assert mime_type_of(b"\0\1\2", "a.mp3") == "application/octet-stream"


@given(st.text(max_size=100).filter(lambda text: "\0" not in text and not text.startswith(("GIF8", "%PDF-"))))
def test_text_is_text_also_when_it_is_called_a_picture(text: str) -> None:
    assert mime_type_of(text.encode(), "a.png") == "text/plain"


@pytest.mark.parametrize(
    ("content", "name", "mime_type"),
    [
        (b"<html><script>alert(1)</script></html>", "cat.png", "text/plain"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "cat.png", "text/plain"),
        (b"<html></html>", "page.html", "text/html"),
        (b"# Title", "notes.MD", "text/markdown"),
        (b"", "empty", "text/plain"),
        (b"a\0b", "a.txt", "application/octet-stream"),
        (b"PK\x03\x04\x14\0\xff", "a.zip", "application/zip"),
        (b"\x7fELF\x02\x01\x01\0\xff", "cat.png", "application/octet-stream"),
        ("日本".encode() * HEAD_BYTES, "a", "text/plain"),
        (b"caf\xe9", "latin1.txt", "application/octet-stream"),
        (b"\xff\xd8", "cut.jpg", "application/octet-stream"),
    ],
)
def test_names_only_say_more_where_bytes_leave_it_open(content: bytes, name: str, mime_type: str) -> None:
    assert mime_type_of(content[:HEAD_BYTES], name) == mime_type
