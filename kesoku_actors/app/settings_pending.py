"""Settings whose part of the program does not exist yet. Pure.

A value that promises protection is refused: nobody may believe in what is not there. One that promises a bound or a
service is told of before the run. An entry goes when the part that keeps its promise comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import fields

from kesoku_actors.app.sections import Discord, ToolSettings
from kesoku_actors.app.settings_decode import Problem

_NOBODY_IS_ASKED: Final = "must be 'never': calls do not wait for a person's yes yet, every call would run unasked"
_UNCOUNTED: Final = "has no effect yet: tokens and costs are not bounded; max_steps and max_turn_seconds are"
_NO_EFFECT: Final[Mapping[str, Mapping[str, str]]] = {
    "agent": {
        "max_turn_tokens": _UNCOUNTED,
        "max_turn_cost": _UNCOUNTED,
        "max_cost_per_day": _UNCOUNTED,
        "failover": "has no effect yet: when the model is down, no other one is tried",
    },
    "discord": {"enabled": "has no effect yet: there is no Discord bot"},
}
"""By section and key: what a value other than the default does not do."""


def refuse_tools(tools: ToolSettings) -> Iterator[Problem]:
    """Approval does not exist yet (T7)."""
    if tools.approve != "never":
        yield Problem(("tools", "approve"), _NOBODY_IS_ASKED)


def refuse_discord(discord: Discord) -> Iterator[Problem]:
    """Nor does approval in single channels (T7)."""
    for index, channels in enumerate(discord.channels):
        if channels.approve not in (None, "never"):
            yield Problem(("discord", "channels", index, "approve"), _NOBODY_IS_ASKED)


def without_effect(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what the settings ask for in vain; `sections` are the decoded ones by name."""
    for name, keys in _NO_EFFECT.items():
        defaults = {key.name: key.default for key in fields(type(sections[name]))}
        for key, text in keys.items():
            if getattr(sections[name], key) != defaults[key]:
                yield Problem((name, key), text)
