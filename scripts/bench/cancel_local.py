"""How soon a cancelled inference frees the embedded model: while it reads the prompt, and while it writes.

Twenty cancels of each kind through the provider itself, each at another moment, timed until the next question has its
first token; what that takes on an idle server is measured too and taken off. Fails when a median is over its bound:
2 s reading, 0.3 s writing. (Asking the server's `/slots` instead would disturb: every answer of the server restarts
the second after which it looks whether the client is still there.)

    scripts/python -m scripts.bench.cancel_local [ROUNDS]
"""

from __future__ import annotations

import statistics
import sys
import time
from functools import partial

import trio
from attrs import evolve

from kesoku_actors.actors import ChildSpec, SupervisorSpec, run_system
from kesoku_actors.llm.local import LocalModel, local_actor
from kesoku_actors.llm.local_options import LocalOptions
from kesoku_actors.llm.port import Piece, Request
from kesoku_actors.llm.weights import pull
from kesoku_actors.log import Logger
from kesoku_actors.protocol import Message, Role, Status, Type

BOUNDS_S = {"reading": 2.0, "writing": 0.3}
LONG_WORDS = 450
"""About 2,600 tokens, half a minute of reading with one thread."""


def question(number: int, text: str) -> Request:
    """Return a request nothing of which the server has seen before."""
    message = Message(
        id=f"m{number}",
        seq=1,
        rev=1,
        session_id=f"s{number}",
        chatbot_id="bench",
        channel_id="bench",
        sender="User",
        role=Role.USER,
        type=Type.TEXT,
        status=Status.PROCESSED,
        content=text,
        place=1,
        timestamp=0.0,
    )
    return Request(inference_id=f"i{number}", session_id=f"s{number}", system=f"Talk {number}.", history=(message,))


async def next_answer(model: LocalModel, number: int) -> float:
    """Return the seconds until a short question has its first token."""
    began = time.perf_counter()
    await model.infer(evolve(question(number, "Hello."), max_output_tokens=1), lambda piece: None)
    return time.perf_counter() - began


async def cancel_once(model: LocalModel, kind: str, number: int) -> float:
    """Begin an inference, cancel it, and return the seconds until the next one has its first token."""
    words = " ".join(f"word{number}x{index}" for index in range(LONG_WORDS))
    text = words if kind == "reading" else "Write a long story about the sea."
    written = 0
    with trio.CancelScope() as scope:

        def emit(piece: Piece) -> None:
            nonlocal written
            written += bool(piece.text)
            if kind == "writing" and written > 3 + number:
                scope.cancel()

        if kind == "reading":
            scope.deadline = trio.current_time() + 0.5 + 0.05 * number
        await model.infer(question(number, text), emit)
    if not scope.cancelled_caught or (kind == "reading" and written):
        raise SystemExit(f"round {number}: the model was done before the cancel")
    return await next_answer(model, number)


async def main(rounds: int) -> int:
    """Measure and print; return 1 when a bound is broken."""
    pull(progress=lambda step, fraction: None)
    model = LocalModel(LocalOptions(), log=Logger(sink=lambda entry: None, wall=time.time), wall=time.time)
    child = ChildSpec(id="local", start=partial(local_actor, model=model), mailbox=model.mailbox)
    failed = False
    async with run_system(SupervisorSpec(id="root", children=(child,))):
        await next_answer(model, -1)
        idle = statistics.median([await next_answer(model, number) for number in range(rounds)])
        print(f"first token of a short question, server idle: {idle * 1000:.0f} ms (median of {rounds})")
        for kind, bound in BOUNDS_S.items():
            times = [await cancel_once(model, kind, number) for number in range(rounds)]
            median = statistics.median(times)
            failed |= median - idle > bound
            print(
                f"the same after a cancel while {kind}: {median * 1000:.0f} ms (median of {rounds}; "
                f"{min(times) * 1000:.0f} to {max(times) * 1000:.0f}), so the cancel took "
                f"{max(median - idle, 0) * 1000:.0f} ms; bound {bound * 1000:.0f} ms"
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(trio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 20))
