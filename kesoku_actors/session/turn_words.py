"""What the turn machine writes down: drafts of what the model said, notices to people, steps. Pure.

Invariants (M3, M4, P3): every draft fits its role and type; blocks equal in id, name and arguments are one call,
an equal id with anything different is two; a call that cannot run carries its reason as `invalid`, is committed like
any other and gets one error result, so that the model's own record of its calls stays complete; thoughts and partial
text are never empty rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kesoku_actors.llm.port import CallRequest, Finish, Reply
from kesoku_actors.protocol import AGENT, SYSTEM, Draft, Reason, Role, Status, Step, StepState, Type, Usage

_MARKS: Final[Mapping[Finish, Mapping[str, bool]]] = {
    Finish.LENGTH: {"truncated": True},
    Finish.REFUSED: {"refused": True},
}
_NO_MARKS: Final[Mapping[str, bool]] = {}


def answer(reply: Reply) -> tuple[Draft, ...]:
    """Return the rows of a final answer: the thought that led to it stays, the answer leaves."""
    marks = _MARKS.get(reply.finish, _NO_MARKS)
    return (*_thought(reply), _said(Type.TEXT, Status.PENDING, reply.text, marks))


def calls(reply: Reply, max_calls: int) -> tuple[Draft, ...]:
    """Return the rows of a step with calls: thought, text, then the calls in order.

    Calls beyond `max_calls` do not run: each is told so by its result.
    """
    text = (_said(Type.TEXT, Status.RESPONDED, reply.text),) if reply.text.strip() else ()
    rows = [_call(call, None if n < max_calls else max_calls) for n, call in enumerate(_distinct(reply.calls))]
    return (*_thought(reply), *text, *rows)


def partial(text: str) -> tuple[Draft, ...]:
    """Return what had been streamed when the turn was ended, if it says anything (I2)."""
    return (_said(Type.TEXT, Status.RESPONDED, text, {"partial": True}),) if text.strip() else ()


def notice(reason: Reason, sentence: str) -> Draft:
    """Return a notice to people: why a turn ended without an answer, or goes on otherwise than they think."""
    return Draft(
        role=Role.SYSTEM,
        type=Type.TEXT,
        status=Status.PENDING,
        sender=SYSTEM,
        content=sentence,
        metadata={"notice": reason.value},
    )


def unshown(files: Sequence[str]) -> tuple[Draft, ...]:
    """Return what people are told of files that the model was not shown, if there are any."""
    if not files:
        return ()
    sentence = "\n".join(("The model was not shown everything that was attached:", *files))
    return (notice(Reason.PROVIDER, sentence),)


def finished(inference_id: str, reply: Reply, duration_s: float) -> Step:
    """Return the step of an inference whose reply is kept whole."""
    return Step(
        inference_id=inference_id,
        provider=reply.provider,
        model=reply.model,
        state=StepState.FINISHED,
        native=reply.native,
        finish_reason=reply.finish_reason or reply.finish.value,
        usage=reply.usage,
        duration_s=duration_s,
    )


def dropped(inference_id: str, reply: Reply, duration_s: float, state: StepState, error: str | None = None) -> Step:
    """Return the step of a reply that came and is not kept: it was aborted, or empty (I2, P3)."""
    return Step(
        inference_id=inference_id,
        provider=reply.provider,
        model=reply.model,
        state=state,
        finish_reason=reply.finish_reason or reply.finish.value,
        error=error,
        usage=reply.usage,
        duration_s=duration_s,
    )


def lost(
    inference_id: str,
    provider: str,
    model: str,
    duration_s: float,
    state: StepState,
    error: str | None = None,
    usage: Usage | None = None,
) -> Step:
    """Return the step of an inference that gave no reply."""
    return Step(
        inference_id=inference_id,
        provider=provider,
        model=model,
        state=state,
        error=error,
        usage=usage or Usage(),
        duration_s=duration_s,
    )


def _said(type: Type, status: Status, content: str, metadata: Mapping[str, Any] = _NO_MARKS) -> Draft:
    return Draft(role=Role.ASSISTANT, type=type, status=status, sender=AGENT, content=content, metadata=metadata)


def _thought(reply: Reply) -> tuple[Draft, ...]:
    return (_said(Type.THOUGHT, Status.RESPONDED, reply.thought),) if reply.thought.strip() else ()


def _call(call: CallRequest, beyond: int | None) -> Draft:
    too_many = f"more than {beyond} calls in one step; this one did not run, ask for it again"
    invalid = call.invalid if beyond is None else too_many
    metadata = {"tool_name": call.name, "tool_arguments": dict(call.arguments), "tool_call_id": call.id}
    if call.signature is not None:
        metadata["thought_signature"] = call.signature
    if invalid is not None:
        metadata["invalid"] = invalid
    return _said(Type.TOOL_CALL, Status.RESPONDED, _readable(call), metadata)


def _readable(call: CallRequest) -> str:
    arguments = ", ".join(f"{name}={_json(value)}" for name, value in call.arguments.items())
    return f"{call.name}({arguments})"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _distinct(requests: Sequence[CallRequest]) -> list[CallRequest]:
    """Drop blocks that repeat a call; without an id of the provider's nothing says that two are one."""
    if len(requests) < 2:
        return list(requests)
    seen: set[tuple[str, str, str, str | None]] = set()
    kept = []
    for call in requests:
        block = (call.id, call.name, _json(call.arguments), call.invalid)
        if not call.id or block not in seen:
            seen.add(block)
            kept.append(call)
    return kept
