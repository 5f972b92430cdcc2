"""asyncio as it is: the program is run again and again."""

from __future__ import annotations

import asyncio
from functools import partial
from time import process_time

from scripts.bench.rival_programs.table import twin_of
from scripts.bench.rival_programs.twin import once
from scripts.bench.rival_tools.trial import Asked, Search, asked_for, told, tried

PATIENCE = 2.0
"""Seconds after which a run counts as stuck."""


def searched(asked: Asked, fixed: bool, seed: int, schedules: int) -> Search:
    """Run it so many times, or until it fails; a seed means nothing here."""
    del seed
    twin = twin_of(asked.program)

    async def main() -> None:
        async with asyncio.timeout(PATIENCE):
            await once(twin, fixed=fixed)

    began = process_time()
    for number in range(1, schedules + 1):
        try:
            asyncio.run(main())
        except (AssertionError, TimeoutError) as error:
            is_bug = isinstance(error, TimeoutError) == twin.IS_STUCK
            return Search(schedules=number, failure=repr(error), is_bug=is_bug, seconds=process_time() - began)
    return Search(schedules=schedules)


if __name__ == "__main__":
    wanted = asked_for(("repeated",))
    told(tried(wanted, partial(searched, wanted)))
