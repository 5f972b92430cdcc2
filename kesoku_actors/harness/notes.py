"""What a program notes about itself while it runs: the trace that checkers read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.sites import Site


class NoField(HarnessError, KeyError):
    """A checker asks for a field that a note does not have: nothing is known of the property."""

    def __str__(self) -> str:
        return str(self.args[0])


@frozen(kw_only=True)
class Note:
    """One event."""

    kind: str
    fields: Mapping[str, Any] = field(factory=dict)
    number: int = 0
    """Its place among the notes of the run."""
    step: int = 0
    """Of the run."""
    lane: str = ""
    """The label of the task that noted it."""
    lane_step: int = 0
    """How many steps this task had taken."""
    time: float = 0.0
    """Virtual seconds since the run began."""
    site: Site | None = None
    steps_of: Mapping[str, int] = field(factory=dict, repr=False)
    """How many steps each task had taken, by its label."""

    def __getitem__(self, name: str) -> Any:
        """Return a field. Raises `NoField`."""
        try:
            return self.fields[name]
        except KeyError:
            raise NoField(f"a note without the field {name!r}: {self}") from None

    def __str__(self) -> str:
        told = " ".join(f"{name}={value!r}" for name, value in self.fields.items())
        where = f" at {self.site}" if self.site is not None else ""
        return f"{self.kind} {told}".strip() + f" by `{self.lane}`{where}, step {self.step}, {self.time:g} s"
