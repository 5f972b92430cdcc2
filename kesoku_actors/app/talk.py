"""The interactive chat: the whole daemon around a talk at a terminal, in this process.

It works for the sessions talked in and no other (C2): for one that is gone on with, from then on.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import trio
from attrs import evolve, field

from kesoku_actors.actors import DynamicSpec, SystemFailed, run_system
from kesoku_actors.adapters.commands import ModelInfo
from kesoku_actors.adapters.terminal import stream_output
from kesoku_actors.adapters.terminal.interactive import Answering, Screen, TalkOptions, quiet_keys, run_talk
from kesoku_actors.app.brains import Brains
from kesoku_actors.app.chat_request import TalkRequest
from kesoku_actors.app.chat_sessions import talked_in
from kesoku_actors.app.config_context import use_settings
from kesoku_actors.app.house import build_house
from kesoku_actors.app.locations import CONFIG_NAME, data_folder
from kesoku_actors.app.money import gate_of
from kesoku_actors.app.plan import plan_run, tool_warnings
from kesoku_actors.app.prelude import Prelude, most_telling, prepare, warm
from kesoku_actors.app.settings import Settings
from kesoku_actors.app.signals import signals_to
from kesoku_actors.app.trace import trace_file
from kesoku_actors.clock import real_world
from kesoku_actors.errors import ConfigError
from kesoku_actors.llm.port import Provider
from kesoku_actors.llm.registry import AUTO
from kesoku_actors.log import ERROR, Entry, Mask, mask_secrets, render_line, write_if_open
from kesoku_actors.protocol import Channel
from kesoku_actors.session import Compactions, Remit, receipt
from kesoku_actors.store import ChooseModel, Store
from kesoku_actors.values import define

HISTORY: Final = "chat-history"
"""The file beside the database that keeps what was typed."""


def run_interactive(request: TalkRequest) -> int:
    """Talk until the person leaves and return the exit code. Raises `KesokuError`."""
    log = _ScreenLog(mask=mask_secrets(request.settings.secrets()))
    with quiet_keys(sys.stdin), use_settings(request.settings):
        channel, chosen = trio.run(talked_in, request, real_world())
        prelude = prepare(request.settings, log, request.settings.log_level or ERROR, chosen)
        screen = Screen(
            out=stream_output(sys.stdout),
            clock=prelude.world.clock,
            size=_window_size,
            no_color=bool(os.environ.get("NO_COLOR")),
        )
        log.say = screen.say
        try:
            session_id = trio.run(_interactive, request, channel, prelude, screen, log)
        except SystemFailed as failed:
            raise most_telling(failed) from failed
        finally:
            log.say = None
    if session_id is not None:
        sys.stdout.write(
            f"go on with it: {request.settings.program} chat -r {session_id}{_config_option(request.settings)}\n"
        )
    return 0


async def _interactive(
    request: TalkRequest, channel: Channel, prelude: Prelude, screen: Screen, log: _ScreenLog
) -> str | None:
    settings, world = request.settings, prelude.world
    remit = Remit((channel,))
    plan = plan_run(
        settings,
        prelude.provider,
        world=world,
        log=prelude.log,
        channels=remit,
        edges=lambda _gateway: (),
        probe=lambda _point: None,
        own_tools=prelude.own_tools,
        spares=prelude.spares,
        shelter=prelude.shelter,
    )
    brains = Brains(
        registry=prelude.registry,
        default=plan.brains[0],
        spares=plan.failover,
        gate_for=lambda provider: gate_of(settings, provider, plan.purse),
    )
    models = DynamicSpec(id="models", dynamic=brains.models)
    plan = evolve(
        plan,
        brain_for=brains.of,
        provider_children=(*plan.provider_children, models),
        tool_options=evolve(plan.tool_options, tell=_tell),
        store=evolve(plan.store, refused=lambda: signals.give_up()),  # they are taken when it runs
    )
    house = build_house(plan)
    options = TalkOptions(
        channel=channel,
        screen=screen,
        stdin=sys.stdin,
        history_path=settings.workspace.db_path.with_name(HISTORY),
        home=str(Path.home()),
        working_folder=os.getcwd(),
    )
    system = run_system(house.spec, log=prelude.log_actors)
    with signals_to(system) as signals:
        async with system:
            warm(prelude.provider)
            warn = partial(screen.say, style="yellow")
            desk = TalkDesk(
                brains=brains,
                store=house.store,
                configured=settings.agent.llm,
                compactions=house.compactions,
                remit=remit,
                tool_warnings=tool_warnings(settings, prelude.shelter),
                shell=prelude.shelter.told,
                warn=warn,
                end_job=house.tools.stop_job,
                write_trace=partial(trace_file, house.gateway.reader, settings=settings, clock=world.clock),
            )
            with signals.heard() as numbers:
                session_id = await run_talk(options, gateway=house.gateway, desk=desk, world=world, signals=numbers)
            log.say = None  # the screen is gone; what is still to be told has its place below it
            _say_what_is_waited_for(len(house.tools.statistics().running))
            return session_id
    return None  # a signal ended it before it could talk, or cut it short


def _config_option(settings: Settings) -> str:
    """Return what a command line needs to find these settings again: nothing where they lie in the default place."""
    if settings.source in (None, data_folder() / CONFIG_NAME):
        return ""
    return f" -c {shlex.quote(str(settings.source))}"


def _tell(line: str) -> None:
    write_if_open(sys.stderr, f"kesoku-actors: {line}\n")


def _say_what_is_waited_for(running: int) -> None:
    if running:
        tools = "a tool" if running == 1 else f"{running} tools"
        write_if_open(sys.stderr, f"kesoku-actors: waits for {tools} still at work; Ctrl-C ends that now\n")


@define(eq=False)
class _ScreenLog:
    """Entries as lines in the talk; on standard error where there is none."""

    mask: Mask
    say: Callable[[Sequence[str]], None] | None = None

    def __call__(self, entry: Entry) -> None:
        lines = render_line(entry, self.mask, coloured=False).splitlines()
        if self.say is not None and trio.lowlevel.in_trio_run():
            self.say(lines)
        else:
            write_if_open(sys.stderr, "".join(f"{line}\n" for line in lines))


def _window_size() -> tuple[int, int]:
    try:
        return os.get_terminal_size(sys.stdout.fileno())
    except OSError:  # it is gone; writing will say so
        return (80, 24)


@define(eq=False)
class TalkDesk:
    """What a conversation may ask of the composition (`Desk`)."""

    brains: Brains
    store: Store
    configured: str
    """The model that answers where nobody chose one."""
    compactions: Compactions
    remit: Remit
    tool_warnings: Sequence[str]
    """What to know before a model with tools answers (T2). Told once in a run: with the first such model."""
    shell: str
    """Where commands run, in words."""
    warn: Callable[[Sequence[str]], None]
    """Show lines to the person."""
    write_trace: Callable[[str], Awaitable[Path]]
    """Write the trace of a session and tell where."""
    end_job: Callable[[str], Awaitable[bool]]
    """Ends a job and waits for its end."""
    _is_warned: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._is_warned = self.brains.default.provider.supports_tools  # the start tells it then

    def model_of(self, channel: Channel) -> Answering:
        provider = self.brains.of(channel).provider
        return Answering(model=provider.model, provider=provider.name)

    def models(self, channel: Channel) -> Sequence[ModelInfo]:
        chosen = self.brains.of(channel).provider.name
        return [
            ModelInfo(name=factory.name, missing=factory.missing(), is_chosen=factory.name == chosen)
            for factory in self.brains.registry.factories()
        ]

    async def choose_model(self, channel: Channel, name: str) -> Answering:
        provider = await self.brains.choose(channel, name)
        await self.store.choose_model(ChooseModel(channel=channel, name=None if name == AUTO else provider.name))
        return self._takes_over(channel, provider)

    async def work_for(self, channel: Channel) -> None:
        name = await self.store.reader.chosen_model(channel)
        try:
            self._takes_over(channel, await self.brains.choose(channel, name or self.configured))
        except ConfigError as error:
            self.warn([f"warning: the model chosen in this session cannot answer: {error}"])
        self.remit.add(channel)

    def _takes_over(self, channel: Channel, provider: Provider) -> Answering:
        if provider.supports_tools and not self._is_warned:
            self._is_warned = True
            self.warn([f"warning: {line}" for line in self.tool_warnings])
        warm(provider)
        return self.model_of(channel)

    def compact(self, session_id: str, tell: Callable[[tuple[str, ...]], None]) -> None:
        compaction = self.compactions.begin(session_id, is_asked=True)
        compaction.listeners.append(lambda end: tell((receipt(end),)))

    def end_compaction(self, session_id: str) -> bool:
        return self.compactions.end(session_id)

    async def stop_job(self, call_id: str) -> bool:
        return await self.end_job(call_id)

    async def trace(self, session_id: str) -> str:
        return str(await self.write_trace(session_id))
