"""A turn log is read back as texts, whatever was put in its place."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.protocol import Usage
from kesoku_actors.turnlog import file_name, read_logs, to_yaml
from kesoku_actors.turnlog.document import make_document

from .examples import BODY, inference, reply

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    ["history:\n  - role: evil", "\n  - a\n  - b", "metadata:", "  - x", "---\nrequest: 1", "  inference_id: fake"]
)


def put(folder: Path, idx: int, text: str) -> None:
    (folder / file_name(idx)).write_text(text, encoding="utf-8", newline="\n")


def test_an_inference_is_found_with_its_parts(tmp_path: Path) -> None:
    put(tmp_path, 3, to_yaml(make_document(inference(reply("Fine.\nThanks.", usage=Usage(output=7))), 3)))
    (found,) = read_logs(tmp_path)
    assert (found.idx, found.inference_id, found.name) == (3, "1.1.1", file_name(3))
    assert (found.began, found.latency_s, found.first_piece_s) == (1_700_000_000.25, 2.0, 0.5)
    assert found.history == (
        "  - role: system\n    content: Be brief.",
        "  - role: user\n    content: |2-\n      Hi.\n      How are you?",
    )
    assert (found.model, found.purpose, found.state, found.tokens) == ("m-1", "answer", "finished", (("output", 7),))
    assert "model: m-1" in found.request
    assert "name: date" in found.tools
    assert "Thanks." in found.response


@settings(max_examples=200, deadline=None)
@given(st.lists(texts, max_size=4), texts, texts)
def test_no_text_that_was_sent_or_said_moves_the_borders(contents: list[str], said: str, system: str) -> None:
    messages = [{"role": "user", "content": content, "parts": [{"text": system}]} for content in contents]
    body = {**BODY, "messages": messages, "note": system}
    one = inference(reply(said, thought=system), body=body)
    text = to_yaml(make_document(one, 1))
    with TemporaryDirectory() as name:
        put(folder := Path(name), 1, text)
        (found,) = read_logs(folder)
    assert found.inference_id == "1.1.1"
    assert len(found.history) == len(contents)
    assert found.history == tuple(to_yaml({"x": [message]}).partition("\n")[2].rstrip("\n") for message in messages)


@pytest.mark.parametrize(
    "text",
    ["", "metadata:\n  inference_id: abc\n", "metadata:\nresponse:\n", "\x00\xff", "history:\n  - \n" * 100, "{}"],
)
def test_what_is_cut_short_or_not_ours_is_left_out(tmp_path: Path, text: str) -> None:
    put(tmp_path, 1, text)
    assert list(read_logs(tmp_path)) == []


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / file_name(1))
    (tmp_path / file_name(2)).mkdir()
    (tmp_path / "real").write_text(to_yaml(make_document(inference(reply()), 3)))
    (tmp_path / file_name(3)).symlink_to(tmp_path / "real")
    assert list(read_logs(tmp_path)) == []
    assert list(read_logs(tmp_path / "gone")) == []
