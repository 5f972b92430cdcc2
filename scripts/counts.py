"""Numbers on a command line of which at least one is needed: with none a script would pass without having looked."""

import argparse


def count(said: str) -> int:
    """Return a whole number from 1 on. Raises `ArgumentTypeError`."""
    if not (said.isascii() and said.isdecimal() and int(said) > 0):
        raise argparse.ArgumentTypeError(f"it is a whole number from 1 on, not {said!r}")
    return int(said)


def minutes(said: str) -> float:
    """Return a time that is longer than none. Raises `ArgumentTypeError`."""
    try:
        time = float(said)
    except ValueError:
        time = 0.0
    if not time > 0:
        raise argparse.ArgumentTypeError(f"it is a number above 0, not {said!r}")
    return time
