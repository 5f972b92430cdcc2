"""Sessions at work: the dispatcher, one worker a session, and the pure turn machine.

* `vocabulary`: events and effects of the turn machine
"""
