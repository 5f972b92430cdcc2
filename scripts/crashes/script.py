"""What people do in a campaign, and what the model answers.

Tools, interruptions, a stop, a force, a clear, every busy mode, a file, an edit and a withdrawal, a job, and calls
that wait for a yes.

The model is the scripted one with rules alone, so that what it says follows from the history and it goes on wherever a
kill left it. Every command of a tool writes its name into one file, which counts the runs of it over all lives.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, Literal

from attrs import frozen

from kesoku_actors.protocol import BusyMode


@frozen
class Say:
    """Post a message under this external id, and go on when so much is done."""

    id: str
    text: str
    until: Literal["posted", "calls", "ended"] = "ended"
    """It is stored; its turn has calls, or is over; it is over."""
    file: str | None = None
    """What is written in the file that comes with it."""


@frozen
class StopTurn:
    """Stop the turn of this message."""

    id: str


@frozen
class ForceTurn:
    """Stop the turn of this message, and end what it runs."""

    id: str


@frozen
class Edit:
    """Write a waiting message anew."""

    id: str
    text: str


@frozen
class Withdraw:
    """Take a waiting message back."""

    id: str


@frozen
class Decide:
    """Say yes, or no, to whatever waits for it in the turn of this message, until it is over."""

    id: str
    approved: bool


@frozen
class AwaitJobs:
    """Wait until every job of this message's session has ended and is told of."""

    id: str


@frozen
class Clear:
    """Clear the session of this message."""

    id: str


@frozen
class SetMode:
    """Set the channel's busy mode."""

    mode: BusyMode


Step = Say | StopTurn | ForceTurn | Clear | SetMode | Edit | Withdraw | Decide | AwaitJobs

SCRIPT: Final[dict[str, tuple[Step, ...]]] = {
    "cake": (
        Say("cake-1", "Bake a cake.", until="calls"),
        Say("cake-2", "Weigh the cake."),
        Say("cake-3", "Thank you for the cake."),
    ),
    "pie": (
        Say("pie-1", "Bake a pie.", until="calls"),
        StopTurn("pie-1"),
        Say("pie-2", "Never mind the pie."),
    ),
    "nut": (
        Say("nut-1", "Weigh the nut."),
        Clear("nut-1"),
        Say("nut-2", "Hello again."),
    ),
    "tea": (
        SetMode(BusyMode.COLLECT),
        Say("tea-1", "Weigh the tea.", until="calls"),
        Say("tea-2", "It is green.", until="posted"),
        Say("tea-3", "It is hot."),
    ),
    "soup": (
        SetMode(BusyMode.STEER),
        Say("soup-1", "Weigh the soup.", until="calls"),
        Say("soup-2", "Salt it, too."),
        SetMode(BusyMode.QUEUE),
        Say("soup-3", "Taste the soup.", until="calls"),
        Say("soup-4", "Enough of it."),
    ),
    "log": (
        Say("log-1", "Chop the log.", until="calls"),
        ForceTurn("log-1"),
        Say("log-2", "Leave the log."),
    ),
    "note": (
        SetMode(BusyMode.QUEUE),
        Say("note-1", "Weigh the note.", until="calls"),
        Say("note-2", "It is bleu.", until="posted"),
        Say("note-3", "Forget this.", until="posted"),
        Edit("note-2", "It is blue."),
        Withdraw("note-3"),
        Say("note-4", "Thank you for the note."),
    ),
    "kiln": (
        Say("kiln-1", "Fire the kiln."),
        AwaitJobs("kiln-1"),
        Say("kiln-2", "Thank you for the kiln."),
    ),
    "gate": (
        Say("gate-1", "Open the gate.", until="calls"),
        Decide("gate-1", approved=True),
        Say("gate-2", "Close the gate.", until="calls"),
        Decide("gate-2", approved=False),
        Say("gate-3", "Thank you for the gate."),
    ),
    "map": (
        Say("map-1", "Read the map.", file="North is up."),
        Say("map-2", "Thank you for the map."),
    ),
}
"""What is done in each channel, one step after the other; the channels all at once."""

BACKGROUND: Final = frozenset({"kiln.fire"})
"""Tools that go on behind their results."""

ENDLESS: Final = frozenset({"log.chop"})
"""Tools that run until they are ended."""

TOOLS: Final = {
    "Bake a cake.": ("cake.mix", "cake.heat"),
    "Weigh the cake.": ("cake.weigh",),
    "cake.weigh is done": ("cake.taste",),
    "Bake a pie.": ("pie.mix", "pie.heat", "pie.cool"),
    "Weigh the nut.": ("nut.weigh",),
    "Weigh the tea.": ("tea.weigh",),
    "Weigh the soup.": ("soup.weigh", "soup.salt"),
    "Taste the soup.": ("soup.taste",),
    "Chop the log.": ("log.chop",),
    "Weigh the note.": ("note.weigh",),
    "Fire the kiln.": ("kiln.fire",),
    "Open the gate.": ("gate.unlock", "gate.push"),
    "Close the gate.": ("gate.pull",),
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
[discord]
chatbot_id = "campaign"
[[discord.channels]]
channels = ["gate"]
approve = "always"
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
    seconds = 600 if name in ENDLESS else 0.1
    command = f"echo {name} >> {runs}; sleep {seconds}; echo {name} is done"
    behind = ", background = true" if name in BACKGROUND else ""
    return f'{{ call = "run_shell_command", arguments = {{ command = {json.dumps(command)}{behind} }} }}'
