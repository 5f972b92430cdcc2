"""The page is one inert file: its data can be read back exactly, and nothing in it is code but our own."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

import kesoku_actors.trace
from kesoku_actors.trace import render_page

ASSETS = sorted((Path(kesoku_actors.trace.__file__).parent / "assets").iterdir())
texts = st.text(max_size=60) | st.sampled_from(
    [
        "</script>",
        "<!--<script>",
        "]]>",
        "\u2028",
        "{{script}}",
        "{{policy}}",
        "</title><script>",
        "&lt;",
        "\\u003c",
        "\x00",
    ]
)


class Reader(HTMLParser):
    """Collects elements, their attributes and what stands in each kind of them."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.inside.append((self.elements[-1][0] if self.elements else "", data))


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


def data(title: str, pool: list[str]) -> dict[str, Any]:
    return {"session": {"id": "S", "title": title}, "pool": pool, "turns": []}


@settings(max_examples=150, deadline=None)
@given(texts, st.lists(texts, max_size=5))
@example("</title></script>", ["</script><script>alert(1)</script>", "<!--<script>"])
def test_the_data_is_read_back_exactly_and_no_text_becomes_an_element(title: str, pool: list[str]) -> None:
    page = render_page(data(title, pool))
    plain = read(render_page(data("plain", [])))
    reader = read(page)
    assert [tag for tag, _ in reader.elements] == [tag for tag, _ in plain.elements]
    island = re.search(r'<script type="application/json" id="trace">(.*?)</script>', page, re.DOTALL)
    assert island is not None
    assert json.loads(island[1]) == data(title, pool)
    assert not set(island[1]) & set("<>&\u2028\u2029\x00")


def test_the_policy_names_exactly_the_script_and_the_style_that_are_in_the_page() -> None:
    page = render_page(data("Title", []))
    reader = read(page)
    (policy,) = [at["content"] for tag, at in reader.elements if at.get("http-equiv") == "Content-Security-Policy"]
    script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    style = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert (len(script), len(style)) == (1, 1)

    def name(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    allowed = f"script-src {name(script[0])}; style-src {name(style[0])}"
    assert policy == f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def test_nothing_in_the_page_loads_links_or_handles_inline() -> None:
    page = render_page(data("Title", []))
    for tag, attributes in read(page).elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form", "a")
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "href", "style", "action")]
    assert "://" not in page


def test_the_scripts_make_text_nodes_and_never_markup_or_code() -> None:
    assert len(ASSETS) == 6
    for path in ASSETS:
        text = path.read_text(encoding="utf-8")
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "DOMParser",
        ):
            assert word not in text, f"{path.name} has {word}"
        assert 'setTimeout("' not in text
        assert "import" not in text.replace("important", "")
