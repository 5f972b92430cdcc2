"""Programs whose drawn inputs are objects: for tests of tokens, jobs and campaigns. Not a test by itself."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import trio
from attrs import define, field, frozen
from hypothesis import strategies as st

from kesoku_actors.harness import explore


class Kind(Enum):
    """What is bought."""

    BOOK = "book"
    PEN = "pen"


@frozen
class Item:
    """A thing in a cart."""

    kind: Kind
    price: int


@define
class Cart:
    """A cart, which whoever buys empties."""

    owner: str
    items: list[Item] = field(factory=list)


@define
class Till:
    """What was taken, or sold, by everybody."""

    sum: int = 0


ITEMS: Final = st.builds(Item, st.sampled_from(Kind), st.integers(0, 9))
CARTS: Any = st.lists(st.builds(Cart, st.text("ab", max_size=2), st.lists(ITEMS, max_size=3)), max_size=3)


@explore(runs=200, examples=20)
async def emptied(carts: list[Cart] = CARTS) -> None:
    """Right: each run has carts of its own, and finds them as they were drawn."""
    stock = Till()
    count = sum(len(cart.items) for cart in carts)

    async def buy(cart: Cart) -> None:
        while cart.items:
            await trio.lowlevel.checkpoint()
            cart.items.pop()
            stock.sum += 1

    async with trio.open_nursery() as nursery:
        for cart in carts:
            nursery.start_soon(buy, cart)
    assert stock.sum == count
    carts.clear()


@explore(runs=200, examples=20)
async def overcharged(carts: list[Cart] = CARTS) -> None:
    """Wrong with two carts that have something in them: the sum is read before somebody else has added to it."""
    till = Till()

    async def pay(cart: Cart) -> None:
        while cart.items:
            so_far = till.sum
            await trio.lowlevel.checkpoint()
            till.sum = so_far + cart.items.pop().price

    wanted = sum(item.price for cart in carts for item in cart.items)
    async with trio.open_nursery() as nursery:
        for number, cart in enumerate(carts):
            nursery.start_soon(pay, cart, name=f"till {number}")
    assert till.sum == wanted, "wrong sum"


@explore(runs=40)
async def asks_while_it_runs(data: Any = st.data()) -> None:  # noqa: B008 # drawn
    """No program for the harness: it draws when it is its turn."""
    await trio.lowlevel.checkpoint()
    data.draw(st.integers())
