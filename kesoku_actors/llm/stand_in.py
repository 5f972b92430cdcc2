"""What an SDK is asked with in place of the talk, which is put into its request when that leaves.

An SDK takes the messages of a request as its own classes and walks through every one before it writes them: of a talk
of 5,000 messages a tenth of a second (Anthropic's) or nearly a whole one (Google's), in which nothing else would run.
The talk is checked and written already (`kept_talk`). So the SDK words all but the talk, and signs and sends it.
"""

from __future__ import annotations

import json

import httpx2

from kesoku_actors.llm.port import Body
from kesoku_actors.llm.written import Written, splice


def put_talk(request: httpx2.Request, written: Written) -> Body:
    """Put the talk in the place of what stands for it; return what tells the body. For a hook of the client."""
    said = json.loads(request.content)
    assert written.key in said, "the SDK words the talk under another name"
    content = splice(said, written.key, written.talk)
    request.stream = httpx2.ByteStream(content)
    request.headers["content-length"] = str(len(content))
    return lambda: {**said, written.key: written.body[written.key]}
