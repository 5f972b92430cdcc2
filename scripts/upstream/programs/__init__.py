"""Small programs on released packages of other people, unchanged: each asserts what the package's own words promise.

A docstring is the property, and says where it is promised when that is not obvious. `scripts/upstream/run` explores
them in an environment of their own and prints a table.
"""
