"""The prompt: ordered layers that make the system text. Pure."""

from kesoku_actors.prompt.layers import BUILT_IN, PromptContext, PromptLayer, system_prompt

__all__ = ["BUILT_IN", "PromptContext", "PromptLayer", "system_prompt"]
