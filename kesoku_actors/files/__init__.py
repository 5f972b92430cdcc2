"""Files that strangers name, and what they are: shared by whoever saves, shows or sends them.

* `places`: which path is beneath which root; pure
* `descent`: the way down from a root, folder by folder, on which no link is followed (T3)
* `names`: what a file from outside may be called; pure
* `kinds`: what a file is, from its first bytes; pure
* `pictures` `documents`: how many pixels a picture has and how many pages a document, without unpacking it; pure
"""
