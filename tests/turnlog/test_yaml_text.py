"""What is written as YAML is read back exactly, by a reader that knows nothing of the writer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from kesoku_actors.turnlog.yaml_text import DEEPEST, TOO_DEEP, Named, Same, to_yaml


def read(text: str) -> Any:
    return YAML(typ="safe").load(text.encode())


odd = st.sampled_from(
    [
        *("---", "...", "- a", "a: b", "a #b", "#", "'", '"', "|", ">", "%", "&x", "*x", "!x", "@", "`", "?", ":", "-"),
        *("true", "No", "null", "~", "1", "0x1f", "1_000", "1e5", ".inf", "12:30", "2024-01-01", "=", "<<", "{}", "[]"),
        *(
            "\n",
            "\n\n",
            "\n\n\n",
            " ",
            "  a",
            "a  ",
            "\t",
            "\ta\n",
            "a\n ",
            " \n a",
            "\r\n",
            "\x85",
            "\u2028",
            "\ufeff",
        ),
        *(
            "\x00",
            "\x1b[31m",
            "\u202e",
            "日本\n語",
            "e\u0301",
            "\U0001f600",
            "\U0001fffe",
            "a" * 300,
            "\\n",
            "---\n---",
        ),
    ]
)
alphabet = st.characters(exclude_categories=["Cs"])
texts = (
    st.text(alphabet, max_size=20) | odd | st.lists(odd, max_size=6).map("".join) | st.text(" \n\ta-:#", max_size=12)
)
numbers = st.integers() | st.floats(allow_nan=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(texts, values, max_size=4))
@example({"a": [[["x\ny", []], {"b": {"c": "1\n2\n"}}], {}], "k" * 400: {"deep": ["\n x\n\n"]}})
def test_a_safe_reader_gets_exactly_what_was_written(document: dict[str, Any]) -> None:
    assert read(to_yaml(document)) == document


@settings(max_examples=300, deadline=None)
@given(texts)
def test_a_text_stays_a_text_wherever_it_stands(text: str) -> None:
    document = {"a": text, "b": [text, [text], {"c": text}], text: None}
    assert read(to_yaml(document)) == document
    assert not set(to_yaml(document)) & set("\x00\x1b\r\x85\u2028\u202e\ufeff")


def test_lines_are_written_as_lines_and_words_as_words() -> None:
    document = {"role": "user", "content": "Dear all,\n  --- hello\n", "list": [{"name": "a", "of": ["it's", "007"]}]}
    assert to_yaml(document) == (
        'role: user\ncontent: |2\n    --- hello\nlist:\n  - name: a\n    of:\n      - it\'s\n      - "007"\n'
    ).replace("|2\n", "|2\n  Dear all,\n")


def test_what_is_named_once_is_read_in_both_places() -> None:
    part = [{"role": "user", "content": "Hi"}]
    read_back = read(
        to_yaml({"history": Named("history", part), "request": {"model": "m", "messages": Same("history")}})
    )
    assert read_back == {"history": part, "request": {"model": "m", "messages": part}}


def test_every_text_is_edited_before_it_is_written_also_a_key() -> None:
    hidden = to_yaml({"my secret": ["a secret\nin lines"]}, lambda text: text.replace("secret", "***"))
    assert read(hidden) == {"my ***": ["a ***\nin lines"]}


@pytest.mark.parametrize("kind", ["list", "object"])
def test_what_is_nested_too_deeply_becomes_a_remark(kind: str) -> None:
    value: Any = "bottom"
    for _ in range(5 * DEEPEST):
        value = [value] if kind == "list" else {"a": value}
    written = to_yaml({"a": value})
    assert TOO_DEEP in written
    assert "bottom" not in written
    read(written)


def test_half_a_surrogate_pair_becomes_a_replacement_character() -> None:
    assert read(to_yaml({"a": "x\ud800y", "b": "x\n\ud800"})) == {"a": "x\ufffdy", "b": "x\n\ufffd"}


def test_what_is_no_data_is_written_as_it_is_shown() -> None:
    assert read(to_yaml({"a": b"\x00", "b": float("nan"), 3: ()}))["a"] == repr(b"\x00")
