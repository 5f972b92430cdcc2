"""The store: one writer, group commit, the only truth.

* `port`: the commands it takes and the replies it gives
"""
