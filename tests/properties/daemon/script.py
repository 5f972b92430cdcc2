"""What people do to the simulated daemon, and how its lives end: values, and Hypothesis strategies that draw them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

from attrs import field, frozen
from hypothesis import strategies as st

from kesoku_actors.protocol import BusyMode
from tests.properties.daemon import model

PAUSES: Final = (0.0, 0.2, 1.0, 2.5, 6.0)
"""Seconds between what one person does: within a tick, within an answer, within a call, behind all of it."""


@frozen
class Say:
    """Send a message; its words decide what the model does (`model`)."""

    words: str
    pause_s: float = 0.0
    """Before it, as with all that people do."""


@frozen
class Stop:
    """Stop what runs."""

    pause_s: float = 0.0


@frozen
class Force:
    """Force the stop before; it may be a second later, and no sooner (I7)."""

    pause_s: float = 1.1


@frozen
class Clear:
    """Clear the session."""

    pause_s: float = 0.0


@frozen
class Mode:
    """Set the busy mode of the room."""

    mode: BusyMode
    pause_s: float = 0.0


@frozen
class Notice:
    """Something that is no person tells the model (I6)."""

    wakes: bool
    pause_s: float = 0.0


@frozen
class Repeat:
    """The platform sends an event again that it sent before: the one so many events ago (M5)."""

    back: int = 1
    pause_s: float = 0.0


@frozen
class Race:
    """Several messages are posted at once."""

    words: tuple[str, ...]
    pause_s: float = 0.0


@frozen
class File:
    """A message with a file that is settled so many seconds later; none: never, in this life (M8)."""

    words: str
    saved_after_s: float | None
    pause_s: float = 0.0


@frozen
class Skew:
    """The clock on the wall jumps: from now on it is so many seconds ahead."""

    ahead_s: float
    pause_s: float = 0.0


Action = Say | Stop | Force | Clear | Mode | Notice | Repeat | Race | File | Skew


class How(StrEnum):
    """How a life of the program ends."""

    TERMINATED = "terminated"
    """SIGTERM: in order (C7)."""
    KILLED = "killed"
    """The process dies; the machine goes on."""
    CUT = "cut"
    """The power goes."""


@frozen
class End:
    """The end of one life."""

    how: How
    after_s: float


@frozen(kw_only=True)
class Script:
    """What happens in one run."""

    rooms: tuple[tuple[Action, ...], ...]
    ends: tuple[End, ...] = ()
    """Of the first lives; the one after them lives until everything is done."""
    answers: tuple[bool | None, ...] = (True,)
    """What is said of calls that need a yes, by turns; none: nothing for the first minute."""
    settings: dict[str, Any] = field(factory=dict)
    """Of the section `agent`."""


def says(*words: str) -> st.SearchStrategy[Say]:
    """Draw a message with one of these words."""
    return st.builds(Say, st.sampled_from(words), st.sampled_from(PAUSES))


STOPS: Final = st.builds(Stop, st.sampled_from(PAUSES))
FORCES: Final = st.builds(Force, st.sampled_from((0.2, 1.1, 4.0)))
CLEARS: Final = st.builds(Clear, st.sampled_from(PAUSES))
MODES: Final = st.builds(Mode, st.sampled_from(list(BusyMode)), st.sampled_from(PAUSES))
NOTICES: Final = st.builds(Notice, st.booleans(), st.sampled_from(PAUSES))
REPEATS: Final = st.builds(Repeat, st.integers(1, 3), st.sampled_from(PAUSES))
SKEWS: Final = st.builds(Skew, st.sampled_from((-3_600.0, -0.5, 0.0, 0.5, 3_600.0)), st.sampled_from(PAUSES))
RACES: Final = st.builds(
    Race, st.lists(st.just(model.HELLO), min_size=2, max_size=3).map(tuple), st.sampled_from(PAUSES)
)
FILES: Final = st.builds(
    File,
    st.sampled_from((model.HELLO, model.WORK)),
    st.sampled_from((0.0, 2.0, 59.5, 61.0, None)),
    st.sampled_from(PAUSES),
)
QUICK: Final = says(model.HELLO, model.TALK)
TOOLS: Final = says(model.WORK, model.BOTH, model.CHAIN)
BATCHES: Final = says(model.BOTH, model.MANY, model.GUARDED, model.CHAIN)
SAYINGS: Final = st.one_of(TOOLS, QUICK)
ENDLESS: Final = says(model.ENDLESS)
JOBS: Final = says(model.LONG)
AHEAD: Final = says(model.AHEAD)
ASKED: Final = says(model.RISKY, model.GUARDED)
HANGS: Final = says(model.HANG)


ANSWERS: Final = st.lists(st.sampled_from((True, True, False, None)), min_size=1, max_size=3).map(tuple)
"""What is said of calls that need a yes."""
SLOTS: Final = st.sampled_from(({}, {"parallel_tools": 1}))
"""Settings with room for every call, and for one."""
EVERY_MODE: Final = st.sampled_from([{"busy_mode": mode} for mode in BusyMode])
"""Settings with each of the busy modes."""
MODES_AT_FIRST: Final = st.sampled_from(({}, {"busy_mode": BusyMode.STEER}))
"""Settings with the mode that interrupts, and with the one in which a turn that runs hears who speaks."""


def scripts(
    *actions: st.SearchStrategy[Any],
    first: st.SearchStrategy[Any] = SAYINGS,
    rooms: int = 1,
    longest: int = 4,
    ends: Sequence[How] = (),
    most_ends: int = 2,
    **fields: Any,
) -> st.SearchStrategy[Script]:
    """Draw scripts in which somebody does some of these things in each of up to so many rooms, behind a `first` one;
    what is named twice is done more often.

    `fields` are further fields of a `Script`: values, or strategies to draw them by.
    """
    rest = st.lists(st.one_of(*actions), min_size=1, max_size=longest)
    room = st.builds(lambda one, others: (one, *others), first, rest)
    end = st.builds(End, st.sampled_from(list(ends)), st.sampled_from((0.0, 0.5, 1.5, 3.0, 5.0))) if ends else None
    drawn = {name: one if isinstance(one, st.SearchStrategy) else st.just(one) for name, one in fields.items()}
    return st.builds(
        Script,
        rooms=st.integers(1, rooms).flatmap(lambda count: st.tuples(*[room] * count)),
        ends=st.just(()) if end is None else st.lists(end, min_size=1, max_size=most_ends).map(tuple),
        **drawn,
    )
