"""The commands that the simulated daemon runs: what a person says, the command the model runs then, and its script.

Each prints something at once, so that what is known of it is never nothing. What goes on for long ends by itself at
some time, behind the deadline at which it becomes a job (I8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kesoku_actors.harness.control.procs import Action, Exit, Fork, Ignore, Out, Sleep
from kesoku_actors.llm.scripted import Call, Inference, Rule, Say, Scenario
from tests.properties.daemon import model
from tests.properties.daemon.script import says

_ENDLESS: Final = Sleep(700.0)
_DAYS: Final = Sleep(1e6)

SCRIPTS: Final[Mapping[str, Sequence[Action]]] = {
    "count": (Out(b"one\n"), Sleep(1.0), Out(b"two\n"), Sleep(1.0), Out(b"three\n")),
    "fail": (Out(b"oh\n"), Sleep(0.5), Out(b"no\n"), Exit(3)),
    "meek": (Out(b"here I am\n"), _ENDLESS, Out(b"there I was\n")),
    "deaf": (Ignore(), Out(b"what?\n"), _ENDLESS, Out(b"who?\n")),
    "clan": (Fork((_ENDLESS,)), Fork((Ignore(), _ENDLESS), leaves=True), Out(b"three of us\n"), _ENDLESS),
    "serve": (Fork((_DAYS,), leaves=True), Fork((Ignore(), _DAYS)), Out(b"serving\n")),
    "build": (Out(b"begun\n"), Sleep(200.0), Out(b"half\n"), Sleep(200.0), Out(b"built\n")),
}
"""By command."""


def _run(command: str, *, background: bool = False) -> Call:
    return Call(name="run_shell_command", arguments={"command": command, "background": background})


COUNT: Final = "run count"
"""A command of two seconds that says three things."""
FAIL: Final = "run fail"
"""One that fails."""
PAIR: Final = "run a pair"
"""Two at once."""
MEEK: Final = "run meek"
"""One that ends when it is asked to."""
DEAF: Final = "run deaf"
"""One that has to be killed."""
CLAN: Final = "run clan"
"""Three processes, of which one left the group and ignores TERM."""
SERVE: Final = "run serve"
"""One that ends at once, and leaves two processes behind."""
BUILD: Final = "run build"
"""One that becomes a job at its deadline and ends later."""
BEHIND: Final = "run behind"
"""One that becomes a job at once."""

_MOVES: Final[Mapping[str, Inference]] = {
    COUNT: (_run("count"),),
    FAIL: (_run("fail"),),
    PAIR: (_run("count"), _run("fail")),
    MEEK: (_run("meek"),),
    DEAF: (_run("deaf"),),
    CLAN: (_run("clan"),),
    SERVE: (_run("serve"),),
    BUILD: (_run("build"),),
    BEHIND: (_run("count", background=True),),
}
SCENARIO: Final = Scenario(
    rules=(
        *(Rule(when_said=said, moves=(Say(text="I run it."), *moves)) for said, moves in _MOVES.items()),
        *model.SCENARIO.rules,
    )
)
"""What the model does, commands and all else."""

SHORT: Final = says(COUNT, FAIL, PAIR)
STUBBORN: Final = says(MEEK, DEAF, CLAN)
LASTING: Final = says(BUILD, BEHIND)
SERVERS: Final = says(SERVE)


def script_of(words: Sequence[str]) -> Sequence[Action]:
    """Return the script of a command, as the shell tool starts it: the shell that marks itself, then runs it."""
    return SCRIPTS[words[2].rpartition(" 2>/dev/null; ")[2]]
