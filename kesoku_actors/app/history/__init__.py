"""What is stored of the past, for people on the command line.

* `finding`: the store opened for reading, and the session a person means
* `listing` `showing` `searching`: the commands that only read (C6)
* `pages`: a session as lines of text; pure
* `export_lines`: the rows of a session as lines of JSON, and back; pure
* `exporting` `importing`: whole sessions as one file, and back
"""
