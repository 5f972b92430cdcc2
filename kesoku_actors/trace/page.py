"""Draws a trace as one HTML file that needs nothing else. Pure.

The data stands in the page once, as JSON that no text in it can leave; the page's own script makes text nodes of it and
never markup. The policy in its head lets nothing run, style or load but what is in the page by its hash: a text that
would still become markup would be inert, and nothing is ever fetched.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

_SCRIPTS: Final = ("text.js", "timeline.js", "detail.js", "page.js")
_HOLE: Final = re.compile(r"\{\{(\w+)\}\}")
_RISKY: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_RISKY_SIGN: Final = re.compile("[<>&\u2028\u2029]")


def render_page(data: Mapping[str, Any]) -> str:
    """Return the page of `trace_data`."""
    style = _asset("page.css")
    script = '(() => {\n"use strict";\n' + "\n".join(map(_asset, _SCRIPTS)) + "})();\n"
    session = data["session"]
    holes = {
        "policy": (
            f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}';"
            " base-uri 'none'; form-action 'none'"
        ),
        "title": html.escape(f"{session['title'] or session['id']} · trace"),
        "style": style,
        "script": script,
        "data": _island(data),
    }
    return _HOLE.sub(lambda hole: holes[hole[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return (files("kesoku_actors.trace") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _island(data: Mapping[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _RISKY_SIGN.sub(lambda sign: _RISKY[sign[0]], text)
