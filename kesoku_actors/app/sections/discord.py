"""`[discord]` and `[[discord.channels]]`: the Discord bot. Pure."""

from __future__ import annotations

from typing import Literal

from attrs import field

from kesoku_actors.app.sections.rules import Secret, Text
from kesoku_actors.app.sections.tools import Approve
from kesoku_actors.protocol import BusyMode
from kesoku_actors.values import frozen


@frozen(kw_only=True)
class DiscordChannels:
    """What is different in some channels; `None` leaves the general setting."""

    channels: tuple[Text, ...]
    """Ids or names."""
    llm: Text | None = None
    auto_thread: bool = True
    """Answer a message of the channel in a thread of its own."""
    busy_mode: BusyMode | None = None
    approve: Approve | None = None


@frozen(kw_only=True)
class Discord:
    """Ids, not names, decide who may talk to the bot (T4)."""

    enabled: bool = False
    bot_token: Secret | None = field(default=None, repr=False)
    """Else DISCORD_TOKEN."""
    chatbot_id: Text = "discord"
    user_allowlist: tuple[Text, ...] = ()
    """Ids of users; when not empty, everyone else is refused."""
    admin_ids: tuple[Text, ...] = ()
    """Ids of users who may restart the bot."""
    mention_policy: Literal["ignore", "reply"] = "ignore"
    """Whether someone who is not in the allowlist gets a reply, without tools, to a mention."""
    channels: tuple[DiscordChannels, ...] = ()
