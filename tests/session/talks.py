"""Talks drawn at random, as rows of a history that grows, for tests of what a model reads of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import define, evolve, field
from hypothesis import strategies as st

from kesoku_actors.llm.port import StepContent
from kesoku_actors.protocol import AGENT, Message, Role, Status, Type
from kesoku_actors.session.units import Placed

WORDS = "The quick brown fox looks at 2 dogs; Käse, щи, 日本, 🦊. "


def prose(length: int) -> str:
    return (WORDS * (length // len(WORDS) + 1))[:length]


@define
class Talk:
    """Rows as the store would number them, and the steps they came from."""

    rows: list[Placed] = field(factory=list)
    steps: list[StepContent] = field(factory=list)
    root: Message | None = None
    number: int = 0

    def add(self, role: Role, type: Type, content: str, **more: Any) -> Message:
        self.number += 1
        name = f"m{self.number}"
        sender = {Role.USER: "Ada", Role.ASSISTANT: AGENT, Role.TOOL: "look"}[role]
        row = Message(
            id=name,
            seq=self.number,
            rev=self.number,
            session_id="s",
            chatbot_id="bot",
            channel_id="room",
            sender=sender,
            role=role,
            type=type,
            status=Status.RESPONDED if role is not Role.USER else Status.PROCESSING,
            content=content,
            root_id=self.root.id if self.root else name,
            place=self.number,
            timestamp=float(self.number),
            **more,
        )
        self.rows.append(Placed((self.root.seq if self.root else self.number, self.number), row))
        return row

    def begin(self, content: str, **more: Any) -> None:
        self.root = None
        self.root = self.add(Role.USER, Type.TEXT, content, **more)

    def adopt(self, content: str) -> None:
        self.add(Role.USER, Type.TEXT, content)

    def step(self, results: list[tuple[str, str]], thought: str = "", text: str = "", **more: Any) -> None:
        """A step that calls tools, each with its argument and its result."""
        said = [self.add(Role.ASSISTANT, Type.THOUGHT, thought)] if thought else []
        said += [self.add(Role.ASSISTANT, Type.TEXT, text)] if text else []
        calls = [self._call(argument) for argument, _ in results]
        said += calls
        native = {"reasoning_content": thought} if thought else None
        self.steps.append(
            StepContent(provider="openai", model="gpt", native=native, message_ids=tuple(each.id for each in said))
        )
        for call, (_, result) in zip(calls, results, strict=True):
            metadata = {"tool_name": "look", "tool_call_id": call.metadata["tool_call_id"], "outcome": "ok", **more}
            self.add(Role.TOOL, Type.TOOL_RESULT, result, parent_id=call.id, metadata=metadata)

    def _call(self, argument: str) -> Message:
        metadata = {
            "tool_name": "look",
            "tool_arguments": {"at": argument},
            "tool_call_id": f"call_{self.number + 1}",
        }
        return self.add(Role.ASSISTANT, Type.TOOL_CALL, f"look(at={argument!r})", metadata=metadata)

    def answer(self, content: str) -> None:
        said = self.add(Role.ASSISTANT, Type.TEXT, content)
        self.steps.append(StepContent(provider="openai", model="gpt", native=None, message_ids=(said.id,)))
        self.end()

    def end(self, status: Status = Status.PROCESSED) -> None:
        """All messages of the turn that ask for work have ended."""
        assert self.root is not None
        for index, placed in enumerate(self.rows):
            if placed.row.root_id == self.root.id and placed.row.role is Role.USER:
                self.rows[index] = Placed(placed.spot, evolve(placed.row, status=status, rev=placed.row.rev + 10_000))


LENGTHS = st.sampled_from((1, 40, 300, 1_900, 2_001, 5_000, 12_000))
RESULTS = st.lists(st.tuples(LENGTHS, LENGTHS), min_size=1, max_size=3)
Plan = list[list[tuple[str, Any]]]
"""Turns as lists of moves, each turn ending as turns do; texts as their lengths."""
FILES = {"attachments": [{"filename": "a.png", "mime_type": "image/png", "path": "attachments/a.png"}]}


@st.composite
def plans(draw: st.DrawFn, most_turns: int = 5) -> Plan:
    """Draw a plan."""
    planned: Plan = []
    for _ in range(draw(st.integers(1, most_turns))):
        moves: list[tuple[str, Any]] = [("begin", (draw(LENGTHS), draw(st.booleans())))]
        for _ in range(draw(st.integers(0, 4))):
            kind = draw(st.sampled_from(("step", "step", "step", "adopt")))
            thought, text = draw(st.sampled_from((0, 50))), draw(st.sampled_from((0, 300)))
            moves.append((kind, (draw(RESULTS), thought, text) if kind == "step" else draw(LENGTHS)))
        moves.append(draw(st.sampled_from((("answer", 500), ("end", Status.INTERRUPTED)))))
        planned.append(moves)
    return planned


def played(planned: Plan) -> Iterator[Talk]:
    """Play the turns; yield the talk at each moment at which a model is asked."""
    talk = Talk()
    for moves in planned:
        for move, value in moves:
            match move:
                case "begin":
                    content, has_file = value
                    talk.begin(prose(content), metadata=FILES if has_file else {})
                    yield talk
                case "step":
                    results, thought, text = value
                    talk.step([(prose(a), prose(b)) for a, b in results], prose(thought), prose(text))
                    yield talk
                case "adopt":
                    talk.adopt(prose(value))
                    yield talk
                case "answer":
                    talk.answer(prose(value))
                case "end":
                    talk.end(value)
                case _:
                    raise AssertionError(f"no such move: {move}")
