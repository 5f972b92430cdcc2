"""Every error of ours, as one tree split by who is to blame. Pure.

::

    KesokuError
    |-- UsageError            the person at the keyboard or in the config; carries a remedy
    |   |-- ConfigError       exit code 78
    |   `-- NotFound          exit code 2: a session, message or file that does not exist
    |-- PeerError             something we talk to: a provider, a platform, a child process
    `-- Fault                 this program or the machine beneath it
        |-- StoreFault        see `kesoku_actors.store`
        `-- ActorError        see `kesoku_actors.actors`

A message says what failed, which one, and what to do. The command line prints it as one line and exits with
`exit_code`; nothing else turns an error into an exit code.
"""

from __future__ import annotations


class KesokuError(Exception):
    """The root of the tree; `exit_code` is what the command line ends with."""

    exit_code = 1


class UsageError(KesokuError):
    """The request cannot be taken as it was given; the message names the remedy."""

    exit_code = 2


class ConfigError(UsageError):
    """The configuration cannot be used; the message names file, key and line."""

    exit_code = 78


class NotFound(UsageError):
    """A named session, message or file does not exist."""


class PeerError(KesokuError):
    """Something we talk to failed or answered out of protocol."""


class Fault(KesokuError):
    """This program or the machine beneath it failed."""
