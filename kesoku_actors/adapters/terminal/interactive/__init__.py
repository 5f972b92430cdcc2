"""The interactive terminal: a talk in which the input line stays alive while the agent thinks.

* `talk`: all of it together
* `conversation`, `stopping`, `questions`: what is typed to the gateway, what happens to the screen
* `desk`: what a conversation asks of the composition
* `keyboard`, `keys`: the editor as seen from here; `editor` itself (only it imports prompt_toolkit)
* `completion`: what a word may become, pure
* `screen`: transcript, input line and status line, painted by one task
* `region`, `input_rows`, `status_line`: what is painted, pure
* `terminal_modes`: the terminal given back as it was
"""

from kesoku_actors.adapters.terminal.interactive.conversation import Conversation
from kesoku_actors.adapters.terminal.interactive.desk import Answering, Desk
from kesoku_actors.adapters.terminal.interactive.screen import Screen
from kesoku_actors.adapters.terminal.interactive.talk import TalkOptions, run_talk
from kesoku_actors.adapters.terminal.interactive.terminal_modes import quiet_keys

__all__ = ["Answering", "Conversation", "Desk", "Screen", "TalkOptions", "quiet_keys", "run_talk"]
