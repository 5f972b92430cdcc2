"""How far a request's rows and steps are those of the request before. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from operator import is_not
from typing import TypeVar

from kesoku_actors.llm.port import StepContent
from kesoku_actors.protocol import Message

T = TypeVar("T")


def agreeing(old: Sequence[T], new: Sequence[T], is_same: Callable[[T, T], bool]) -> int:
    """Return how many values from the first on are the same. Mostly all are, one by one: that is found out in C."""
    shorter = min(len(old), len(new))
    others = compress(range(shorter), map(is_not, old, new))
    return next((place for place in others if not is_same(old[place], new[place])), shorter)


def is_same_row(old: Message, new: Message) -> bool:
    """Tell whether two rows read the same. Equal metadata will not do: `True` equals 1 and is other JSON."""
    return (
        (old.id, old.role, old.type, old.sender, old.parent_id)
        == (new.id, new.role, new.type, new.sender, new.parent_id)
        and old.content == new.content
        and (old.metadata is new.metadata or not (old.metadata or new.metadata))
    )


def is_same_step(old: StepContent, new: StepContent) -> bool:
    """Tell whether two steps say the same."""
    return (
        old.native is new.native
        and (old.provider, old.model) == (new.provider, new.model)
        and old.message_ids == new.message_ids
    )


def are_same(old: Sequence[object], new: Sequence[object]) -> bool:
    """Tell whether these are one by one the same objects."""
    return len(old) == len(new) and not any(map(is_not, old, new))
