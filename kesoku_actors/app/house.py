"""The supervision tree as data, and the faces over it.

`build_house` makes every mailbox first, so that faces exist before an actor runs, then the tree:

::

    root                one_for_one
    |-- store           its faults are typed replies; its restart ends no tool
    |-- turn-log        writes down every inference (P4)
    |-- purse           writes down what the day cost (B4)
    |-- leftovers       ends what commands left running
    |-- tools           one temporary child per call, long grace
    |-- providers       one_for_one: a gate per model
    |-- broker          one_for_one: what each works with outlives it
    |   |-- gateway     the broadcaster
    |   |-- compactions dynamic: the summarising of one session each, which no turn's end touches
    |   |-- agents      one_for_all: each start is a new epoch, and no worker outlives its dispatcher's
    |   |   |-- workers     dynamic
    |   |   `-- dispatcher
    |   |-- janitor     finishes clears
    |   |-- titles      asks the model for titles of sessions
    |   |-- search      indexes what was said, behind everything else
    |   `-- edges       one_for_one: adapters and servers
    `-- closing         asked first when the whole stops: the tools' time begins (C7)

What stops, stops in reverse order, and never longer than `Plan.stop_s`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from attrs import evolve, field

from kesoku_actors.actors import Cell, ChildSpec, Dynamic, DynamicSpec, Mailbox, Restart, Strategy, SupervisorSpec
from kesoku_actors.app.graces import STOP_S, divide
from kesoku_actors.app.journal import StoreJournal
from kesoku_actors.app.workspaces import folder_of, workspace_folder
from kesoku_actors.clock import World
from kesoku_actors.gateway import Announcements, Broadcaster, Gateway, Latches, Subscriptions
from kesoku_actors.llm.gate import provider_actor
from kesoku_actors.log import Logger
from kesoku_actors.prompt import PromptLayers
from kesoku_actors.protocol import Channel
from kesoku_actors.search import LAST_S, Search, search_actor
from kesoku_actors.session import (
    Brain,
    CompactionParts,
    Compactions,
    DayPurse,
    DispatcherParts,
    Exits,
    Folders,
    Histories,
    JanitorParts,
    KeepWhole,
    Recorded,
    Remit,
    TitleParts,
    TurnLimits,
    WorkerParts,
    dispatcher,
    janitor,
    line_of,
    remit_of,
    titler,
)
from kesoku_actors.store import (
    Command,
    DeadCall,
    Store,
    StoreDamaged,
    StoreInUse,
    StoreOptions,
    StoreUnusable,
    open_reader,
    store_actor,
)
from kesoku_actors.store.again import until_answered
from kesoku_actors.tools import ToolOptions, ToolRegistry, Tools, add_job_tools
from kesoku_actors.tools.shell import Leftovers
from kesoku_actors.tools.whole import keep_whole
from kesoku_actors.turnlog import LoggedProvider, TurnLog, TurnLogOptions
from kesoku_actors.values import frozen

HOPELESS = (StoreDamaged, StoreInUse, StoreUnusable)
"""Faults of the store that no restart of an actor can help (C6, C8)."""

EdgesFor = Callable[[Gateway], Sequence[ChildSpec]]


@frozen(kw_only=True)
class Plan:
    """What a run is composed of; every field is a value or a function, nothing runs yet."""

    store: StoreOptions
    sessions_dir: Path
    world: World
    log: Logger
    brains: tuple[Brain, ...]
    """Every model that may answer; each gets a gate."""
    brain_for: Callable[[Channel], Brain]
    failover: tuple[Brain, ...] = ()
    """Who is asked, in order, when the model of a channel is lost (P2); they are among `brains`."""
    purse: DayPurse | None = None
    """Pays for the inferences of `brains`; none: a day has no bound."""
    registry: ToolRegistry
    layers: PromptLayers
    limits: TurnLimits
    tool_options: ToolOptions = field(factory=ToolOptions)
    resume_within_s: float = 86_400.0
    parallel_tools: int = 4
    channels: Remit = field(factory=Remit, converter=remit_of)
    """The channels this process works for; none: all."""
    end_survivors: Callable[[Sequence[DeadCall]], Awaitable[None]]
    leftovers: Leftovers = field(factory=Leftovers)
    """Ends what commands of this life left running, with their session or with the run (M7, C7)."""
    edges: EdgesFor = lambda _gateway: ()
    provider_children: tuple[ChildSpec | DynamicSpec, ...] = ()
    folders: Folders
    """Where cleared sessions' folders go."""
    probe: Callable[[str], None] = lambda _point: None
    """Told the names of the points where a crash matters; does nothing in production."""
    stop_s: float = STOP_S
    """How long stopping may take at most; `graces` divides it (C7)."""
    record: Callable[[Recorded], None] | None = None
    """Hears what every worker does, for the live check."""
    turn_log: TurnLogOptions | None = None
    """None: no turn log is kept."""
    may_title: Callable[[Brain], bool] | None = None
    """Which models are asked for titles of sessions; none: no model is."""
    search: Search | None = None
    """None: nothing is indexed."""
    keep_whole: KeepWhole = keep_whole
    """Keeps the whole of a result that the model reads shortened."""


