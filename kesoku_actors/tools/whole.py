"""What came of a run, made fit to be staged: harmless, masked, short; a long text whole in a file (I8, T6).

The file is masked like everything else, is readable by nobody else, and is never written through a link that a command
may have put in its place.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import trio
from attrs import evolve

from kesoku_actors.protocol import ATTACHMENTS, AttachmentState, InvalidMessage, attachments_in
from kesoku_actors.tools.output import harmless, head_and_tail
from kesoku_actors.tools.port import ToolOutcome
from kesoku_actors.tools.spool import FOLDER, Mask, open_new

WHOLE_CHARS: Final = 1_000_000
"""Of a text longer than this the middle is not even kept in the file."""


async def presentable(outcome: ToolOutcome, *, mask: Mask, chars: int, workspace: Path, call_id: str) -> ToolOutcome:
    """Return `outcome` as it may be staged; of a content longer than `chars` head and tail, and the file's name."""
    metadata = {key: _masked(value, mask) for key, value in outcome.metadata.items()}
    if outcome.output_file is not None:
        metadata["output_file"] = outcome.output_file
    outcome = _with_sound_attachments(evolve(outcome, metadata=metadata))
    if len(outcome.content) <= chars:
        content = mask(harmless(outcome.content))
        return evolve(outcome, content=head_and_tail(content, chars))
    # In a thread: a megabyte takes longer than an event loop may stand still, and so may the disk.
    return await trio.to_thread.run_sync(_shortened, outcome, mask, chars, workspace, call_id)


def _with_sound_attachments(outcome: ToolOutcome) -> ToolOutcome:
    """Return `outcome` without attachments that are none: who reads the message relies on them (M8)."""
    if ATTACHMENTS not in outcome.metadata:
        return outcome
    try:
        attached = attachments_in(outcome.metadata)
        problem = "" if all(each.state is AttachmentState.SAVED for each in attached) else "they must be saved already"
    except InvalidMessage as invalid:
        problem = str(invalid)
    if not problem:
        return outcome
    rest = {key: value for key, value in outcome.metadata.items() if key != ATTACHMENTS}
    return evolve(outcome, content=f"{outcome.content}\n[its attachments were left out: {problem}]", metadata=rest)


def _shortened(outcome: ToolOutcome, mask: Mask, chars: int, workspace: Path, call_id: str) -> ToolOutcome:
    whole = mask(harmless(head_and_tail(outcome.content, WHOLE_CHARS)))
    if len(whole) <= chars:
        return evolve(outcome, content=whole)
    file = outcome.output_file
    if file is None:
        file = f"{FOLDER}/{call_id}.txt"
        try:
            _write(workspace, f"{call_id}.txt", whole)
        except OSError as problem:
            note = f"left out; they could not be kept in a file: {os.strerror(problem.errno or 0)}"
            return evolve(outcome, content=head_and_tail(whole, chars, note))
    content = head_and_tail(whole, chars, f"left out; the whole is in {file}")
    return evolve(outcome, content=content, metadata={**outcome.metadata, "output_file": file})


async def keep_whole(workspace: Path, file: str, text: str) -> None:
    """Keep a text that was staged before, and so is masked, in `file` of the output folder, unless it is there already.

    Raises `OSError`.
    """
    with suppress(FileExistsError):
        await trio.to_thread.run_sync(_write, workspace, Path(file).name, text)


def _write(workspace: Path, name: str, text: str) -> None:
    with os.fdopen(open_new(workspace, name), "w", encoding="utf-8", errors="replace") as stream:
        stream.write(text)


def _masked(value: Any, mask: Mask) -> Any:
    """What a tool says about its outcome is foreign too: it becomes what JSON can hold."""
    match value:
        case None | bool() | int():
            return value
        case float() if math.isfinite(value):
            return value
        case Mapping():
            return {mask(harmless(str(key))): _masked(inner, mask) for key, inner in value.items()}
        case list() | tuple():
            return [_masked(inner, mask) for inner in value]
        case _:
            return mask(harmless(str(value)))
