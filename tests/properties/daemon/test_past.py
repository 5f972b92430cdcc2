"""What happened long ago: who begins to listen there hears all of it, page by page."""

from __future__ import annotations

from typing import Any, Final

from tests.properties.daemon import checks
from tests.properties.daemon.exploring import explored
from tests.properties.daemon.lives import Play
from tests.properties.daemon.past import long_past
from tests.properties.daemon.script import CLEARS, QUICK, TOOLS, scripts
from tests.properties.daemon.seams import DaemonWorld

LONG_PAST: Final = long_past()
"""Made outside of a run, by the program itself."""


@explored(share=0.5)
async def test_b1_a_listener_that_begins_in_the_past_hears_all_of_it_once(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, CLEARS)
) -> None:
    one = Play(world=world, script=script, past=LONG_PAST)
    await one.go()
    checks.told_whole(world.notes, one.truth())
