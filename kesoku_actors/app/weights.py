"""Fetches the embedded model's weights when a chat needs them and they are not here yet."""

from __future__ import annotations

import importlib.util

from kesoku_actors.app.progress import progress_on_stderr
from kesoku_actors.app.settings import Settings
from kesoku_actors.llm import weights
from kesoku_actors.llm.registry import AUTO, LOCAL, ProviderRegistry


def fetch_if_needed(settings: Settings, registry: ProviderRegistry) -> None:
    """Fetch the default model if it is the one that will answer. Raises what `weights.pull` does."""
    if settings.agent.llm not in (AUTO, LOCAL) or settings.local.model_path is not None:
        return
    others = [one for one in registry.factories() if one.auto and one.name != LOCAL]
    if settings.agent.llm == AUTO and any(one.missing() is None for one in others):
        return
    if importlib.util.find_spec("xllamacpp") is not None and weights.installed() is None:
        weights.pull(progress=progress_on_stderr())
