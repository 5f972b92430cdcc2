"""The model and the tools of the simulated daemon: what a person says decides what they do.

The model is the public scripted one. It and the tools note what happens to them, for the checkers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import trio
from attrs import define, field

from kesoku_actors.harness.world import World
from kesoku_actors.llm.port import Emit, ProviderError, Remedy, Reply, Request
from kesoku_actors.llm.scripted import Call, Rule, Say, Scenario, ScriptedModel, Stall, Think
from kesoku_actors.protocol import awaits_attachments
from kesoku_actors.tools import ToolContext

TALK: Final = "talk"
"""An answer that takes three seconds."""
HELLO: Final = "hello"
"""An answer at once."""
WORK: Final = "work"
"""One call of three seconds."""
BOTH: Final = "both"
"""Two calls at once."""
CHAIN: Final = "chain"
"""A call whose result asks for another one."""
RISKY: Final = "risky"
"""A call that needs a person's yes."""
THREAD: Final = "thread"
"""A call that runs in a thread."""
LONG: Final = "long"
"""A call that goes on as a job after two seconds, and ends after eight."""
ENDLESS: Final = "endless"
"""A call that is ended at its deadline, 300 s, if not before."""
MANY: Final = "many"
"""Three calls at once, of which the first ends last."""
GUARDED: Final = "guarded"
"""A call that needs a person's yes, and one that needs none."""
AHEAD: Final = "ahead"
"""A call that goes on as a job, and one beside it that outlasts the job."""
HANG: Final = "hang"
"""A stream that stalls: only another message or a stop ends it soon."""


def _work(seconds: float, *, again: bool = False) -> Call:
    return Call(name="work", arguments={"seconds": seconds, "again": again})


def _risky() -> Call:
    return Call(name="risky", arguments={"seconds": 1.0})


def _long() -> Call:
    return Call(name="long", arguments={"seconds": 8.0})


SCENARIO: Final = Scenario(
    rules=(
        Rule(when_said=TALK, moves=(Think(thought="well", word_delay_s=0.5), Say(text="a b c", word_delay_s=1.0))),
        Rule(when_said=WORK, moves=(Say(text="I do.", word_delay_s=0.5), _work(3.0))),
        Rule(when_said=BOTH, moves=(_work(2.0), _work(5.0))),
        Rule(when_said=MANY, moves=(_work(5.0), _work(1.0), _work(3.0))),
        Rule(when_said=GUARDED, moves=(_risky(), _work(2.0))),
        Rule(when_said=AHEAD, moves=(_long(), _work(10.0))),
        Rule(when_said=CHAIN, moves=(_work(1.0, again=True),)),
        Rule(when_said=RISKY, moves=(_risky(),)),
        Rule(when_said=THREAD, moves=(Call(name="count", arguments={}),)),
        Rule(when_said=LONG, moves=(_long(),)),
        Rule(when_said=ENDLESS, moves=(_work(1_000.0),)),
        Rule(when_said=HANG, moves=(Say(text="wait", word_delay_s=0.5), Stall())),
        Rule(when_result="again", moves=(Say(text="Once more."), _work(2.0))),
        Rule(when_result="", moves=(Say(text="Done.", word_delay_s=0.5),)),
        Rule(when_said="", moves=(Say(text="Yes."),)),
    )
)


@define(eq=False)
class NotedModel(ScriptedModel):
    """The scripted model, noting its inferences; with faults it is overloaded or cut off."""

    world: World = field(kw_only=True)
    is_alive: Callable[[], bool] = field(kw_only=True)
    """Whether this life of the program goes on: what is torn down with it says nothing."""
    fails: float = field(default=0.0, kw_only=True)
    """How often an inference fails."""

    async def infer(self, request: Request, emit: Emit) -> Reply:
        """Play what the scenario has for the request."""
        about = {
            "session": request.session_id,
            "inference": request.inference_id,
            "read": tuple(row.id for row in request.history),
            "missing": tuple(row.id for row in request.history if awaits_attachments(row.metadata)),
        }
        note = partial(_note, self.world, self.is_alive, about)
        note("thinks")
        try:
            if self.fails and self.world.fault("model overloaded", self.fails):
                raise ProviderError("overloaded", remedy=Remedy.RETRY, kind="overloaded")
            reply = await super().infer(request, emit)
            if self.fails and self.world.fault("stream cut", self.fails):
                raise ProviderError("the stream ended", remedy=Remedy.RETRY, kind="cut")
        except trio.Cancelled:
            note("cancelled")
            raise
        except ProviderError:
            note("failed")
            raise
        note("thought", calls=len(reply.calls))
        return reply


@define(eq=False)
class Tools:
    """Tools whose runs are noted."""

    world: World
    is_alive: Callable[[], bool]

    async def work(self, seconds: float, context: ToolContext, again: bool = False) -> str:
        """Work for a while."""
        return await self._run(seconds, context, "again" if again else "worked")

    async def risky(self, seconds: float, context: ToolContext) -> str:
        """Do something that somebody has to allow."""
        return await self._run(seconds, context, "dared")

    async def long(self, seconds: float, context: ToolContext) -> str:
        """Work for longer than a call may take."""
        return await self._run(seconds, context, "at last")

    def count(self, context: ToolContext) -> str:
        """Count in a thread."""
        note = self._noting(context)
        note("began")
        note("ended")
        return "counted"

    async def _run(self, seconds: float, context: ToolContext, result: str) -> str:
        note = self._noting(context)
        note("began")
        try:
            await trio.sleep(seconds)
        except trio.Cancelled:
            note("killed")
            raise
        note("ended")
        return result

    def _noting(self, context: ToolContext) -> Callable[[str], None]:
        about = {"call": context.call_id, "session": context.session_id}
        return partial(_note, self.world, self.is_alive, about)


def _note(world: World, is_alive: Callable[[], bool], about: dict[str, Any], kind: str, **more: Any) -> None:
    if is_alive():
        world.note(kind, **about, **more)
