"""Tools: the registry of callables, their schemas, the actor that runs calls, the shell.

* `port`: calls, outcomes, events, and the `Journal` it needs
"""
