"""The commands. Starting is fast because help and version come from a table, and a command is imported when it runs.

* `table`: every command with the module it lives in and its line of help
* `run`: finds the command, runs it, and turns what it raises into one line and an exit code
* `exit_codes`: what an exit code means; `collector`: how often Python looks for garbage
* one module per command, each with its click command as `command`

`kesoku_actors.__main__`, `table` and this file import nothing at all: importing click alone costs three times what
starting Python does.
"""
