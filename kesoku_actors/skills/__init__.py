"""Skills: folders with instructions and scripts that the model reads when a task needs them.

* `front_matter` `platforms`: the header of a skill; pure
* `catalog` `answers`: which skills there are, and what a model reads of them; pure
* `folders` `shelf`: reading them, and reading them again when they changed
* `tools`: `list_skills` and `use_skill`

The skills that come along lie in `shipped`.
"""

from kesoku_actors.skills.answers import summary
from kesoku_actors.skills.catalog import Catalog, Left, NoSuchSkill, Skill
from kesoku_actors.skills.folders import SHIPPED
from kesoku_actors.skills.front_matter import Header, InvalidHeader
from kesoku_actors.skills.platforms import host_platform
from kesoku_actors.skills.shelf import Shelf
from kesoku_actors.skills.tools import skill_tools

__all__ = [
    "SHIPPED",
    "Catalog",
    "Header",
    "InvalidHeader",
    "Left",
    "NoSuchSkill",
    "Shelf",
    "Skill",
    "host_platform",
    "skill_tools",
    "summary",
]
