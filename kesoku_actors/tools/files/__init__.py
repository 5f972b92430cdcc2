"""The tools `read_file`, `write_file` and `edit_file`, beneath the session's folder and configured roots (T3).

* `places`: which path is beneath which root, and what may be done there; pure
* `descent`: the way down from a root, folder by folder, on which no link is followed
* `replacing`: a file replaced as a whole, or not at all
* `texts`: lines with numbers, encodings, one exact replacement; pure
* `pictures`: what picture a file is, and how large; pure
* `tool`: the three tools
"""

from kesoku_actors.tools.files.places import Root
from kesoku_actors.tools.files.tool import FileTools

__all__ = ["FileTools", "Root"]
