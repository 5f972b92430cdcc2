"""Tools as each provider takes them: one JSON schema, three exact dialects. Pure.

* `openai` `claude` `gemini`: `declare(tools)` in the words of that provider
* `declared`: what comes of it, and the way of a call out and back in
* `names`: names that a provider refuses, mapped one to one
* `normal`: any JSON schema in few keywords

What a dialect cannot say as a rule it says in the description; `tools` checks the arguments anyway.
"""

from kesoku_actors.llm.dialects.declared import Declared, Declaring

__all__ = ["Declared", "Declaring"]
