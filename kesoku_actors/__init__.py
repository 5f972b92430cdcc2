"""kesoku-actors: an autonomous agent daemon, built of supervised actors on trio.

A map, lowest row first; a module imports only from lower rows or its own package:

* `errors`, `log`, `clock`, `invocation`: the error tree, the logger as a value, time and ids as values, our name
* `protocol`: messages, sessions, events
* `actors`: the actor kernel: mailbox, ref, supervisor
* `store`, `llm`, `tools`, `prompt`: what a turn needs
* `gateway`: the one door for messages, sessions and commands
* `session`: dispatcher, worker and the pure turn machine
* `adapters`: the edges, where people are
* `app`, `cli`: settings, the supervision tree, the commands
"""

__version__ = "0.1.0"  # plain: importing `typing` here would double the time of `kesoku-actors --version`
