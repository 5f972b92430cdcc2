"""Programs of the zoo written again for asyncio and for threads, so that other people's tools can be run on them.

A twin has the same tasks, the same gaps, and as many steps as the program it is of: `asyncio.sleep(0)` stands where
trio has a checkpoint. It is a class, since that is what every tool can use: an object is the shared state, `WORKERS`
names the tasks, `holds` is what must be so when all have ended. Standard library only: the tools live in environments
of their own, with nothing else in them.
"""
