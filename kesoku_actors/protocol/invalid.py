"""The refusal of a value that breaks a rule of messages. Pure."""

from __future__ import annotations

from kesoku_actors.errors import Fault


class InvalidMessage(Fault):
    """A message value breaks one of M1 to M4 or M8; the text names the rule."""
