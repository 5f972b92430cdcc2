"""Inferences to be logged."""

from __future__ import annotations

from typing import Any

from kesoku_actors.llm.port import Finish, Piece, ProviderError, Reply
from kesoku_actors.protocol import DeltaKind
from kesoku_actors.turnlog import Inference, Notes

from ..llm.examples import DATE_TOOL, asking, said

BODY = {
    "model": "m-1",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi.\nHow are you?"}],
    "stream": True,
}


def inference(
    end: Reply | ProviderError | None = None,
    *,
    body: dict[str, Any] | None = BODY,
    text: str = "",
    number: int = 1,
    **changes: Any,
) -> Inference:
    """Return an inference that ended like this; without an end it was cancelled."""
    notes = Notes(
        root_id="root",
        attempt=1,
        provider="openai",
        model="m-1",
        began=1_700_000_000.25,
        spent=iter([0.5, 2.0]).__next__,
    )
    if body is not None:
        notes.sent(lambda: body)
    notes.heard(Piece(kind=DeltaKind.TEXT, text=text))
    history = (said(1, "Hi.\nHow are you?"),)
    asked = {"inference_id": f"1.1.{number}", "tools": (DATE_TOOL,), "history": history} | changes
    request = asking(**asked)
    return notes.ended(request, end)


def reply(text: str = "Fine.", **changes: Any) -> Reply:
    """Return a reply."""
    fields: dict[str, Any] = {"provider": "openai", "model": "m-1", "text": text, "finish": Finish.STOP}
    return Reply(**fields | changes)
