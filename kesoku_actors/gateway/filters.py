"""Which events a listener wants. Pure."""

from __future__ import annotations

from collections.abc import Callable

from kesoku_actors.protocol import Changed, Channel, Event, ModeChanged, Removed, Role, Status, Type
from kesoku_actors.values import frozen

Wants = Callable[[Event, Channel | None], bool]


@frozen(kw_only=True)
class Filter:
    """Every field that is set must match. Rows are judged by all fields, hints by session and channel only."""

    session_id: str | None = None
    channel: Channel | None = None
    chatbot_id: str | None = None
    statuses: frozenset[Status] | None = None
    roles: frozenset[Role] | None = None
    types: frozenset[Type] | None = None
    hints: bool = True
    """Whether anything but rows is wanted."""

    def wants(self, event: Event, channel: Channel | None) -> bool:
        """Tell whether the listener hears `event`; `channel` is where its session lives, if known."""
        match event:
            case Changed(message=row):
                return (
                    self.session_id in (None, row.session_id)
                    and (self.statuses is None or row.status in self.statuses)
                    and (self.roles is None or row.role in self.roles)
                    and (self.types is None or row.type in self.types)
                    and self._in_channel(row.chatbot_id, row.channel_id)
                )
            case ModeChanged():
                return self.hints and self.session_id is None and self._in_channel(event.chatbot_id, event.channel_id)
            case Removed():  # no hint: the end of a row, whatever it was
                return self.session_id in (None, event.session_id) and self._where(channel)
            case _:
                if not self.hints or self.session_id not in (None, event.session_id):
                    return False
                return self._where(channel)

    def _where(self, channel: Channel | None) -> bool:
        if channel is None:
            return self.channel is None and self.chatbot_id is None
        return self._in_channel(channel.chatbot_id, channel.channel_id)

    def _in_channel(self, chatbot_id: str, channel_id: str) -> bool:
        if self.chatbot_id not in (None, chatbot_id):
            return False
        return self.channel is None or (self.channel.channel_id == channel_id and self.channel.chatbot_id == chatbot_id)
