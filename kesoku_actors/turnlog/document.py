"""The document of one inference, as `llm-turn-{idx}.log.yaml` holds it (P4). Pure.

::

    metadata:   when (unix and ISO time, UTC), session, idx, provider, model, the ids that lead to the stored rows
    history:    the messages as they were sent
    tools:      what the model was offered: each tool's parameters with their types
    request:    the whole body as it was sent; the history in it is the one above
    response:   how it ended, text, thoughts, calls, tokens, finish reason, latency
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kesoku_actors.llm.port import Reply
from kesoku_actors.protocol import StepState, ToolSchema, Usage
from kesoku_actors.turnlog.inference import Inference
from kesoku_actors.turnlog.yaml_text import Edit, Named, Same

HISTORY_KEYS: Final = ("messages", "contents", "input")
"""Where the providers' bodies hold the history."""
LONGEST_DATA: Final = 65_536
"""Characters of a text without a space that are written; one that is longer is a file, not words."""
_DATA: Final = re.compile(rf"[A-Za-z0-9+/=_:;,.-]{{{LONGEST_DATA},}}\Z")


def make_document(inference: Inference, idx: int) -> dict[str, Any]:
    """Return what is written of an inference."""
    request = inference.request
    history, body = _as_sent(None if inference.body is None else inference.body())
    return {
        "metadata": {
            "unix_time": round(inference.began, 6),
            "iso_time": datetime.fromtimestamp(inference.began, UTC).isoformat(timespec="milliseconds"),
            "session_id": request.session_id,
            "idx": idx,
            "provider": inference.provider,
            "model": inference.model,
            "purpose": request.purpose.value,
            "inference_id": request.inference_id,
            "root_id": inference.root_id or None,
            "attempt": inference.attempt,
            "sends": inference.sends,
        },
        "history": history,
        "tools": [_tool(tool) for tool in inference.tools],
        "request": body,
        "response": _response(inference),
    }


def without_data(edit: Edit) -> Edit:
    """Return an edit that also replaces a long text without spaces, a file in base64 say, by its size and sha256."""

    def edited(text: str) -> str:
        text = edit(text)
        if len(text) <= LONGEST_DATA or not _DATA.match(text):
            return text
        digest = hashlib.sha256(text.encode()).hexdigest()
        return f"({len(text)} characters of data that begin with {text[:40]}, sha256 {digest})"

    return edited


def _as_sent(body: Mapping[str, Any] | None) -> tuple[Any, dict[str, Any] | None]:
    """Return the history of a body, and the body with a reference to it."""
    if body is None:
        return [], None
    for key in HISTORY_KEYS:
        if isinstance(body.get(key), list | tuple):
            return Named("history", body[key]), {**body, key: Same("history")}
    return [], dict(body)


def _tool(tool: ToolSchema) -> dict[str, Any]:
    properties, required = tool.parameters.get("properties", {}), tool.parameters.get("required", ())
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": [
            {"name": name, "type": _type(schema), "required": name in required, **_described(schema)}
            for name, schema in properties.items()
        ],
    }


def _type(schema: Any) -> str:
    """Return the type of a parameter in words."""
    if not isinstance(schema, Mapping):
        return "any"
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list | tuple):
            return " or ".join(_type(part) for part in schema[key])
    kind = schema.get("type")
    if isinstance(kind, list | tuple):
        return " or ".join(map(str, kind))
    if kind == "array" and "items" in schema:
        return f"array of {_type(schema['items'])}"
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    return str(kind) if kind is not None else "any"


def _described(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        return {}
    return {key: schema[key] for key in ("description", "default") if key in schema}


def _response(inference: Inference) -> dict[str, Any]:
    reply, failure = inference.reply, inference.failure
    response: dict[str, Any] = {"state": inference.state.value}
    if failure is not None:
        response["error"] = {"kind": failure.kind, "message": failure.message, "remedy": failure.remedy}
    if inference.state is not StepState.FINISHED:
        response["note"] = _UNFINISHED[inference.state]
    usage = reply.usage if reply is not None else Usage()
    return response | {
        "text": inference.text,
        "thoughts": inference.thought,
        "calls": _calls(reply),
        "tokens": {
            "input": usage.input,
            "cached": usage.cached,
            "output": usage.output,
            "thinking": usage.thinking,
        },
        "finish_reason": (reply.finish_reason or reply.finish.value) if reply is not None else None,
        "latency_s": round(inference.duration_s, 6),
        "first_piece_s": None if inference.first_piece_s is None else round(inference.first_piece_s, 6),
        "native": reply.native if reply is not None else None,
    }


_UNFINISHED: Final = {
    StepState.CANCELLED: "cancelled before its end: text and thoughts are what had come until then",
    StepState.FAILED: "failed before its end: text and thoughts are what had come until then",
}


def _calls(reply: Reply | None) -> list[dict[str, Any]]:
    if reply is None:
        return []
    return [
        {
            "name": call.name,
            "id": call.id,
            "arguments": call.arguments,
            **({} if call.invalid is None else {"invalid": call.invalid}),
        }
        for call in reply.calls
    ]
