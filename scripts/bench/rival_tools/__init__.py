"""One module for each tool that is compared: it runs one program under the tool, and prints what came of it.

    scripts/python -m scripts.bench.rival_tools.simloop two_doors --schedules 1000 --alarms 200 --seeds 3 --mode random

Each is run with the Python of that tool's environment, and imports nothing but the tool, the twins and the standard
library. The face of the tool is used that its documentation recommends.
"""
