"""The hands of a worker: they perform the effects of the turn machine, and decide nothing.

No effect is awaited by the worker's loop: each one that takes time is a task in the worker's nursery, whose end is
an event in its inlet. A commit is a task only when the store cannot answer it at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import trio
from attrs import asdict, field

from kesoku_actors.actors import ActorStopped, MailboxFull
from kesoku_actors.clock import World
from kesoku_actors.gateway import Gateway
from kesoku_actors.llm.gate import Patience, infer_once
from kesoku_actors.llm.port import Body, Piece, ProviderError, Reply, Request, Sent
from kesoku_actors.llm.wellformed import whole_reply, whole_text
from kesoku_actors.log import Logger
from kesoku_actors.prompt import PromptContext, PromptLayers, place_in
from kesoku_actors.protocol import (
    Activity,
    ActivityChanged,
    Channel,
    Delta,
    DeltaKind,
    Message,
    ToolEnded,
    ToolProgress,
    Usage,
)
from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.arrivals import wait_for_files
from kesoku_actors.session.brain import Brain
from kesoku_actors.session.compaction import Compactions
from kesoku_actors.session.histories import Histories
from kesoku_actors.session.history import History
from kesoku_actors.session.inlet import Inlet
from kesoku_actors.session.prompting import Draft, KeepWhole, Prompter
from kesoku_actors.session.replay import Recorded
from kesoku_actors.session.turn import TurnLimits
from kesoku_actors.store import CommitReply, Committed, WorkerKey
from kesoku_actors.store.again import until_answered
from kesoku_actors.tools import ToolCall, ToolRegistry, Tools
from kesoku_actors.turnlog import Notes, TurnLog
from kesoku_actors.values import define, evolve, frozen


def _nothing() -> None:
    """Nothing was sent that could be answered."""


@frozen(kw_only=True)
class WorkerParts:
    """What every worker works with."""

    gateway: Gateway
    tools: Tools
    histories: Histories
    compactions: Compactions
    registry: ToolRegistry
    layers: PromptLayers
    brain_for: Callable[[Channel], Brain]
    failover: tuple[Brain, ...]
    """Who is asked, in order, when the model of a channel is lost (P2)."""
    workspace_of: Callable[[str], Path]
    """The session's folder, whether it is there or not."""
    workspace_for: Callable[[str], Path]
    """The session's folder, made if need be: by whoever puts something there."""
    keep_whole: KeepWhole
    limits: TurnLimits
    resume_within_s: float
    parallel_tools: int
    world: World
    log: Logger
    record: Callable[[Recorded], None] | None = None
    """Hears every event and its effects, for the live check."""
    turn_log: TurnLog | None = None
    """Writes down every inference (P4)."""