@frozen(kw_only=True)
class House:
    """The tree, and the faces over it that live as long as it."""

    spec: SupervisorSpec
    gateway: Gateway
    tools: Tools
    store: Store
    compactions: Compactions


def build_house(plan: Plan) -> House:
    """Return the tree of a run and its faces. Nothing runs before the tree is given to `run_system`."""
    world, log, graces = plan.world, plan.log, divide(plan.stop_s)
    commands: Mailbox[Command] = Mailbox("store", capacity=1024)
    store = Store(commands.ref, open_reader(plan.store))
    announcements, subscriptions, latches = Announcements(), Subscriptions(), Latches()
    broadcaster = Broadcaster(
        announcements=announcements, subscriptions=subscriptions, latches=latches, reader=store.reader, log=log
    )
    gateway = Gateway(
        store=store,
        subscriptions=subscriptions,
        latches=latches,
        announcements=announcements,
        unattended=broadcaster.unattended,
        world=world,
        log=log,
    )
    turn_log = None
    if plan.turn_log is not None:
        turn_log = TurnLog(
            options=plan.turn_log,
            workspace_for=partial(workspace_folder, plan.sessions_dir),
            count_steps=store.reader.count_steps,
            log=log,
        )
    if plan.purse is not None:
        plan.purse.open(store, log)
    tools = Tools(
        registry=plan.registry,
        journal=StoreJournal(store, plan.probe),
        clock=world.clock,
        options=evolve(plan.tool_options, shutdown_grace_s=graces.tools_s, ending_s=graces.ending_s),
    )
    add_job_tools(plan.registry, lambda: tools)
    beside = partial(_beside, plan, turn_log)
    histories = Histories(latches)
    compactions = Compactions(
        CompactionParts(gateway=gateway, histories=histories, line_for=beside, world=world, log=log)
    )
    exits = Exits()
    workers = Dynamic("workers", on_exit=exits.put)
    dispatcher_parts = DispatcherParts(
        workers=workers,
        exits=exits,
        worker_parts=WorkerParts(
            gateway=gateway,
            tools=tools,
            histories=histories,
            compactions=compactions,
            keep_whole=plan.keep_whole,
            registry=plan.registry,
            layers=plan.layers,
            brain_for=plan.brain_for,
            failover=plan.failover,
            workspace_of=partial(folder_of, plan.sessions_dir),
            workspace_for=partial(workspace_folder, plan.sessions_dir),
            limits=plan.limits,
            resume_within_s=plan.resume_within_s,
            parallel_tools=plan.parallel_tools,
            world=world,
            log=log,
            record=plan.record,
            turn_log=turn_log,
        ),
        remit=plan.channels,
        end_survivors=plan.end_survivors,
        grace_s=graces.workers_s,
    )
    janitor_parts = JanitorParts(
        gateway=gateway,
        closed=broadcaster.closed,
        folders=plan.folders,
        end_jobs=partial(_end_behind, tools, plan.leftovers),
        log=log,
        probe=plan.probe,
    )
    gates = tuple(
        ChildSpec(id=brain.gate.name, start=partial(provider_actor, gate=brain.gate), mailbox=brain.gate.mailbox)
        for brain in plan.brains
    )
    agents = SupervisorSpec(
        id="agents",
        strategy=Strategy.ONE_FOR_ALL,
        children=(
            DynamicSpec(id="workers", dynamic=workers, fatal=HOPELESS),
            ChildSpec(id="dispatcher", start=partial(dispatcher, parts=dispatcher_parts), fatal=HOPELESS),
        ),
    )
    broker = SupervisorSpec(
        id="broker",
        children=(
            ChildSpec(id="gateway", start=broadcaster.run, fatal=HOPELESS),
            DynamicSpec(id="compactions", dynamic=compactions.dynamic, fatal=HOPELESS),
            agents,
            ChildSpec(id="janitor", start=partial(janitor, parts=janitor_parts), fatal=HOPELESS),
            *(() if plan.may_title is None else (_titler(plan, plan.may_title, gateway, beside),)),
            *(() if plan.search is None else (_indexer(plan.search, gateway),)),
            SupervisorSpec(id="edges", children=tuple(plan.edges(gateway))),
        ),
    )
    root = SupervisorSpec(
        id="root",
        children=(
            ChildSpec(
                id="store",
                start=partial(store_actor, options=plan.store, world=world, publish=announcements.publish),
                mailbox=commands,
                shutdown_s=30.0,
                fatal=HOPELESS,
            ),
            *(() if turn_log is None else (turn_log.spec(),)),  # stopped after those whose inferences it writes
            *(() if plan.purse is None else (plan.purse.spec(),)),
            # Begun before a session goes on (C3), and stopped after the calls that may need what others left.
            plan.leftovers.spec(partial(_commands_so_far, store, log)),
            tools.spec(),
            SupervisorSpec(id="providers", children=(*gates, *plan.provider_children)),
            broker,
            ChildSpec(id="closing", start=partial(_close_tools, tools=tools)),
        ),
        shutdown_s=plan.stop_s,
    )
    return House(spec=root, gateway=gateway, tools=tools, store=store, compactions=compactions)


