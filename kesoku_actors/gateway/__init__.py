"""The gateway: the one door for messages, sessions and commands.

* `gateway`: the face that adapters and workers call
* `broadcast`: the actor that tells listeners and workers what was committed
* `subscriptions`, `filters`: listeners with cursors (B1)
* `latches`: what waits for a worker (I9)
"""

from kesoku_actors.gateway.broadcast import Broadcaster, BroadcastMessage, Publisher
from kesoku_actors.gateway.gateway import Gateway, GatewayStatistics
from kesoku_actors.gateway.latches import Latch, Latches
from kesoku_actors.gateway.subscriptions import Listening, Subscriptions, SubscriptionStatistics

__all__ = [
    "BroadcastMessage",
    "Broadcaster",
    "Gateway",
    "GatewayStatistics",
    "Latch",
    "Latches",
    "Listening",
    "Publisher",
    "SubscriptionStatistics",
    "Subscriptions",
]
