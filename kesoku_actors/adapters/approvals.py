"""Calls that wait for a person's yes, in words, and a person's answer to them (T7). Pure.

A call is called by the last letters of its id. What a person decides about is shown in full, however long it is, and
harmless: the surface that prints it shows control characters as signs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from kesoku_actors.errors import UsageError
from kesoku_actors.protocol import Approval, CallState
from kesoku_actors.store.port import ApprovalAnswer
from kesoku_actors.values import frozen

FOR_SESSION: Final = "session"
_LETTERS: Final = 4
Lines = tuple[str, ...]


@frozen(kw_only=True)
class Decision:
    """What a person says about a call."""

    approved: bool
    for_session: bool = False


ONCE: Final = Decision(approved=True)
ALWAYS: Final = Decision(approved=True, for_session=True)
NO: Final = Decision(approved=False)


def short_id(approval: Approval) -> str:
    """Return what the call is called."""
    return approval.call_id[-_LETTERS:]


def pick(approvals: Sequence[Approval], name: str) -> Approval:
    """Return the one call that `name` means; nothing means the only one. Raises `UsageError`, in words."""
    found = [each for each in approvals if each.call_id.upper().endswith(name.upper())]
    if len(found) == 1:
        return found[0]
    if not approvals:
        raise UsageError("no call waits for a yes here")
    listed = ", ".join(f"{short_id(each)} ({each.tool})" for each in approvals)
    if not found:
        raise UsageError(f"no call {name[:40]!r} waits for a yes; there are: {listed}")
    raise UsageError(f"{len(found)} calls wait for a yes, name one: {listed}")


def parse(argument: str) -> tuple[str, Decision]:
    """Return the call named behind `/approve`, and whether the yes is for the session."""
    words = argument.split()
    decision = ONCE
    if words and words[-1].lower() == FOR_SESSION:
        decision, words = ALWAYS, words[:-1]
    if len(words) > 1:
        raise UsageError(f"/approve takes an id and the word {FOR_SESSION!r}, not {argument[:40]!r}")
    return (words[0] if words else ""), decision


def covered(approval: Approval) -> str | None:
    """Return what a yes for the session covers, in words; none when it cannot be given."""
    if approval.parts is None:
        return None
    return ", ".join(approval.parts) or approval.tool


def question(approval: Approval, now: float, more: int) -> tuple[str, Lines, Lines]:
    """Return the card of a waiting call: its headline, what it would do in full, and the choices.

    `more` is how many others wait behind it, `now` UTC seconds.
    """
    name, minutes = short_id(approval), max(0.0, approval.expires - now) / 60
    left = f"{minutes:.0f} min left" if minutes >= 1 else "less than a minute left"
    others = f"; {more} more wait{'s' if more == 1 else ''}" if more else ""
    what = covered(approval)
    choices = [f"1  allow once               /approve {name}"]
    if what is not None:
        choices.append(f"2  allow for this session   /approve {name} {FOR_SESSION}   ({what})")
    choices.append(f"3  deny                     /deny {name}")
    return f"{approval.tool} waits for your yes ({left}{others})", in_full(approval.arguments), tuple(choices)


def chosen(approval: Approval, text: str) -> Decision | None:
    """Return what a typed number decides; none when the text is no choice of the card."""
    decision = {"1": ONCE, "2": ALWAYS, "3": NO}.get(text.strip())
    return None if decision is ALWAYS and approval.parts is None else decision


def in_full(arguments: Any) -> Lines:
    """Return a call's arguments, each whole: a command as it would be typed, texts as they are."""
    lines: list[str] = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        first, *rest = text.split("\n")
        lines += [f"$ {first}" if name == "command" else f"{name}: {first}", *(f"  {line}" for line in rest)]
    return tuple(lines) or ("(without arguments)",)


def told(approval: Approval, decision: Decision, answer: ApprovalAnswer) -> str:
    """Return what became of an answer."""
    name = f"{approval.tool} {short_id(approval)}"
    if answer.accepted and not decision.approved:
        return f"denied: {name}"
    if answer.accepted and answer.is_for_session:
        return f"allowed for this session: {covered(approval)}"
    if answer.accepted:
        return f"allowed once: {name}" + ("; this one cannot be allowed for longer" if decision.for_session else "")
    if not answer.is_allowed:
        return f"only who asked, or an admin, decides about {name}"
    if answer.decided_by is not None:
        verb = "denied" if answer.state is CallState.SETTLED else "allowed"
        return f"{answer.decided_by} has decided about {name} already: {verb}, or gone on from there"
    return f"{name} waits no more: nobody answered in time, or it was withdrawn"
