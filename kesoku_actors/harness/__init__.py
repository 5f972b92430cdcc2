"""Deterministic simulation and exploration of schedules for trio programs; nothing else of this project is needed.

    from kesoku_actors.harness import Hold, explore

    @explore(runs=500, certify=Hold(1))
    async def test_each_pear_is_sold_once(): ...

A test with `@explore` is run under many schedules; one that fails is reduced to a few named events, and told with the
two tasks that race, their lines, and a run that passes. The section "A harness for your own trio programs" of the
README is a tutorial of ten minutes. The parts:

* `front`: the function and the decorator `explore`; `pytest_plugin` and `cli` are the other doors; `stateful`: state
  machines of Hypothesis whose rules post to a program that lives on between them
* `control`: one run of a program, in which a strategy decides every step; it alone imports trio
* `strategy`, `strategies`, `systematic`, `portfolio`, `named`: who decides; a strategy of one's own is two methods
* `search`, `exploring`, `jobs`, `campaign`: many runs, to a `verdict`; `drawn`, `inputs`, `choices`: with the arguments
  that Hypothesis draws, anew for each run
* `hold`, `reduce`, `schedule`, `token`, `token_file`: a failing run as few named events, and as something to paste
* `diagnosis`, `observe`, `cause`, `witnesses`, `story`, `report`: why it fails, for a person
* `zoo`: programs with planted bugs, to measure strategies by: `kesoku-actors check --zoo --strategy FILE.py:NAME`
* `world`: what a program would reach outside for: clock, disk, network, children, threads, faults, crashes; `allow`:
  what it may reach outside for all the same
* `checks`: pure functions over what a program noted: order, spans, temporal logic, histories
* `image`, `disk`: a disk under SQLite that loses power, fills up and fails when told to

What it does not do:

* It does not see races between real threads: code in a thread is one step, or is refused. A data race within one line
  of Python is not found.
* It does not run asyncio programs; programs of anyio are run on trio.
* It does not prune: schedules that differ only in the order of independent steps are run each (no partial-order
  reduction). The number of happens-before classes tells how many differ, as far as trio's primitives and what is
  declared with `shared` tell; of plain state that is not declared it knows nothing while it searches.
* It runs more orders than trio's own scheduler would alone: any runnable task may be next, where trio goes round in
  batches. A wake-up from a thread, a socket or a timer makes such orders in production. Each report says which
  scheduler can do it: strict, shuffle, free, or free + time.
* Without a certificate it samples: that nothing was found is no proof. With `certify=Hold(b)` it has run every
  schedule with at most `b` holds, ticks and faults, each hold until nothing else can run, with the inputs that were
  drawn; nothing is said of those with more, of holds that end earlier, and of other inputs.
* What a report says of plain state is found by watching lines of source and what they name. What is used through
  another name within a call to a library is not seen; such events are missing from the report, never from the search.
* Arguments are drawn before a run, not in it: what draws while a program runs, as `st.data()`, `st.functions()` and
  `st.randoms()` do, is refused. A token carries literals as they are, and other drawn values as the choices of
  Hypothesis's that make them; when the strategies were changed since, it says so. Of pytest's fixtures it carries
  those that are literals; the others are had again by `pytest --harness-replay`.
* A program has to do the same for the same schedule. What it takes from the clock, from chance or from earlier runs
  is refused or found out, and ends in "nondeterminism", not in a verdict.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kesoku_actors.harness.control import Limits
    from kesoku_actors.harness.control.footprints import shared
    from kesoku_actors.harness.disk import (
        CHANGES,
        Disk,
        Fault,
        Kind,
        Operation,
        PowerLost,
        Script,
        full,
        mounted,
        no_fault,
        power_loss_at,
    )
    from kesoku_actors.harness.front import Inconclusive, ProgramFails, explore
    from kesoku_actors.harness.image import EVERYTHING, NOTHING, PREFIX, SUBSET, SURVIVALS, Survival
    from kesoku_actors.harness.portfolio import Portfolio
    from kesoku_actors.harness.strategies import PCT, POS, SURW, Random, Shuffle, Strict
    from kesoku_actors.harness.systematic import HoldBound as Hold
    from kesoku_actors.harness.verdict import Certificate, Outcome, Verdict
    from kesoku_actors.harness.world import World, fault, note

__all__ = [
    "CHANGES",
    "EVERYTHING",
    "NOTHING",
    "PCT",
    "POS",
    "PREFIX",
    "SUBSET",
    "SURVIVALS",
    "SURW",
    "Certificate",
    "Disk",
    "Fault",
    "Hold",
    "Inconclusive",
    "Kind",
    "Limits",
    "Operation",
    "Outcome",
    "Portfolio",
    "PowerLost",
    "ProgramFails",
    "Random",
    "Script",
    "Shuffle",
    "Strict",
    "Survival",
    "Verdict",
    "World",
    "explore",
    "fault",
    "full",
    "mounted",
    "no_fault",
    "note",
    "power_loss_at",
    "shared",
]

_WHERE: Final = {
    "control": ("Limits",),
    "control.footprints": ("shared",),
    "disk": (
        *("CHANGES", "Disk", "Fault", "Kind", "Operation", "PowerLost", "Script"),
        *("full", "mounted", "no_fault", "power_loss_at"),
    ),
    "front": ("Inconclusive", "ProgramFails", "explore"),
    "image": ("EVERYTHING", "NOTHING", "PREFIX", "SUBSET", "SURVIVALS", "Survival"),
    "portfolio": ("Portfolio",),
    "strategies": ("PCT", "POS", "SURW", "Random", "Shuffle", "Strict"),
    "systematic": ("Hold",),
    "verdict": ("Certificate", "Outcome", "Verdict"),
    "world": ("World", "fault", "note"),
}
"""Which module each name is in. It is imported when the name is first used: the disk wants apsw, which may be missing,
and a trio that control does not know is to be told as such and not as an error of an import."""
_RENAMED: Final = {"Hold": "HoldBound"}


def __getattr__(name: str) -> Any:
    for module, names in _WHERE.items():
        if name in names:
            found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{module}"), _RENAMED.get(name, name))
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
