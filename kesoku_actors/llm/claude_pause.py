"""The request that has a paused message of Claude's gone on with (`pause_turn`). Pure.

It ends with what was said so far, unchanged, as the service wants it back; but for that end it keeps every rule of
`claude_rules` (P1). A use of the service's own tools whose result is still to come is what the message paused for: it
stays, last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kesoku_actors.llm.claude_repair import repair
from kesoku_actors.llm.claude_rules import SERVER_USE
from kesoku_actors.llm.repaired import GO_ON, RepairedBody

Block = dict[str, Any]


def going_on(body: Mapping[str, Any], said: Sequence[Block]) -> RepairedBody:
    """Return the body that goes on with what was said. Neither argument is changed."""
    answered = {block.get("tool_use_id") for block in said}
    waiting = [block for block in said if block["type"] == SERVER_USE and block.get("id") not in answered]
    done = [block for block in said if not any(block is one for one in waiting)]
    before = list(body["messages"])
    ends = {"role": "user", "content": [{"type": "text", "text": GO_ON}]}
    sound = repair({**body, "messages": [*before, {"role": "assistant", "content": done}, ends] if done else before})
    messages = list(sound.body["messages"])
    end = messages.pop() if done else {"content": ()}
    if len(end["content"]) > 1:  # nothing of what was said could be kept
        messages.append({**end, "content": end["content"][:-1]})
    if waiting:
        last = messages.pop() if messages[-1]["role"] == "assistant" else {"role": "assistant", "content": []}
        messages.append({**last, "content": [*last["content"], *waiting]})
    return RepairedBody(body={**sound.body, "messages": messages}, repairs=sound.repairs)