async def _commands_so_far(store: Store, log: Logger) -> Sequence[DeadCall]:
    """Return the calls of which an earlier life may have left something running (C3)."""
    return await until_answered(store.reader.commands, log, "read which commands ran")


async def _end_behind(tools: Tools, leftovers: Leftovers, session_id: str) -> None:
    """End what goes on behind the results of a session that is cleared (M7)."""
    await tools.clear_jobs(session_id)
    await leftovers.end(session_id)


def _beside(plan: Plan, turn_log: TurnLog | None, channel: Channel) -> tuple[Brain, ...]:
    """Return who is asked in a channel beside its turns, in order: that is written down as well (P4)."""
    line, clock = line_of(plan.brain_for(channel), plan.failover), plan.world.clock
    if turn_log is None:
        return line
    return tuple(
        evolve(each, provider=LoggedProvider(provider=each.provider, log=turn_log, clock=clock)) for each in line
    )


def _titler(
    plan: Plan, may_title: Callable[[Brain], bool], gateway: Gateway, line_for: Callable[[Channel], tuple[Brain, ...]]
) -> ChildSpec:
    parts = TitleParts(gateway=gateway, line_for=line_for, may_title=may_title, world=plan.world, log=plan.log)
    return ChildSpec(id="titles", start=partial(titler, parts=parts), restart=Restart.TEMPORARY, fatal=HOPELESS)


def _indexer(search: Search, gateway: Gateway) -> ChildSpec:
    start = partial(search_actor, search=search, gateway=gateway)
    # Once it has crashed it stays away: who searches brings the index up to date as well.
    return ChildSpec(id="search", start=start, restart=Restart.TEMPORARY, shutdown_s=2 * LAST_S, fatal=HOPELESS)


async def _close_tools(cell: Cell[None], *, tools: Tools) -> None:
    """Let the tools know of the stop before anybody stops who waits for them (C7)."""
    cell.started()
    await cell.stopping.wait()
    tools.shut_down()
