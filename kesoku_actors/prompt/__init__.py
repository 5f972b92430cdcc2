"""The prompt: ordered layers that make the system text.

* `layers`: a layer, what it may know, and the registry of them
* `built_in`: the layers that every run has; pure
* `place`: where a talk takes place, in names that people chose; pure
"""

from kesoku_actors.prompt.built_in import built_in_layers
from kesoku_actors.prompt.layers import (
    DuplicateLayer,
    PromptContext,
    PromptLayer,
    PromptLayers,
    Source,
    system_prompt,
)
from kesoku_actors.prompt.place import Place, place_in

__all__ = [
    "DuplicateLayer",
    "Place",
    "PromptContext",
    "PromptLayer",
    "PromptLayers",
    "Source",
    "built_in_layers",
    "place_in",
    "system_prompt",
]
