"""The supervision tree as data. Pure.

A spec is checked when it is made, so a tree that exists can be started.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from attrs import Attribute, field

from kesoku_actors.values import frozen

from .cell import Cell
from .mailbox import Mailbox

if TYPE_CHECKING:
    from .dynamic import Dynamic


class Restart(Enum):
    """Whether a child that ended by itself is started again."""

    PERMANENT = "permanent"
    """Always."""
    TRANSIENT = "transient"
    """After a crash; a plain return is the end of its work."""
    TEMPORARY = "temporary"
    """Never, also not with its group."""


class Strategy(Enum):
    """Which siblings share the restart of a child."""

    ONE_FOR_ONE = "one_for_one"
    """None."""
    ONE_FOR_ALL = "one_for_all"
    """All."""
    REST_FOR_ONE = "rest_for_one"
    """Those after it in the order of start."""


def _check_id(_spec: object, _field: Attribute[str], value: str) -> None:
    if not value or "/" in value:
        raise ValueError(f"an id is a name without '/', not {value!r}")


def _check_at_least_zero(spec: Any, attribute: Attribute[Any], value: Any) -> None:
    if not value >= 0:
        raise ValueError(f"{attribute.name} of {spec.id!r} must be at least 0, not {value!r}")


def _check_significant(spec: Any, _field: Attribute[bool], value: bool) -> None:
    if value and spec.restart is Restart.PERMANENT:
        raise ValueError(f"{spec.id!r} is permanent, so it never ends for good and cannot be significant")


def _check_unique(spec: Any, _field: Attribute[Any], children: tuple[AnySpec, ...]) -> None:
    twice = [name for name, count in Counter(child.id for child in children).items() if count > 1]
    if twice:
        raise ValueError(f"children of {spec.id!r} share an id: {', '.join(twice)}")


@frozen(kw_only=True)
class ChildSpec:
    """One actor of a tree."""

    id: str = field(validator=_check_id)
    start: Callable[[Cell[Any]], Awaitable[None]]
    """The actor function; bind its further arguments with `functools.partial`."""
    mailbox: Mailbox[Any] | None = None
    restart: Restart = Restart.PERMANENT
    shutdown_s: float = field(default=5.0, validator=_check_at_least_zero)
    """Seconds from the stop request to the cancellation; `math.inf` waits as long as it takes."""
    significant: bool = field(default=False, validator=_check_significant)
    """Its end for good ends its supervisor, normally."""
    fatal: tuple[type[BaseException], ...] = ()
    """Errors which a restart cannot help: among the leaves of a crash, they fail the supervisor at once."""


@frozen(kw_only=True)
class SupervisorSpec:
    """An ordered supervisor: children start one after the other, each when those before it are ready, and stop in the
    reverse order."""

    id: str = field(validator=_check_id)
    strategy: Strategy = Strategy.ONE_FOR_ONE
    children: tuple[AnySpec, ...] = field(validator=_check_unique)
    intensity: int = field(default=3, validator=_check_at_least_zero)
    """Restarts within `period_s`, over all children; one more fails the supervisor."""
    period_s: float = field(default=60.0, validator=_check_at_least_zero)
    start_timeout_s: float = field(default=60.0, validator=_check_at_least_zero)
    """How long one actor among its direct children may take to call `started()`; supervisors below have their own."""
    restart: Restart = Restart.PERMANENT
    shutdown_s: float = field(default=math.inf, validator=_check_at_least_zero)
    """As of a child; by default the graces of its children are limit enough."""
    significant: bool = field(default=False, validator=_check_significant)
    fatal: tuple[type[BaseException], ...] = ()


@frozen(kw_only=True)
class DynamicSpec:
    """A dynamic supervisor: its children come and go at run time through `dynamic`, independent of each other."""

    id: str = field(validator=_check_id)
    dynamic: Dynamic
    intensity: int = field(default=3, validator=_check_at_least_zero)
    period_s: float = field(default=60.0, validator=_check_at_least_zero)
    restart: Restart = Restart.PERMANENT
    significant: bool = field(default=False, validator=_check_significant)
    fatal: tuple[type[BaseException], ...] = ()


AnySpec: TypeAlias = ChildSpec | SupervisorSpec | DynamicSpec


def mailboxes(spec: AnySpec) -> Iterator[Mailbox[Any]]:
    """Yield the mailboxes of a spec and of all it names below; a dynamic supervisor names none."""
    match spec:
        case ChildSpec():
            if spec.mailbox is not None:
                yield spec.mailbox
        case SupervisorSpec():
            for child in spec.children:
                yield from mailboxes(child)
        case DynamicSpec():
            return
        case _ as never:
            assert_never(never)
