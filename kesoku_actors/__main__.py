"""`kesoku-actors` and `python -m kesoku_actors`: help and version at once, everything else in `cli.run`.

The quick way imports nothing that starting Python has not imported already.
"""

import os
import sys

_HELP = ("--help", "-h")
_VERSION = ("--version", "-V")


def main() -> int:
    """Run the command line of this process and return its exit code."""
    try:
        code = _answer()
    except KeyboardInterrupt:  # while the first modules are imported; `run` deals with every later one
        code = 130
    if (signals := sys.modules.get("signal")) is not None:
        # What is left to do is to go. Python gives signals their default back on its way out, and whoever presses
        # Ctrl-C once more would see a death by signal in place of this code.
        signals.signal(signals.SIGINT, signals.SIG_IGN)
    return code


def _answer() -> int:
    arguments = sys.argv[1:]
    asked = " ".join(arguments) or "--help"
    # A shell that wants completions says so in a variable, whatever the arguments are.
    if asked not in (*_HELP, *_VERSION) or sys.stdout is None or "_KESOKU_ACTORS_COMPLETE" in os.environ:
        from kesoku_actors.cli.run import run

        return run(arguments)
    if asked in _VERSION:
        from kesoku_actors import __version__

        text = f"kesoku-actors {__version__}"
    else:
        from kesoku_actors.cli.table import help_text
        from kesoku_actors.invocation import program_name

        text = help_text(program_name(os.environ))
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except OSError as error:
        from kesoku_actors.cli.run import output_failed

        return output_failed(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
