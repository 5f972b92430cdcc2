"""The demonstration: a tour in four scenes by the real engine with real tools; only the model is scripted.

* `narrator`: what is written for the person
* `stage`: one life of the daemon, what it does is shown and noted
* `scenes`: what is played, and what must have happened
* `show`: the whole of it
* `scenario.toml`: what the model says
"""
