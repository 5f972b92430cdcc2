"""Random histories as a store could hold them after anything: interrupted batches, orphans, empty texts, other models.

Each is drawn as rows and steps; calls may have lost their result, have it late or twice, share ids, carry ids and names
no provider takes. The steps of a provider under test hold native content, as a function of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hypothesis import strategies as st

from kesoku_actors.llm.port import Request, StepContent
from kesoku_actors.protocol import Message, Outcome, ToolSchema, Type

from .examples import DATE_TOOL, answered, asking, called, notice, result, said, thought

Native = Callable[[Sequence[Message]], Mapping[str, Any] | None]
"""Makes what a provider said natively of the rows it was stored as."""

OTHERS: Final = (("openai", "gpt"), ("elsewhere", "m"))
TEXTS: Final = st.one_of(
    st.sampled_from(["", " ", "\n\t", "Hello.", "[left out]", "Grüße 🙂", "\u200b", "x" * 300]),
    st.text(max_size=20),
)
NAMES: Final = st.sampled_from(["date", "shell", "no such tool!", "näme", "x" * 200, ""])
CALL_IDS: Final = st.sampled_from(["", "a", "toolu_01", "call 7", "é", "b" * 90, "toolu_00000"])
ARGUMENTS: Final = st.dictionaries(
    st.text(max_size=5).map("_{}".format),
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=5)),
    max_size=3,
)


@st.composite
def requests(draw: st.DrawFn, providers: Mapping[tuple[str, str], Native]) -> Request:
    """Draw a request whose steps came from the given providers and models, and from others."""
    rows: list[Message] = []
    steps: list[StepContent] = []
    owed: list[Message] = []
    number = 0

    def following() -> int:
        nonlocal number
        number += 1
        return number

    if draw(st.booleans()):
        rows.append(said(following(), "Hello."))
    kinds = ["said", "said", "notice", "step", "step", "step", "results", "results", "orphan"]
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=14)):
        match kind:
            case "said":
                rows.append(said(following(), draw(TEXTS), draw(st.sampled_from(["User", "Ann", "B\n: evil"]))))
            case "notice":
                rows.append(notice(following(), draw(TEXTS)))
            case "step":
                made = _step(draw, following)
                rows += made
                owed += [row for row in made if row.type is Type.TOOL_CALL]
                who = draw(st.sampled_from([*providers, *providers, *providers, *OTHERS, None]))
                if who is not None:
                    native = providers[who](made) if who in providers else {"role": "assistant", "content": "foreign"}
                    ids = tuple(row.id for row in made)
                    steps.append(StepContent(provider=who[0], model=who[1], native=native, message_ids=ids))
            case "results":
                for call in draw(st.permutations(owed)):
                    if draw(st.integers(0, 5)):
                        rows.append(result(following(), call, draw(TEXTS), draw(st.sampled_from(list(Outcome)))))
                owed.clear()
            case _:
                lost = called(9_000 + following(), draw(NAMES) or "x", draw(CALL_IDS))
                rows.append(result(following(), lost, draw(TEXTS)))
    tools: tuple[ToolSchema, ...] = draw(st.sampled_from([(DATE_TOOL,), ()]))
    nudge = draw(st.sampled_from([None, None, "Please answer."]))
    return asking(*rows, steps=tuple(steps), tools=tools, nudge=nudge, system=draw(st.sampled_from(["Be brief.", ""])))


def _step(draw: st.DrawFn, following: Callable[[], int]) -> list[Message]:
    rows: list[Message] = []
    if draw(st.booleans()):
        rows.append(thought(following(), draw(TEXTS)))
    for _ in range(draw(st.integers(0, 2))):
        rows.append(answered(following(), draw(TEXTS)))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2, 3]))):
        rows.append(called(following(), draw(NAMES) or "x", draw(CALL_IDS), **draw(ARGUMENTS)))
    if rows and rows[-1].type is Type.TEXT and not draw(st.integers(0, 4)):
        rows[-1] = answered(following(), draw(TEXTS), partial=True)
    return rows
