"""Control of trio's scheduler; of the harness this package alone imports trio.

* `control`: one run of a program, in which a strategy decides every step
* `standins`: what stands in for the system meanwhile
"""

from kesoku_actors.harness.control.control import Limits, Program, Run, Step, check_trio, execute

__all__ = ["Limits", "Program", "Run", "Step", "check_trio", "execute"]
