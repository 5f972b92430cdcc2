"""The gateway: the one door for messages, sessions and commands.

* `gateway`: the face that adapters and workers call
* `broadcast`: the actor that tells listeners and workers what was committed
* `announcements`: what it has to tell; `summons`: whom it calls where no listener would do
* `subscriptions`, `filters`: listeners with cursors (B1)
* `latches`: what waits for a worker (I9)
"""

from kesoku_actors.gateway.announcements import Announcements, Hint
from kesoku_actors.gateway.broadcast import Broadcaster
from kesoku_actors.gateway.gateway import Gateway, GatewayStatistics
from kesoku_actors.gateway.latches import Latch, Latches
from kesoku_actors.gateway.subscriptions import Listening, Subscriptions, SubscriptionStatistics
from kesoku_actors.gateway.summons import Summons

__all__ = [
    "Announcements",
    "Broadcaster",
    "Gateway",
    "GatewayStatistics",
    "Hint",
    "Latch",
    "Latches",
    "Listening",
    "SubscriptionStatistics",
    "Subscriptions",
    "Summons",
]
