"""The tools `read_file`, `write_file` and `edit_file`, beneath the session's folder and configured roots (T3).

* `replacing`: a file replaced as a whole, or not at all
* `texts`: lines with numbers, encodings, one exact replacement; pure
* `tool`: the three tools
"""

from kesoku_actors.files.places import Root
from kesoku_actors.tools.files.tool import FileTools

__all__ = ["FileTools", "Root"]
