"""Actors on trio: addresses, mailboxes and supervision. Knows nothing of what its actors are for.

An actor is an async function over its inbox::

    async def counter(cell: Cell[Add]) -> None:
        total = 0
        cell.started()
        async for letter in cell.inbox:
            total += letter.message.amount
            letter.reply(total)

    mailbox = Mailbox[Add]("counter")
    tree = SupervisorSpec(id="root", children=(ChildSpec(id="counter", start=counter, mailbox=mailbox),))
    async with run_system(tree):
        total = await mailbox.ref.ask(Add(amount=2))

Where to look:

- `ref` `letter` `mailbox` `inbox`     a message on its way, and its answer
- `cell`                               what an actor is given, and how it ends
- `spec`                               the tree as data
- `strategy` `order` `leaves`          every decision of a supervisor, pure
- `child` `supervisor` `dynamic`       the tasks
- `system`                             running a tree
- `registry` `statistics` `errors`     names, readings, what can go wrong
- `testing`                            aids for the tests of actors
"""

from .cell import Cell
from .child import Log
from .dynamic import ChildExit, Dynamic
from .errors import (
    ActorError,
    ActorStopped,
    AskTimeout,
    ChildReturned,
    MailboxFull,
    NameTaken,
    NameUnknown,
    StartFailed,
    StartTimeout,
    SystemFailed,
)
from .inbox import Inbox
from .leaves import has_leaf, is_ordinary, leaves
from .letter import Letter
from .mailbox import Mailbox
from .ref import Ref
from .registry import Entry, Registry
from .spec import ChildSpec, DynamicSpec, Restart, Strategy, SupervisorSpec
from .statistics import ChildStatistics, Kind, MailboxStatistics, Phase
from .strategy import Ending
from .system import System, run_system

__all__ = [
    "ActorError",
    "ActorStopped",
    "AskTimeout",
    "Cell",
    "ChildExit",
    "ChildReturned",
    "ChildSpec",
    "ChildStatistics",
    "Dynamic",
    "DynamicSpec",
    "Ending",
    "Entry",
    "Inbox",
    "Kind",
    "Letter",
    "Log",
    "Mailbox",
    "MailboxFull",
    "MailboxStatistics",
    "NameTaken",
    "NameUnknown",
    "Phase",
    "Ref",
    "Registry",
    "Restart",
    "StartFailed",
    "StartTimeout",
    "Strategy",
    "SupervisorSpec",
    "System",
    "SystemFailed",
    "has_leaf",
    "is_ordinary",
    "leaves",
    "run_system",
]
