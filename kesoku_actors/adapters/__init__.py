"""The edges: how messages get in from and out to where people are.

Shared by every adapter, and pure but for the last two:

* `fences`: where code fences open and close
* `chunking`: an answer as parts that a platform accepts (case rows 37 and 38)
* `delivery`: what to do next with a leaving message (O2, C5)
* `courier`: delivers
* `saving`: keeps the files that come with messages (M8)

The adapters, which do not know each other: `terminal`.
"""

from kesoku_actors.adapters.chunking import Part, characters, parts, split, utf8_bytes, utf16_units
from kesoku_actors.adapters.courier import DeliveryPort, SendFailed, SendRefused, SurfaceGone, deliver, deliver_channel
from kesoku_actors.adapters.delivery import (
    Action,
    Backoff,
    BackoffPolicy,
    Fact,
    Failed,
    MarkDelivered,
    MarkUndeliverable,
    Plan,
    Refused,
    Send,
    Withdrawn,
    next_action,
    next_leaf,
)

__all__ = [
    "Action",
    "Backoff",
    "BackoffPolicy",
    "DeliveryPort",
    "Fact",
    "Failed",
    "MarkDelivered",
    "MarkUndeliverable",
    "Part",
    "Plan",
    "Refused",
    "Send",
    "SendFailed",
    "SendRefused",
    "SurfaceGone",
    "Withdrawn",
    "characters",
    "deliver",
    "deliver_channel",
    "next_action",
    "next_leaf",
    "parts",
    "split",
    "utf8_bytes",
    "utf16_units",
]
