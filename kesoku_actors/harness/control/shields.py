"""Shields against cancellation, and how a crash takes them down: a process that is killed finishes nothing.

Invariant: nothing but the scopes that are dead sees a difference. In them no shield stands: neither one that was there
when they died, nor one that goes up while their tasks unwind. Whoever waits behind one is cancelled there and then.
Spared are those alone that deal with an error of before: it is a finding, if it comes out, and cancelled it would not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import trio

from kesoku_actors.harness.control.privates import GLOBAL_RUN_CONTEXT


@contextmanager
def without_shields(dead: Collection[trio.CancelScope], spared: Collection[Any]) -> Iterator[None]:
    """Take down the shields within these scopes, and let none rise there while the block runs; but `spared` tasks keep
    theirs."""
    roots = {scope._cancel_status for scope in dead if scope._cancel_status is not None}
    kind: Any = trio.CancelScope
    enter, shield = kind.__enter__, kind.shield

    def is_dead(scope: Any) -> bool:
        return GLOBAL_RUN_CONTEXT.task not in spared and any(one in roots for one in _around(scope._cancel_status))

    def __enter__(self: Any) -> Any:
        entered = enter(self)
        if self.shield and is_dead(self):
            shield.fset(self, False)
        return entered

    def set_shield(self: Any, is_up: bool) -> None:
        shield.fset(self, is_up and not is_dead(self))

    for scope in _shields(roots, spared):
        shield.fset(scope, False)
    kind.__enter__, kind.shield = __enter__, property(shield.fget, set_shield)
    try:
        yield
    finally:
        kind.__enter__, kind.shield = enter, shield


def _shields(roots: Collection[Any], spared: Collection[Any]) -> list[Any]:
    """Return the scopes below these that are shields, whoever put them up, but for those that a spared task is in."""
    kept = {status for task in spared for status in _around(task._cancel_status)}
    found, left = [], list(roots)
    while left:
        below = list(left.pop()._children)
        left += below
        found += [one._scope for one in below if one._scope.shield and one not in kept]
    return found


def _around(status: Any) -> Iterator[Any]:
    while status is not None:
        yield status
        status = status._parent
