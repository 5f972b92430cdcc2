"""The embedded model: an actor that keeps its server running, and the provider that asks it.

The server starts at the first inference, or earlier when somebody says `warm`. Its death, be it a crash of native code,
is a `ProviderError` (retry) for the inference that was under way; the next one finds a new server.

Invariants: at most one server at a time. Nothing polls: the actor learns of a death from the task that runs the server.
More than `MOST_STARTS` starts within `STARTS_PERIOD_S` are refused with an error for the user, so that a model that
crashes at every prompt does not keep the machine busy for ever.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, final

import httpx2
import trio

from kesoku_actors.actors import ActorStopped, Cell, Mailbox
from kesoku_actors.errors import UsageError
from kesoku_actors.llm import weights
from kesoku_actors.llm.classify import Source
from kesoku_actors.llm.local_child import ChildOptions, Running, run_server
from kesoku_actors.llm.local_options import LocalOptions, check, model_file
from kesoku_actors.llm.openai import OpenAIModel
from kesoku_actors.llm.port import Emit, Limits, ProviderError, Remedy, Reply, Request
from kesoku_actors.log import Logger
from kesoku_actors.values import frozen

NAME: Final = "local"
MOST_STARTS: Final = 5
STARTS_PERIOD_S: Final = 600.0
START_TIMEOUT_S: Final = 120.0
"""The default model takes one or two seconds, but a large one may lie on a slow disk."""
_NOTICE_DEATH_S: Final = 0.5
_CLOSE_S: Final = 1.0
_SOURCE: Final = Source(provider=NAME, model="[local] model_path", address="[local] model_path")


@frozen(kw_only=True)
class Connect:
    """Ask for a server that listens, the answer is a `Running`; told, it only starts one."""


@frozen(kw_only=True)
class LocalStatistics:
    """A reading."""

    pid: int | None
    """The server's process, `None` while there is none."""
    recent_starts: int
    """Within the last `STARTS_PERIOD_S` before the latest."""
    last_death: str
    """Why the last server ended or did not start; empty when none did."""


class _Lives:
    """What the actor knows of its servers; outlives a restart of the actor, so that starts stay bounded."""

    def __init__(self) -> None:
        self.running: Running | None = None
        self.starts: deque[float] = deque()
        """When, in trio's time."""
        self.last_death = ""

    def alive(self) -> Running | None:
        """Return the server that listens, if there is one; of a dead one only the reason stays."""
        if self.running is not None and self.running.ended.is_set():
            self.last_death, self.running = self.running.obituary, None
        return self.running

    def allow_start(self, now: float) -> None:
        """Count a start. Raises `ProviderError` when there were too many."""
        while self.starts and self.starts[0] <= now - STARTS_PERIOD_S:
            self.starts.popleft()
        if len(self.starts) >= MOST_STARTS:
            raise ProviderError(
                f"{NAME}: the model's server was started {MOST_STARTS} times within {STARTS_PERIOD_S / 60:.0f} minutes "
                f"and did not last: {self.last_death}; choose another model with --llm, or try later",
                remedy=Remedy.TELL,
                kind="crash",
            )
        self.starts.append(now)


