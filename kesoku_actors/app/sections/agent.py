"""`[agent]` and `[prices."model"]`: which model answers, how it deals with people, and what a turn may use. Pure."""

from __future__ import annotations

from kesoku_actors.app.sections.rules import Count, Few, Lines, Money, Price, Seconds, Steps, Text, Zone
from kesoku_actors.protocol import BusyMode
from kesoku_actors.values import frozen


@frozen(kw_only=True)
class Agent:
    """A limit that is `None` does not exist."""

    llm: Text = "auto"
    """The name of a provider, or `auto`: the first one with credentials, else the local model."""
    system_prompt: Lines | None = None
    """Who the agent is and how it talks; `None`: Kesoku. Tools, skills, folder and date are told after it."""
    time_zone: Zone | None = None
    """Whose day it is in the prompt; `None`: the machine's."""
    busy_mode: BusyMode = BusyMode.INTERRUPT
    """What a message does that arrives while a turn runs (I5)."""
    max_steps: Steps = 50
    """Inferences of one turn (B4)."""
    max_turn_seconds: Seconds = 900.0
    """Not counting waits for a person (B4)."""
    max_turn_tokens: Count | None = None
    """What may go into and come out of the models in one turn (B4)."""
    max_turn_cost: Money | None = None
    """US dollars; needs `[prices]` of the model."""
    max_cost_per_day: Money | None = None
    """US dollars of all sessions in a UTC day; needs `[prices]` of the model."""
    max_waiting: Count = 100
    """Messages of people that may wait in one session (B4)."""
    parallel_tools: Few = 4
    """Calls of one batch that run at once (I1)."""
    failover: tuple[Text, ...] = ()
    """Providers to try, in order, when the first one is down (P2)."""
    resume_within_s: Seconds = 86_400.0
    """A turn begun longer ago is not resumed after a restart (C2)."""
    model_titles: bool = True
    """Ask the model for a session's title after its first answer; the first words of the session otherwise."""
    turn_log: bool = True
    """Write every inference, request and reply, as a file into the session's folder (P4)."""
    turn_log_files: Count = 200
    """How many of them are kept in a session, the newest; and never more than 64 MiB."""


@frozen(kw_only=True)
class ModelPrice:
    """US dollars per million tokens."""

    input: Price
    output: Price
    cached: Price | None = None
    """Input read from the provider's cache; priced as `input` when unknown."""
    written: Price | None = None
    """Input written to it, as Claude's is; priced a quarter higher than `input` when unknown."""
