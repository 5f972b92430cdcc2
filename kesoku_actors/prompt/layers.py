"""The system prompt as ordered, owner-tagged layers, and the registry of them.

A layer is a pure function of the prompt's context to a text; an empty text leaves it out. The order is by `position`,
then by registration, so that the prefix of a talk stays the same from one request to the next: what changes most seldom
stands first. What a layer tells of the world outside comes from its `Source`, which is looked at before a prompt and
read, beside the event loop, only when it changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from attrs import field

from kesoku_actors.errors import UsageError
from kesoku_actors.prompt.place import Place
from kesoku_actors.protocol import Channel
from kesoku_actors.values import define, frozen


class DuplicateLayer(UsageError):
    """The name is taken; the text names its owner."""


@frozen(kw_only=True)
class PromptContext:
    """What a layer may know of the turn."""

    session_id: str
    channel: Channel
    wall: float
    """UTC seconds; use it at day granularity, or every request loses its cached prefix."""
    has_tools: bool
    small_model: bool
    """The model has little room: say only what it cannot do without."""
    workspace: Path | None = None
    """The session's folder."""
    place: Place | None = None
    """Where the talk takes place, if the adapter said so."""


@frozen(kw_only=True)
class Source:
    """What a layer tells of, where that can change while the program runs."""

    is_stale: Callable[[], bool]
    """Whether it has to be read again. Asked before every prompt, on the event loop: a look, not a read."""
    read: Callable[[], Awaitable[None]]


@frozen(kw_only=True)
class PromptLayer:
    """One part of the system prompt."""

    name: str
    owner: str
    position: int
    render: Callable[[PromptContext], str]
    source: Source | None = None


@define
class PromptLayers:
    """The layers of one program. What `add` returns undoes exactly that registration, and may be called twice."""

    first: Iterable[PromptLayer] = ()
    """Registered from the start."""
    _layers: dict[str, PromptLayer] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        for layer in self.first:
            self.add(layer)

    def add(self, layer: PromptLayer) -> Callable[[], None]:
        """Register `layer` and return its disposer. Raises `DuplicateLayer`: a name belongs to its first owner."""
        if (present := self._layers.get(layer.name)) is not None:
            raise DuplicateLayer(
                f"the prompt layer {layer.name!r} of {layer.owner} is taken by {present.owner}; rename one of them"
            )
        self._layers[layer.name] = layer

        def dispose() -> None:
            if self._layers.get(layer.name) is layer:
                del self._layers[layer.name]

        return dispose

    def render(self, context: PromptContext) -> str:
        """Return the system prompt."""
        return system_prompt(self._layers.values(), context)

    def is_stale(self) -> bool:
        """Return whether `freshen` has something to read before the next prompt."""
        return any(source.is_stale() for source in self._sources())

    async def freshen(self) -> None:
        """Read what changed."""
        for source in self._sources():
            if source.is_stale():
                await source.read()

    def owners(self) -> dict[str, str]:
        """Return each layer's owner: for the printed tree."""
        return {layer.name: layer.owner for layer in self._layers.values()}

    def _sources(self) -> list[Source]:
        return [layer.source for layer in self._layers.values() if layer.source is not None]


def system_prompt(layers: Iterable[PromptLayer], context: PromptContext) -> str:
    """Return the layers' texts in order, an empty line between them."""
    ordered = sorted(layers, key=lambda layer: layer.position)
    return "\n\n".join(text for layer in ordered if (text := layer.render(context).strip()))
