"""Control of trio's scheduler; of the harness this package alone imports trio.

* `control`: one run of a program, in which a strategy decides every step; `run`: what came of it
* `runqueue`: what stands in for trio's run queue; `standins`: for the system
* `canary`: whether the installed trio does what all of this relies on
"""

from kesoku_actors.harness.control.control import check_trio, execute
from kesoku_actors.harness.control.run import Limits, Program, Run, Step

__all__ = ["Limits", "Program", "Run", "Step", "check_trio", "execute"]
