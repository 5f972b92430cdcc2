"""What becomes of a call without a run of its own: the outcomes that the tool actor itself says. Pure."""

from __future__ import annotations

from typing import Final

from kesoku_actors.protocol import Outcome
from kesoku_actors.tools.port import ToolOutcome


def invalid(problem: str) -> ToolOutcome:
    """The call cannot run as it was made."""
    return ToolOutcome(outcome=Outcome.ERROR, content=problem, metadata={"reason": "invalid"})


WITHDRAWN: Final = ToolOutcome(
    outcome=Outcome.INTERRUPTED, content="[not run: withdrawn before it started]", metadata={"reason": "withdrawn"}
)
LOST: Final = ToolOutcome(
    outcome=Outcome.UNKNOWN, content="[its run was lost; what it did is unknown]", metadata={"reason": "lost"}
)
NOT_ASKED: Final = ToolOutcome(
    outcome=Outcome.INTERRUPTED, content="[not run: nobody could be asked about it]", metadata={"reason": "not asked"}
)
NOT_RECORDED: Final = ToolOutcome(
    outcome=Outcome.INTERRUPTED, content="[not run: its start could not be recorded]", metadata={"reason": "store"}
)