@define(eq=False)
class Hands:
    """Performs effects. Each one that takes time is a task whose end is an event."""

    key: WorkerKey
    parts: WorkerParts
    inlet: Inlet
    nursery: trio.Nursery
    channel: Channel
    brains: tuple[Brain, ...]
    """Those that may answer, in the order they are asked."""
    history: History
    brain: Brain = field(init=False)
    """The one that the present prompt is for."""
    prompter: Prompter = field(init=False)
    request: Request | None = None
    prompt: trio.CancelScope | None = None
    """Of the prompt that has to be waited for."""
    inferences: dict[int, trio.CancelScope] = field(factory=dict)
    forget_reply: Callable[[], None] = field(default=_nothing, init=False)
    """Lets the store's reply to the last commit go to nobody."""

    def __attrs_post_init__(self) -> None:
        self.brain = self.brains[0]
        self.prompter = Prompter(
            session_id=self.key.session_id,
            history=self.history,
            brain=self.brain,
            compactions=self.parts.compactions,
            workspace=self._workspace,
            folder=self.parts.workspace_of(self.key.session_id),
            keep_whole=self.parts.keep_whole,
            log=self.parts.log,
        )

    def perform(self, effect: v.Effect) -> None:
        """Begin an effect; returns at once."""
        start, parts = self.nursery.start_soon, self.parts
        match effect:
            case v.BuildPrompt():
                if self.prompt is not None:
                    self.prompt.cancel()
                    self.prompt = None
                self.brain = self.prompter.brain = self.brains[effect.model]
                draft = None if self.history.awaiting or parts.layers.is_stale() else self._draft(effect)
                if draft is None or self.prompter.must_wait(draft):
                    self.prompt = trio.CancelScope()
                    start(self._gather, self.prompt, effect)
                else:
                    self._take(effect, draft)
            case v.CallModel():
                self.inferences[effect.ticket] = trio.CancelScope()
                start(self._infer, effect)
            case v.AbortModel(ticket=ticket):
                if ticket in self.inferences:
                    self.inferences[ticket].cancel()
            case v.SendCommit():
                self._send(effect)
            case v.StartTools():
                parts.tools.start(
                    self._calls(effect.call_ids), workspace=self._workspace(), parallel=parts.parallel_tools
                )
            case v.WithdrawTools(call_ids=call_ids):
                parts.tools.withdraw(self._calls(call_ids), workspace=self._workspace())
            case v.EndTools(call_ids=call_ids):
                parts.tools.end(call_ids)
            case v.SetTimer(ticket=ticket, delay_s=delay_s):
                start(self._timer, delay_s, v.TimerFired(ticket))
            case v.SetBudget(root_id=root_id, seconds=seconds):
                self.inlet.set_budget(seconds, v.BudgetSpent(root_id))
            case v.HoldBudget():
                self.inlet.hold_budget()
            case v.ResumeBudget():
                self.inlet.resume_budget()
            case v.EndJobs(root_id=root_id):
                parts.tools.end_jobs(self.key.session_id, root_id=root_id)
            case v.Notify():
                self._show(effect.activity, effect.root_id, effect.detail, effect.for_s)
            case v.EndCompaction():
                parts.compactions.end(self.key.session_id)
            case v.Finish():
                raise AssertionError("the loop ends itself")

    def tell(self, event: v.Event) -> None:
        """Let listeners see that a call runs, and that it runs no more."""
        session_id = self.key.session_id
        match event:
            case v.ToolStarted(call_id=call_id):
                self.parts.gateway.hint(ToolProgress(session_id=session_id, call_id=call_id), self.channel)
            case v.ToolSettled(call_id=call_id, outcome=outcome):
                ended = ToolEnded(session_id=session_id, call_id=call_id, outcome=outcome)
                self.parts.gateway.hint(ended, self.channel)
            case _:
                return

    async def _gather(self, scope: trio.CancelScope, effect: v.BuildPrompt) -> None:
        """Build the prompt when its files are there and its layers are up to date, or name the messages whose files are
        late (M8)."""
        reader, log = self.parts.gateway.reader, self.parts.log

        async def read(message_id: str) -> Message | None:
            return await until_answered(partial(reader.message, message_id), log, "read a message")

        with scope:
            await self.parts.layers.freshen()
            late = await wait_for_files(self.history, self.inlet.files, read)
            await trio.lowlevel.checkpoint_if_cancelled()  # another prompt may be wanted by now
            if late:
                self.inlet.put(v.PromptBuilt(effect.ticket, late))
                return
            draft = self._draft(effect)
            if self.prompter.must_wait(draft):
                self._show(Activity.COMPACTING, effect.root_id)
                await self.prompter.compact(draft)
                draft = self._draft(effect, may_compact=False)
                await self.prompter.keep(draft)
                await trio.lowlevel.checkpoint_if_cancelled()
                self._show(Activity.THINKING, effect.root_id)
            self._take(effect, draft)

    def _show(self, activity: Activity, root_id: str | None, detail: str = "", for_s: float | None = None) -> None:
        changed = ActivityChanged(
            session_id=self.key.session_id, activity=activity, root_id=root_id, detail=detail, for_s=for_s
        )
        self.parts.gateway.hint(changed, self.channel)

    def _take(self, effect: v.BuildPrompt, draft: Draft) -> None:
        self.request = self.prompter.taken(draft)
        self.inlet.put(v.PromptBuilt(effect.ticket))

    def _draft(self, effect: v.BuildPrompt, *, may_compact: bool = True) -> Draft:
        parts, provider = self.parts, self.brain.provider
        tools = parts.registry.schemas() if provider.supports_tools else ()
        context = PromptContext(
            session_id=self.key.session_id,
            channel=self.channel,
            wall=parts.world.clock.wall(),
            has_tools=bool(tools),
            small_model=(provider.context_tokens or 1_000_000) < 8_192,
            workspace=self.prompter.folder if tools else None,
            place=place_in(self.history.rows),
        )
        return self.prompter.draft(effect, parts.layers.render(context), tools, may_compact=may_compact)

    async def _infer(self, effect: v.CallModel) -> None:
        assert self.request is not None
        parts, brain = self.parts, self.brain
        clock, name, model = parts.world.clock, brain.provider.name, brain.provider.model
        heard = _Heard(self, effect, clock.monotonic())
        notes = heard.notes = Notes(
            root_id=effect.root_id,
            attempt=effect.attempt,
            provider=name,
            model=model,
            began=clock.wall(),
            spent=heard.spent,
        )
        sent = self.request.sent if parts.turn_log is None else notes.sent
        if effect.is_last and (trouble := brain.gate.trouble()) is not None:
            self._show(Activity.RETRYING, effect.root_id, whole_text(str(trouble)), trouble.retry_after_s)
            sent = self._goes_on(effect, sent)
        request = evolve(self.request, inference_id=effect.inference_id, sent=sent, used=heard.use)
        self.request = None
        end: Reply | ProviderError | None = None
        event: v.Event = v.ModelAborted(effect.ticket, name, model, 0.0)
        scope = self.inferences[effect.ticket]
        with scope:
            try:
                patience = Patience.WAITS if effect.is_last else Patience.LEAVES
                end = whole_reply(await infer_once(brain.provider, brain.gate, request, heard.emit, patience))
                self.prompter.answered(end.usage)
                event = v.ModelFinished(effect.ticket, end, heard.spent())
            except ProviderError as error:
                end = error
                self.prompter.refused(error)
                # People are told by whoever waits for it: by what follows, or by the end of the turn.
                parts.log.info("inference failed", session=self.key.session_id, kind=error.kind, error=str(error))
                event = v.ModelFailed(
                    effect.ticket,
                    provider=name,
                    model=model,
                    message=whole_text(str(error)),
                    remedy=error.remedy,
                    retry_after_s=error.retry_after_s,
                    jitter=parts.world.rng.random(),
                    duration_s=heard.spent(),
                    usage=heard.usage,
                    kind=error.kind,
                )
        if scope.cancelled_caught:
            event = v.ModelAborted(effect.ticket, name, model, heard.spent(), heard.usage)
        del self.inferences[effect.ticket]
        if end is not None:
            used = asdict(heard.usage, recurse=False)
            parts.log.info("inference", session=self.key.session_id, provider=name, model=model, **used)
        if parts.turn_log is not None:
            parts.turn_log.record(notes.ended(request, end))
        self.inlet.put(event)

    def _goes_on(self, effect: v.CallModel, sent: Sent) -> Sent:
        """Show that a model is waited for no more when the request is sent."""

        def hear(body: Body) -> None:
            self._show(Activity.THINKING, effect.root_id)
            sent(body)

        return hear

    def let_go(self) -> None:
        """Hear no reply any more: the worker takes no other event."""
        self.forget_reply()

    def _send(self, effect: v.SendCommit) -> None:
        try:
            self.forget_reply = self.parts.gateway.store.commit_nowait(effect.commit, partial(self._hear, effect))
        except (MailboxFull, ActorStopped):
            self.nursery.start_soon(self._commit, effect, None)

    def _hear(self, effect: v.SendCommit, reply: CommitReply | None, error: Exception | None) -> None:
        self.forget_reply = _nothing  # it holds the commit and its answer, for as long as the model may think
        self.inlet.put(partial(self._heard, effect, reply, error))

    def _heard(self, effect: v.SendCommit, reply: CommitReply | None, error: Exception | None) -> v.Event | None:
        """Return what the store's answer is to the machine; after a fault the commit is sent until there is one."""
        if reply is None:
            self.nursery.start_soon(self._commit, effect, error)
            return None
        if isinstance(reply, Committed):
            self.history.committed(effect.commit, reply)
            return v.CommitStands(effect.ticket, reply)
        return v.CommitRefused(effect.ticket, reply)

    async def _commit(self, effect: v.SendCommit, error: Exception | None) -> None:
        """Send a commit until it is answered; with the error, if any, that came of sending it before."""

        async def send() -> CommitReply:
            nonlocal error
            if error is not None:
                before, error = error, None
                raise before
            return await self.parts.gateway.store.commit(effect.commit)

        reply = await until_answered(send, self.parts.log, "commit")
        self.inlet.put(partial(self._heard, effect, reply, None))

    def _workspace(self) -> Path:
        return self.parts.workspace_for(self.key.session_id)

    def _calls(self, call_ids: tuple[str, ...]) -> list[ToolCall]:
        rows = [self.history.message(call_id) for call_id in call_ids]
        return [
            ToolCall(
                call_id=row.id,
                session_id=row.session_id,
                root_id=row.root_id or "",
                name=row.metadata["tool_name"],
                arguments=row.metadata["tool_arguments"],
                invalid=row.metadata.get("invalid"),
                channel=self.channel,
            )
            for row in rows
        ]

    async def _timer(self, delay_s: float, event: v.Event) -> None:
        await trio.sleep(delay_s)
        self.inlet.put(event)


