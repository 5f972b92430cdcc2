"""Messages under every schedule: nothing a person says is lost, and nothing is dealt with twice."""

from __future__ import annotations

from typing import Any

from tests.properties.daemon import checks
from tests.properties.daemon.exploring import explored
from tests.properties.daemon.lives import play
from tests.properties.daemon.script import MODES, QUICK, STOPS, TOOLS, scripts
from tests.properties.daemon.seams import DaemonWorld


@explored(certify=True)
async def test_every_message_of_a_person_ends_once(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, MODES, STOPS, rooms=2)
) -> None:
    truth = await play(world, script)
    checks.ends_once(world.notes, truth)
