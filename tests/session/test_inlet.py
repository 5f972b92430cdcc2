"""The queue of a worker: pieces of one answer become one event, and nothing changes places."""

from __future__ import annotations

from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.inlet import Inlet


async def test_the_words_nobody_has_taken_yet_are_one_event() -> None:
    inlet = Inlet()
    for word in ("It ", "is ", "late."):
        inlet.stream(3, word)
    assert await inlet.next() == v.ModelDelta(3, "It is late.")
    inlet.stream(3, " Good night.")
    assert await inlet.next() == v.ModelDelta(3, " Good night.")


async def test_words_of_two_answers_and_what_came_between_them_stay_apart_and_in_order() -> None:
    inlet = Inlet()
    inlet.stream(3, "a")
    inlet.stream(4, "b")
    inlet.put(v.ShutdownRequested())
    inlet.stream(4, "c")
    heard = [await inlet.next() for _ in range(4)]
    assert heard == [v.ModelDelta(3, "a"), v.ModelDelta(4, "b"), v.ShutdownRequested(), v.ModelDelta(4, "c")]
