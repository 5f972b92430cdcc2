"""From settings to the rules of approval (T7)."""

from __future__ import annotations

from kesoku_actors.app.settings import Settings
from kesoku_actors.app.settings_decode import unknown_key
from kesoku_actors.errors import ConfigError
from kesoku_actors.protocol import Channel
from kesoku_actors.tools import JOB_TOOLS, ApprovalRules, Approve, ToolRegistry


def approval_rules(settings: Settings, *, can_ask: bool) -> ApprovalRules:
    """Return the rules of a run; `can_ask`: whether somebody is there who can answer."""
    tools, discord = settings.tools, settings.discord
    return ApprovalRules(
        approve=Approve(tools.approve),
        rules={name: Approve(rule) for name, rule in tools.rules.items()},
        channels={
            Channel(chatbot_id=discord.chatbot_id, channel_id=channel_id): Approve(channels.approve)
            for channels in discord.channels
            if channels.approve is not None
            for channel_id in channels.channels
        },
        within_s=tools.approve_within_s,
        can_ask=can_ask,
    )


def check_rules(settings: Settings, registry: ToolRegistry) -> None:
    """Refuse rules for tools that there are not: nobody may believe in them. Raises `ConfigError`."""
    names = (*registry.names(), *JOB_TOOLS)
    wrong = [name for name in settings.tools.rules if name not in names]
    if wrong:
        raise ConfigError("\n".join(f"tools.rules.{name}: {unknown_key(name, names, {})}" for name in wrong))