@final
class LocalModel:
    """The face, and the provider. Made before anything runs; `mailbox` goes into the child spec of `local_actor`."""

    def __init__(self, options: LocalOptions, *, log: Logger, wall: Callable[[], float]) -> None:
        self.name = NAME
        self.model = options.model_name
        self.context_tokens: int | None = options.context_size
        self.supports_tools = options.tools
        self.limits = Limits(first_byte_s=600.0, idle_s=600.0, concurrency=1)
        self.mailbox: Mailbox[Connect] = Mailbox("llm/local/server")
        self.options = options
        self._log = log
        self._wall = wall
        self._lives = _Lives()

    def warm(self) -> None:
        """Begin to start the server and return at once. A failure shows at the first inference."""
        self.mailbox.ref.tell_nowait(Connect())

    def statistics(self) -> LocalStatistics:
        """Return a reading."""
        lives, alive = self._lives, self._lives.alive()
        return LocalStatistics(
            pid=alive.pid if alive is not None else None,
            recent_starts=len(lives.starts),
            last_death=lives.last_death,
        )

    async def infer(self, request: Request, emit: Emit) -> Reply:
        """Run one inference. Raises `ProviderError`; cancelled, it closes the connection, which frees the model (I2).

        The model notices after the batch in hand: at once while it writes, within two seconds while it reads.
        """
        try:
            running: Running = await self.mailbox.ref.ask(Connect(), timeout_s=None)
        except ActorStopped as error:
            raise ProviderError(f"{NAME}: its actor ended before the server was up", kind="gate") from error
        client = await self._client(running)
        try:
            return await client.infer(request, emit)
        except ProviderError as error:
            if error.remedy is not Remedy.RETRY:
                raise
            # The broken connection is seen before the process is reaped.
            with trio.move_on_after(_NOTICE_DEATH_S):
                await running.ended.wait()
                raise ProviderError(f"{NAME}: the model's server died: {running.obituary}", kind="crash") from error
            raise
        finally:
            with trio.move_on_after(_CLOSE_S, shield=True):
                await client.aclose()

    async def _client(self, running: Running) -> OpenAIModel:
        transport = None
        if running.socket_path is not None:
            # In a thread: the first one loads the certificates it does not need.
            make = partial(httpx2.AsyncHTTPTransport, uds=running.socket_path, verify=False)
            transport = await trio.to_thread.run_sync(make)
        return OpenAIModel(
            source=_SOURCE,
            model=self.model,
            base_url=f"{running.base_url}/v1",
            log=self._log,
            wall=self._wall,
            api_key=running.key,
            limits=self.limits,
            context_tokens=self.context_tokens,
            supports_tools=self.supports_tools,
            transport=transport,
        )


async def local_actor(cell: Cell[Connect], *, model: LocalModel) -> None:
    """Keep at most one server and hand it to who asks, until asked to stop; then end it."""
    lives = model._lives
    async with trio.open_nursery() as nursery:
        cell.started()
        async for letter in cell.inbox:
            try:
                letter.reply(lives.alive() or await _start(nursery, model, lives))
            except ProviderError as error:
                letter.refuse(error)
        nursery.cancel_scope.cancel()


async def _start(nursery: trio.Nursery, model: LocalModel, lives: _Lives) -> Running:
    lives.allow_start(trio.current_time())
    try:
        options = await trio.to_thread.run_sync(_child_options, model.options)
        with trio.fail_after(START_TIMEOUT_S):
            lives.running = await nursery.start(_run, options, model)
    except (ProviderError, UsageError, trio.TooSlowError) as error:
        why = str(error) or f"it did not start within {START_TIMEOUT_S:g} s"
        lives.last_death = why
        raise ProviderError(f"{NAME}: {why}", remedy=Remedy.TELL, kind="start") from error
    return lives.running


async def _run(options: ChildOptions, model: LocalModel, *, task_status: trio.TaskStatus[Running]) -> None:
    obituary = await run_server(options, task_status=task_status)
    model._log.warning("the local model's server died", reason=obituary)


def _child_options(options: LocalOptions) -> ChildOptions:
    """Return what the server is started with. Raises `UsageError`."""
    check(options)
    known = weights.MODELS[weights.DEFAULT_MODEL] if options.model_path is None else None
    sampling: Mapping[str, Any] = known.sampling if known is not None else {}
    return ChildOptions(
        model_path=model_file(options),
        model_name=options.model_name,
        context_size=options.context_size,
        threads=options.threads,
        cache_ram_mib=options.cache_ram_mib,
        sampling=dict(sampling),
        most_tokens=known.most_tokens if known is not None else -1,
    )
