"""Let a script go on in the tests' environment, whatever Python it was started with. Standard library only."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

NEEDED = ("apsw", "attrs", "cattrs", "hypothesis", "pytest", "trio")


def enter() -> None:
    """Start the script again with `scripts/python`, unless what it needs is here.

    So an environment of one's own, with the extra `test`, is used as it is.
    """
    has_entered = os.environ.pop("KESOKU_ENTERED", None)
    if all(find_spec(name) for name in NEEDED):
        return
    python = Path(__file__).resolve().parent / "python"
    if has_entered:
        sys.exit(f"the environment of the tests is broken; remove {python.parents[1] / '.cache'} and try again")
    os.environ["KESOKU_ENTERED"] = "1"
    os.execv(python, [str(python), *sys.argv])
