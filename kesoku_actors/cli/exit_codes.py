"""What an exit code of this program means: one table for every command, shown in their help."""

ANSWERED = 0
TURN_ERROR = 1
USAGE = 2
DAMAGED = 65
BUG = 70
UNWRITABLE = 73
IN_USE = 75
CONFIGURATION = 78
HUNG_UP = 129
STOPPED = 130
BROKEN_PIPE = 141
TERMINATED = 143

EXIT_CODES = {
    ANSWERED: "answered, or done",
    TURN_ERROR: "the turn ended in an error",
    USAGE: "not understood, or it names something that does not exist",
    DAMAGED: "the database is damaged or newer than this program; it was left untouched",
    BUG: "a bug in this program",
    UNWRITABLE: "a folder, a file or the database cannot be made or written",
    IN_USE: "another process uses the store, or the disk is full",
    CONFIGURATION: "the configuration cannot be used",
    HUNG_UP: "the terminal hung up (SIGHUP); the next chat of the session goes on with the turn",
    STOPPED: "stopped by Ctrl-C",
    BROKEN_PIPE: "the reader of the output went away",
    TERMINATED: "asked to end (SIGTERM); the next chat of the session goes on with the turn",
}


def exit_codes_help() -> str:
    """Return the table as the end of a help text. A `\\b` keeps click from filling the lines below it."""
    return "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())
