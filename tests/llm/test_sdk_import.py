"""An SDK that cannot be imported is told of in a sentence, whether its client is opened first or an inference comes."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from kesoku_actors.llm.classify import Source
from kesoku_actors.llm.claude import ClaudeAccess, ClaudeModel
from kesoku_actors.llm.gemini import GeminiAccess, GeminiModel
from kesoku_actors.llm.port import ProviderError, Remedy
from kesoku_actors.log import Logger

from .examples import asking, ignore, said

COMMON: dict[str, Any] = {"log": Logger(sink=lambda _entry: None, wall=time.time), "wall": time.time}
MODELS = [
    ("anthropic", ClaudeModel(source=Source(provider="claude"), model="m", access=ClaudeAccess(api_key="k"), **COMMON)),
    (
        "google.genai",
        GeminiModel(source=Source(provider="gemini"), model="m", access=GeminiAccess(api_key="k"), **COMMON),
    ),
    (
        "google.genai",
        GeminiModel(source=Source(provider="gemini"), model="m", access=GeminiAccess(auth_mode="vertex"), **COMMON),
    ),
]


@pytest.mark.parametrize(("package", "model"), MODELS, ids=["claude", "gemini", "gemini by Vertex"])
async def test_a_missing_sdk_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, package: str, model: Any
) -> None:
    for loaded in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"kesoku_actors.llm.{model.name}_sdk", raising=False)
    with pytest.raises(ProviderError, match=f"{model.name}: its SDK cannot be imported; install kesoku-actors again"):
        await model.warm()
    if model.access.auth_mode == "api_key":
        with pytest.raises(ProviderError, match="its SDK cannot be imported") as caught:
            await model.infer(asking(said(1, "Hi")), ignore)
        assert (caught.value.kind, caught.value.remedy) == ("package", Remedy.TELL)
