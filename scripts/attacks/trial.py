"""One attack: judged, run if it may, and what came of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Final

import trio
from attrs import frozen

from kesoku_actors.tools import ToolContext, ToolOutcome
from kesoku_actors.tools.shell import Sandbox, ShellOptions, ShellPolicy, clean_environment, end_survivors, shell_tool
from kesoku_actors.tools.whole import presentable
from scripts.attacks.canaries import canaries
from scripts.attacks.rows import ALLOWED, BLOCKED

DEADLINE_S: Final = 1.5


class Profile(StrEnum):
    """How the tool is set up."""

    ALLOWLIST = "A allowlist"
    SANDBOX = "B blocklist + sandbox"
    BARE = "C blocklist alone"


class Fate(StrEnum):
    """What became of an attack."""

    DENIED = "DENY"
    """It was never started."""
    CONTAINED = "CONTAIN"
    """It ran and reached no canary."""
    TOUCHED = "touched"


@frozen(kw_only=True)
class Result:
    """One attack in one profile."""

    row: str
    profile: Profile
    command: str
    fate: Fate
    reached: str | None
    said: str
    """What the model reads."""


@frozen(kw_only=True)
class _Call:
    """A call as `end_survivors` asks of it."""

    call_id: str
    pid: int | None = None
    process_start: float | None = None


async def attempt(row: str, template: str, profile: Profile, *, sandbox: Sandbox | None, folder: Path) -> Result:
    """Run one attack in `folder`, which is its own and made; `sandbox` is used by profile B alone."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    call_id = f"attack.{os.getpid()}.{folder.name}"
    with canaries(folder / "outside", is_aimed_at_us=row[:3] in ("S14", "S15")) as around:
        command = template.format(**around.names())
        tool = shell_tool(
            ShellOptions(
                policy=ShellPolicy(
                    mode="allowlist" if profile is Profile.ALLOWLIST else "blocklist",
                    allowlist_patterns=ALLOWED,
                    blocklist_patterns=BLOCKED,
                ),
                environment=clean_environment(os.environ),
                sandbox=sandbox if profile is Profile.SANDBOX else None,
                end_grace_s=0.1,
            )
        )
        so_far: list[Callable[[], ToolOutcome]] = []
        context = ToolContext(session_id="s", call_id=call_id, workspace=workspace, watch=so_far.append)
        outcome = None
        with trio.move_on_after(DEADLINE_S):
            outcome = await tool(command=command, context=context)
        await end_survivors([_Call(call_id=call_id)], grace_s=0.1)
        outcome = outcome or so_far[-1]()
        shown = await presentable(outcome, mask=str, chars=16_000, workspace=workspace, call_id=call_id)
        reached = around.touched(shown.content)
    if outcome.metadata.get("reason") == "refused":
        fate = Fate.DENIED
    else:
        fate = Fate.CONTAINED if reached is None else Fate.TOUCHED
    return Result(row=row, profile=profile, command=command, fate=fate, reached=reached, said=shown.content)