@define(eq=False)
class _Heard:
    """What is heard of one inference while it lasts: for minutes, perhaps: closures would take more room."""

    hands: Hands
    effect: v.CallModel
    begun: float
    """By the monotonic clock."""
    notes: Notes = field(init=False)
    usage: Usage = Usage()
    offsets: dict[DeltaKind, int] = field(factory=dict)

    def spent(self) -> float:
        """Return the seconds since it began."""
        return max(0.0, self.hands.parts.world.clock.monotonic() - self.begun)

    def use(self, used: Usage) -> None:
        """Take what it used (`Request.used`)."""
        self.usage = used

    def emit(self, piece: Piece) -> None:
        """Pass a piece of it on to the listeners, and text to the machine."""
        hands, effect, offset = self.hands, self.effect, self.offsets.get(piece.kind, 0)
        delta = Delta(
            session_id=hands.key.session_id,
            root_id=effect.root_id,
            inference_id=effect.inference_id,
            attempt=effect.attempt,
            offset=offset,
            kind=piece.kind,
            text=piece.text,
        )
        self.offsets[piece.kind] = offset + len(piece.text)
        self.notes.heard(piece)
        hands.parts.gateway.hint(delta, hands.channel)
        if piece.kind is DeltaKind.TEXT:
            hands.inlet.stream(effect.ticket, whole_text(piece.text))
