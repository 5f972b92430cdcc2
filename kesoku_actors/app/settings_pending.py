"""Settings whose part of the program does not exist yet. Pure.

A value that promises a bound or a service is told of before the run. An entry goes when the part that keeps its promise
comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import fields

from kesoku_actors.app.settings_decode import Problem

_NO_EFFECT: Final[Mapping[str, Mapping[str, str]]] = {
    "discord": {"enabled": "has no effect yet: there is no Discord bot"},
}
"""By section and key: what a value other than the default does not do."""


def without_effect(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what the settings ask for in vain; `sections` are the decoded ones by name."""
    for name, keys in _NO_EFFECT.items():
        defaults = {key.name: key.default for key in fields(type(sections[name]))}
        for key, text in keys.items():
            if getattr(sections[name], key) != defaults[key]:
                yield Problem((name, key), text)
