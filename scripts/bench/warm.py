"""Goal 33: how long the event loop stands still while a provider's SDK is imported and warmed in its thread.

A task on the loop asks to be woken every two milliseconds; how late it is then is how long everybody waits. The floor
is the bound itself, 50 ms; each round is a process of its own, because a module is imported once. Wall time: what else
runs on the machine counts too. Run `scripts/python -m scripts.bench.warm`.
"""

from __future__ import annotations

import json
import sys
from time import time
from typing import Final

import trio

from kesoku_actors.llm.classify import Source
from kesoku_actors.llm.claude import ClaudeAccess, ClaudeModel
from kesoku_actors.llm.gemini import GeminiAccess, GeminiModel
from kesoku_actors.log import Logger
from scripts.bench.report import Row, show
from scripts.bench.stalls import longest_stall, stall_rows

NAMES: Final = ("claude", "gemini")


def stall(name: str) -> None:
    """Warm a provider and say how long the loop stood still at most, in seconds."""
    print(json.dumps(trio.run(_stall, name)))


async def _stall(name: str) -> float:
    log, source = Logger(sink=lambda _entry: None, wall=time), Source(provider=name)
    model: ClaudeModel | GeminiModel
    if name == "claude":
        model = ClaudeModel(
            source=source, model="claude-haiku-4-5", access=ClaudeAccess(api_key="k"), log=log, wall=time
        )
    else:
        model = GeminiModel(source=source, model="gemini-3-flash", access=GeminiAccess(api_key="k"), log=log, wall=time)
    stood_still = await longest_stall(model.warm)
    await model.aclose()
    return stood_still


def rows() -> list[Row]:
    """Measure both providers; takes about half a minute."""
    return stall_rows(33, "loop stall while {} warms", "warm", NAMES)


def main() -> int:
    """Print the rows; 0 when every goal is reached."""
    return 0 if show(rows()) else 1


if __name__ == "__main__":
    sys.exit(main())
