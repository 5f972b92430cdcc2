"""Sessions at work: the dispatcher, one worker a session, and the pure turn machine.

* `vocabulary`: events and effects of the turn machine
* `turn` (with `turn_*`): the machine itself, pure
* `replay`: the live check of workers against the machine, pure
* `histories`: kept between turns
* `history`: all that was said, in order, pure
* `preparation`, `ladder` (on `units`, `reach`): what of it a model reads, as much as it can, pure
* `prompting`: puts a request together
* `compaction`, `summarising` (with `compaction_plan`, `summary_prompt`): older turns become summaries
* `brain`: the model that answers
* `purse`: the money of a day
* `worker`: feeds the machine and performs its effects
* `dispatcher`: starts one worker for each session that has work
* `remit`: the channels it works for
* `janitor`: finishes clears
* `titles`: asks the model what to call a session
"""

from kesoku_actors.session.brain import Brain, line_of
from kesoku_actors.session.compaction import (
    Compaction,
    CompactionEnd,
    CompactionParts,
    Compactions,
    CompactionStopped,
    receipt,
)
from kesoku_actors.session.dispatcher import DispatcherParts, Exits, dispatcher
from kesoku_actors.session.hands import WorkerParts
from kesoku_actors.session.histories import Histories
from kesoku_actors.session.history import History
from kesoku_actors.session.janitor import Folders, JanitorParts, janitor
from kesoku_actors.session.prompting import KeepWhole
from kesoku_actors.session.purse import DayPurse
from kesoku_actors.session.remit import Remit, remit_of
from kesoku_actors.session.replay import Difference, Recorded, first_difference
from kesoku_actors.session.summarising import Compacted, CompactionFailed, NothingOld, TooLittle
from kesoku_actors.session.titles import TitleParts, titler
from kesoku_actors.session.turn import TurnLimits
from kesoku_actors.session.worker import WorkerEnd, worker

__all__ = [
    "Brain",
    "Compacted",
    "Compaction",
    "CompactionEnd",
    "CompactionFailed",
    "CompactionParts",
    "CompactionStopped",
    "Compactions",
    "DayPurse",
    "Difference",
    "DispatcherParts",
    "Exits",
    "Folders",
    "Histories",
    "History",
    "JanitorParts",
    "KeepWhole",
    "NothingOld",
    "Recorded",
    "Remit",
    "TitleParts",
    "TooLittle",
    "TurnLimits",
    "WorkerEnd",
    "WorkerParts",
    "dispatcher",
    "first_difference",
    "janitor",
    "line_of",
    "receipt",
    "remit_of",
    "titler",
    "worker",
]
