"""The zoo: small actor programs with a planted bug each, and their twins without it, to measure strategies by.

* `table`: every bug with its cause, its symptom, how hard it is to hit, and the tasks that race
* `bug`: what is known of a bug, and the causes there are
* `ordering`, `lifetimes`, `endings`, `blocking`, `acting`, `cancelling`, `hard`: the programs, by what goes wrong
* `ports`: programs of SCTBench, with a checkpoint wherever a thread could be preempted
* `score`: how soon, and how often, a strategy finds them, and what a failure of it is reduced to; `tables`: that for
  people and machines; `bench`: `kesoku-actors check --zoo`

The programs are what is tested, not what tests: they import trio and nothing of the harness, and a reader can run any
of them with `trio.run`. A line that races ends in a comment that begins with `race:` and says with what.
"""

from kesoku_actors.harness.zoo.bug import Bug, Cause, Difficulty, Symptom
from kesoku_actors.harness.zoo.score import First, Make, Score, Shrunk, alarms, played, reduced, scored, wilson
from kesoku_actors.harness.zoo.table import BUGS
from kesoku_actors.harness.zoo.tables import HEADER, alone, line, summary

__all__ = [
    "BUGS",
    "HEADER",
    "Bug",
    "Cause",
    "Difficulty",
    "First",
    "Make",
    "Score",
    "Shrunk",
    "Symptom",
    "alarms",
    "alone",
    "line",
    "played",
    "reduced",
    "scored",
    "summary",
    "wilson",
]
