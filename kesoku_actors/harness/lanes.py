"""A task as the harness sees it: a lane of the schedule. Pure; the control module makes and moves them.

A lane's label is the same in every schedule of a program: the path of names from the main task down, each with a
number where a parent has started several of one name (`main/worker#2`). Nothing of it depends on ids, hashes or the
order in which other parents spawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from attrs import define, field

TICK: Final = -1
"""In place of a lane's number: time passes although work is runnable."""


@define(eq=False, kw_only=True)
class Lane:
    """One task of one run."""

    number: int
    """In the order of spawning within the run."""
    name: str
    """What the program calls the task."""
    label: str
    parent: Lane | None
    task: Any = field(repr=False)
    """The loop's own task."""
    steps: int = 0
    """How often it has run."""
    spawned: Counter[str] = field(factory=Counter, repr=False)
    """How many children of each name it has started."""
    ended: bool = False
    is_program: bool = True
    """Whether it belongs to the program; a few tasks are the loop's own."""

    @property
    def is_loops_own(self) -> bool:
        """Whether it is one of the two tasks that the loop starts for itself, beside the program's first."""
        return not self.is_program and self.number <= 2

    def child_label(self, name: str) -> str:
        """Return the label of its next child of this name."""
        self.spawned[name] += 1
        count = self.spawned[name]
        return f"{self.label}/{name}" if count == 1 else f"{self.label}/{name}#{count}"


Ready = Sequence[Lane]
"""The lanes that can run, in the order in which they became runnable."""


def short_name(name: str) -> str:
    """Return a task's name without the modules and functions around it: `pkg.mod.f.<locals>.worker` is `worker`."""
    return name.rpartition(".")[2] or name
