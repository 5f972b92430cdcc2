"""Deterministic simulation for trio programs; it knows nothing of the rest of this project.

* `image`: what is left of a file when the power comes back
* `disk`: a disk under SQLite that loses power, fills up and fails when told to
"""

from kesoku_actors.harness.disk import (
    CHANGES,
    Disk,
    Fault,
    Kind,
    Operation,
    PowerLost,
    Script,
    full,
    mounted,
    no_fault,
    power_loss_at,
)
from kesoku_actors.harness.image import EVERYTHING, NOTHING, PREFIX, SUBSET, SURVIVALS, Survival

__all__ = [
    "CHANGES",
    "EVERYTHING",
    "NOTHING",
    "PREFIX",
    "SUBSET",
    "SURVIVALS",
    "Disk",
    "Fault",
    "Kind",
    "Operation",
    "PowerLost",
    "Script",
    "Survival",
    "full",
    "mounted",
    "no_fault",
    "power_loss_at",
]
