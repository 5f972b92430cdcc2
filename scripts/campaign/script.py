"""What people do in a campaign, and what the model answers: three channels with tools, a stop, a clear.

The model is the scripted one with rules alone, so that what it says follows from the history and it goes on wherever a
kill left it. Every command of a tool writes its name into one file, which counts the runs of it over all lives.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from attrs import frozen


@frozen
class Say:
    """Post a message under this external id. `waits`: go on when its turn has ended; else when a tool of it runs."""

    id: str
    text: str
    waits: bool = True


@frozen
class StopTurn:
    """Stop the turn of this message."""

    id: str


@frozen
class Clear:
    """Clear the session."""

    id: str


Step = Say | StopTurn | Clear

SCRIPT: Final[dict[str, tuple[Step, ...]]] = {
    "cake": (
        Say("cake-1", "Bake a cake.", waits=False),
        Say("cake-2", "Weigh the cake."),
        Say("cake-3", "Thank you for the cake."),
    ),
    "pie": (
        Say("pie-1", "Bake a pie.", waits=False),
        StopTurn("pie-1"),
        Say("pie-2", "Never mind the pie."),
    ),
    "nut": (
        Say("nut-1", "Weigh the nut."),
        Clear("nut"),
        Say("nut-2", "Hello again."),
    ),
}
"""What is done in each channel, one step after the other; the channels all at once."""

TOOLS: Final = {
    "Bake a cake.": ("cake.mix", "cake.heat"),
    "Weigh the cake.": ("cake.weigh",),
    "cake.weigh is done": ("cake.taste",),
    "Bake a pie.": ("pie.mix", "pie.heat", "pie.cool"),
    "Weigh the nut.": ("nut.weigh",),
}
"""Words in what must be answered, and the batch of tools that answers them."""

CONFIG: Final = """
[agent]
llm = "scripted"
parallel_tools = 2
[scripted]
scenario_path = "scenario.toml"
[workspace]
durability = "{durability}"
[shell]
mode = "blocklist"
"""


def write_set(folder: Path, durability: str) -> Path:
    """Write the configuration and the scenario of a trial into `folder`; return the configuration's path."""
    runs = folder / "runs"
    rules = [
        _rule("when_result" if words.endswith("is done") else "when_said", words, [_call(name, runs) for name in names])
        for words, names in TOOLS.items()
    ]
    rules.append(_rule("when_result", "", ['{ say = "I have read the results." }']))
    rules.append(_rule("when_said", "", ['{ say = "You are welcome.", word_delay_s = 0.01 }']))
    (folder / "scenario.toml").write_text("\n".join(rules))
    config = folder / "config.toml"
    config.write_text(CONFIG.format(durability=durability))
    return config


def _rule(when: str, words: str, moves: list[str]) -> str:
    return f"[[rules]]\n{when} = {json.dumps(words)}\nmoves = [{', '.join(moves)}]\n"


def _call(name: str, runs: Path) -> str:
    command = f"echo {name} >> {runs}; sleep 0.1; echo {name} is done"
    return f'{{ call = "run_shell_command", arguments = {{ command = {json.dumps(command)} }} }}'
