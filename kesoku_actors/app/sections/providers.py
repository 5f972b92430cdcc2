"""`[gemini]`, `[claude]`, `[openai]`, `[local]` and `[scripted]`: the models. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from attrs import field

from kesoku_actors.app.sections.rules import Secret, Text, Url, between
from kesoku_actors.values import frozen

AuthMode = Literal["api_key", "vertex"]
ThinkingLevel = Literal["minimal", "low", "medium", "high"]


@frozen(kw_only=True)
class Gemini:
    """Google's models, by API key or through Vertex AI."""

    model_name: Text = "gemini-2.5-flash"
    auth_mode: AuthMode = "api_key"
    api_key: Secret | None = field(default=None, repr=False)
    """Else GEMINI_API_KEY, else GOOGLE_API_KEY."""
    project_id: Text | None = None
    """For Vertex AI; else GOOGLE_CLOUD_PROJECT."""
    location: Text = "us-central1"
    """For Vertex AI; else GOOGLE_CLOUD_LOCATION."""
    thinking_level: ThinkingLevel = "high"
    base_url: Url | None = None


@frozen(kw_only=True)
class Claude:
    """Anthropic's models, through Vertex AI or by API key."""

    model_name: Text = "claude-3-5-sonnet@20241022"
    """As Vertex AI writes it; for the API the `@` is a `-`, whichever of them is given."""
    auth_mode: AuthMode | None = None
    """`None`: by key where one is set, else through Vertex AI where a project is set."""
    api_key: Secret | None = field(default=None, repr=False)
    """Else ANTHROPIC_API_KEY."""
    project_id: Text | None = None
    """For Vertex AI; else GOOGLE_CLOUD_PROJECT."""
    location: Text = "us-east5"
    """For Vertex AI."""
    thinking_level: ThinkingLevel | None = None
    """`None`: no thinking is asked for; not every model can."""
    base_url: Url | None = None


@frozen(kw_only=True)
class OpenAI:
    """OpenAI, or any server that speaks its chat completions: Ollama, vLLM, llama.cpp ..."""

    base_url: Url = "https://api.openai.com/v1"
    model_name: Text = "gpt-4.1-mini"
    api_key: Secret | None = field(default=None, repr=False)
    """Else OPENAI_API_KEY. A server at home may need none."""
    context_size: Annotated[int, between(256, 1_048_576)] | None = None
    """Tokens the model reads at once, the reply included; `None`: learnt when it refuses a prompt as too long."""


@frozen(kw_only=True)
class Local:
    """The model that runs here, in a child process, without a key."""

    model_path: Path | None = None
    """A GGUF file; `None`: the model that `kesoku-actors model pull smollm2` fetches."""
    context_size: Annotated[int, between(256, 1_048_576)] = 4096
    """Tokens."""
    threads: Annotated[int, between(1, 1024)] = 1
    tools: bool = False
    """The small default model only chats; offer tools to a larger one."""


@frozen(kw_only=True)
class Scripted:
    """A model that plays a scenario: for demonstrations and tests, never chosen by `auto`."""

    scenario_path: Path | None = None
    """`None`: a short scenario that comes along."""
