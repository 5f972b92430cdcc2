"""Which calls wait for a person's yes (T7). Pure.

What decides, the most particular first: the rule of the tool, the channel's own setting, the general one. `risky`
leaves it to the tool, which was registered as risky or not:

========================================================================  =====================
`run_shell_command`, `write_file`, `edit_file`, tools of one's own       risky
`read_file`, `list_skills`, `use_skill`, `search_history`, `list_jobs`,  not: they change
`job_output`, `job_stop`                                                 nothing that stays
========================================================================  =====================
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from attrs import field

from kesoku_actors.protocol import Channel
from kesoku_actors.tools.registry import Tool
from kesoku_actors.values import frozen

WITHIN_S: Final = 3_600.0


class Approve(StrEnum):
    """Which calls wait."""

    NEVER = "never"
    RISKY = "risky"
    ALWAYS = "always"


@frozen(kw_only=True)
class ApprovalRules:
    """The rules of one run."""

    approve: Approve = field(default=Approve.NEVER, converter=Approve)
    rules: Mapping[str, Approve] = field(factory=dict)
    """By the name of a tool."""
    channels: Mapping[Channel, Approve] = field(factory=dict)
    within_s: float = WITHIN_S
    """How long a call waits for an answer."""
    can_ask: bool = True
    """Whether somebody is there who can answer; else what needs a yes is denied at once."""

    def needs_yes(self, tool: Tool, channel: Channel | None) -> bool:
        """Say whether a call of `tool` waits for a person."""
        match self._setting(tool, channel)[0]:
            case Approve.NEVER:
                return False
            case Approve.RISKY:
                return tool.risky
            case Approve.ALWAYS:
                return True

    def named(self, tool: Tool, channel: Channel | None) -> str:
        """Return the setting that asks for a yes, as it stands in a configuration."""
        approve, where = self._setting(tool, channel)
        return f'{where} = "{approve}"'

    def _setting(self, tool: Tool, channel: Channel | None) -> tuple[Approve, str]:
        if (rule := self.rules.get(tool.name)) is not None:
            return rule, f"[tools.rules] {tool.name}"
        if channel is not None and (own := self.channels.get(channel)) is not None:
            return own, f"approve of the channel {channel.channel_id}"
        return self.approve, "[tools] approve"
