"""What can go wrong between actors, as a branch of the tree in `kesoku_actors.errors`. Pure.

::

    ActorError                the kernel refuses or reports
    |-- ActorStopped          the actor behind a ref ended before it answered, or is gone for good
    |-- MailboxFull           `tell_nowait` met a full mailbox
    |-- AskTimeout            no answer within the asker's deadline
    |-- StartFailed           a child started at run time ended before it was ready
    |-- StartTimeout          a child was not ready in time
    |-- ChildReturned         a permanent child returned instead of serving
    |-- NameTaken             a child id or a registered name is in use
    |-- NameUnknown           nothing is registered under that name
    `-- SystemFailed          the root supervisor gave up; `__cause__` keeps the whole group
"""

from __future__ import annotations

from kesoku_actors.errors import Fault


class ActorError(Fault):
    """The root of what the actor kernel raises by itself."""


class ActorStopped(ActorError):
    """The actor ended before it answered, or its mailbox is closed because nobody will start it again.

    Whether the message had an effect is unknown when the actor had taken it. With `for_good` nobody had taken it, and
    asking again is in vain.
    """

    def __init__(self, name: str, *, for_good: bool = False) -> None:
        advice = "it will not run again" if for_good else "ask again once it is running"
        super().__init__(f"actor {name!r} has stopped and did not answer; {advice}")
        self.name = name
        self.for_good = for_good


class MailboxFull(ActorError):
    """The mailbox holds `capacity` letters already; nothing was sent."""

    def __init__(self, name: str, capacity: int) -> None:
        super().__init__(f"the mailbox of {name!r} is full ({capacity} letters); send again later or wait with tell()")
        self.name = name
        self.capacity = capacity


class AskTimeout(ActorError):
    """No answer came within the deadline.

    `taken` is False when the letter was taken back unread: the message had no effect and may be sent again.
    """

    def __init__(self, name: str, timeout_s: float, *, taken: bool) -> None:
        fate = "the actor had begun with it" if taken else "it was taken back unread"
        super().__init__(f"actor {name!r} did not answer within {timeout_s:g} s; {fate}")
        self.name = name
        self.timeout_s = timeout_s
        self.taken = taken


class StartFailed(ActorError):
    """A child started through `Dynamic.start` ended before it was ready; `__cause__` is what it raised."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} ended before it was ready")
        self.path = path


class StartTimeout(ActorError):
    """A child did not call `started()` in time and was cancelled."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__(f"{path} was not ready within {timeout_s:g} s")
        self.path = path
        self.timeout_s = timeout_s


class ChildReturned(ActorError):
    """A permanent child returned, and too often; stands for the error there is none of."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is permanent but returned")
        self.path = path


class NameTaken(ActorError):
    """The name already stands for another child or ref."""

    def __init__(self, name: str, holder: str) -> None:
        super().__init__(f"{name!r} is already taken in {holder}")
        self.name = name


class NameUnknown(ActorError):
    """No ref is registered under the name."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"no actor is registered as {name!r}; known: {', '.join(known) or 'none'}")
        self.name = name


class SystemFailed(ActorError):
    """The root supervisor gave up. `leaves` are the errors behind it, `__cause__` is their group with its nesting."""

    def __init__(self, name: str, leaves: tuple[BaseException, ...]) -> None:
        reasons = "; ".join(f"{type(leaf).__name__}: {leaf}" for leaf in leaves)
        super().__init__(f"the actor system {name!r} failed: {reasons}")
        self.leaves = leaves
