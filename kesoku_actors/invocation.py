"""How a person calls this program, for hints that can be typed as they stand. Pure.

Whoever starts it under another name than its own says so in a variable, quoted for a shell where need be: the script of
a checkout does.
"""

PROGRAM = "kesoku-actors"

TYPE_CHECKING = False  # the true one, of `typing`, would double the time of `kesoku-actors --help`
if TYPE_CHECKING:
    from collections.abc import Mapping


def program_name(environ: "Mapping[str, str]") -> str:
    """Return what a command line begins with that calls this program again."""
    return environ.get("KESOKU_ACTORS_CALLED") or PROGRAM
