"""The turn log: every inference as a YAML file in its session's folder (P4).

* `inference`: what is noted of one inference
* `document`: what is written of it, pure
* `yaml_text`: the YAML writer, pure
* `folder`, `shelf`: files, indices, and which are kept
* `actor`: writes off the path of events
* `asides`: has inferences beside the turns written too
* `reading`: the files as texts, for people
"""

from kesoku_actors.turnlog.actor import TurnLog, TurnLogOptions, TurnLogStatistics
from kesoku_actors.turnlog.asides import LoggedProvider
from kesoku_actors.turnlog.folder import file_name
from kesoku_actors.turnlog.inference import Failure, Inference, Notes
from kesoku_actors.turnlog.reading import LoggedInference, read_logs
from kesoku_actors.turnlog.yaml_text import to_yaml

__all__ = [
    "Failure",
    "Inference",
    "LoggedInference",
    "LoggedProvider",
    "Notes",
    "TurnLog",
    "TurnLogOptions",
    "TurnLogStatistics",
    "file_name",
    "read_logs",
    "to_yaml",
]
