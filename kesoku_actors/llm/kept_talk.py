"""A talk as one model reads it, kept from request to request: what stands before the last answers is made once. Pure.

Making a request turns rows into messages, checks them and writes them as JSON. The next request of a session has the
same rows and some more, so the messages before an answer are kept, checked and written, with the rows and steps they
were made of; what is made anew is what follows them.

Invariant: what is sent equals what is made of the whole request anew, byte for byte. Therefore

* what is kept ends where an answer begins a message of its own (`Seam`), and each of its calls has its result there:
  no row behind it changes what it says;
* it is given up from the first row on that is another one than before, or that came from another step, or that brings
  files; and all of it when the tools change;
* rules of one message and of neighbours hold in it and are checked in the rest, which begins behind a stand-in for what
  the user's side said last; what is about the whole (sizes, the turn being answered) a wire looks at each time;
* a request that breaks a rule, or may break one, is made and mended whole, and nothing is kept of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from attrs import field

from kesoku_actors.llm.port import Purpose, StepContent
from kesoku_actors.llm.talk import CallIds, Made, Seam, Stretch, Taken, call_ids, steps_by_row
from kesoku_actors.llm.unchanged import agreeing, are_same, is_same_row, is_same_step
from kesoku_actors.llm.wire import Wire
from kesoku_actors.llm.written import Written, encode, encode_items, join_items, whole
from kesoku_actors.protocol import Message, ToolSchema, Type
from kesoku_actors.values import define, frozen

SHORTEST: Final = 64
"""Rows of a talk worth keeping anything of."""
GRAIN: Final = 16
"""Rows, at least, of what is written in one go when much is; what is given up goes with as many."""
MOST_MODELS: Final = 2
"""Of one session's, whose talk is kept."""


@frozen(kw_only=True)
class _Piece:
    """Answers and what was said to the model behind them; counts are of all up to its end."""

    rows: int
    messages: int
    made: int
    """Ids of ours."""
    size: int
    """Bytes."""
    json: bytes
    ids: tuple[str, ...]


_NOTHING: Final = _Piece(rows=0, messages=0, made=0, size=0, json=b"", ids=())


@define(eq=False)
class KeptTalks:
    """The talks of one session with its models. Whoever holds the session's history holds it."""

    shortest: int = SHORTEST
    compares: bool = False
    """Whether each request is also made whole and compared, for tests. Raises `AssertionError`."""
    _talks: dict[tuple[str, str], _Talk] = field(factory=dict, init=False)
    """That of the model asked last stands last."""

    @property
    def rows(self) -> int:
        """How many rows are kept."""
        return sum(talk.end.rows for talk in self._talks.values())

    @property
    def size(self) -> int:
        """How many bytes of JSON are kept."""
        return sum(talk.end.size for talk in self._talks.values())

    def of(self, wire: Wire) -> _Talk:
        """Return the talk with the model of a request; of models asked long ago none is kept."""
        talk = self._talks.pop(wire.asked) if wire.asked in self._talks else _Talk()
        self._talks[wire.asked] = talk
        while len(self._talks) > MOST_MODELS:
            del self._talks[next(iter(self._talks))]
        return talk

    def forget(self) -> None:
        """Give up everything."""
        self._talks.clear()


def write(wire: Wire) -> Written:
    """Return a request as it is sent, and keep of it what its `Request.kept` asks for."""
    request, kept = wire.request, wire.request.kept
    is_kept = request.purpose is Purpose.ANSWER and not request.is_plain
    if kept is None or not is_kept or len(request.history) < kept.shortest:
        return whole(wire.key, wire.whole())
    written = kept.of(wire).write(wire)
    if written is None:
        return whole(wire.key, wire.whole())
    if kept.compares:
        anew = whole(wire.key, wire.whole())
        assert (written.content, written.repairs) == (anew.content, anew.repairs), "a kept talk differs"
        assert encode(written.body) == anew.content, "a kept talk is not what is sent"
    return written


@define(eq=False)
class _Talk:
    """What is kept of a talk with one model."""

    _tools: tuple[ToolSchema, ...] = field(default=(), init=False)
    _steps: tuple[StepContent, ...] = field(default=(), init=False)
    """All of the last request's."""
    _step_of: dict[str, StepContent] = field(factory=dict, init=False)
    _pieces: list[_Piece] = field(factory=list, init=False)
    _rows: list[Message] = field(factory=list, init=False)
    _places: dict[str, int] = field(factory=dict, init=False)
    _messages: list[Mapping[str, Any]] = field(factory=list, init=False)
    _ids: set[str] = field(factory=set, init=False)

    @property
    def end(self) -> _Piece:
        """The last piece."""
        return self._pieces[-1] if self._pieces else _NOTHING

    def write(self, wire: Wire) -> Written | None:
        """Return the request as it is sent; none when it has to be made and mended whole."""
        self._agree(wire)
        stretch, made, named = self._make(wire)
        known, messages = self.end.rows, [*self._messages, *made.messages]
        marked = wire.marked(messages)
        for place, message in marked.items():
            messages[place] = message
        unmarked = min(marked, default=len(messages))
        checked = self._settled(unmarked)
        try:
            self._keep(wire, stretch, made, named)
            written = self._written(wire, messages, unmarked)
            if wire.is_sound(written, checked[-1].messages if checked else 0):
                return written
        except UnicodeEncodeError:  # half a surrogate pair is mended like everything else
            pass
        self._cut(known)
        return None

    def _written(self, wire: Wire, messages: list[Mapping[str, Any]], unmarked: int) -> Written:
        """Join what is written already and what is not, or not as it is sent now."""
        settled, preface = self._settled(unmarked), wire.preface()
        rest = messages[settled[-1].messages if settled else 0 :]
        parts = [encode_items(preface), *[piece.json for piece in settled], encode_items(rest)]
        return Written(body=wire.body([*preface, *messages]), key=wire.key, talk=join_items(parts))

    def _settled(self, messages: int) -> list[_Piece]:
        """Return the pieces that end before or at a message."""
        count = len(self._pieces)
        while count and self._pieces[count - 1].messages > messages:
            count -= 1
        return self._pieces[:count]

    def _agree(self, wire: Wire) -> None:
        """Give up what is not as it was."""
        request = wire.request
        if not are_same(self._tools, request.tools):
            self._cut(0)
            self._tools = request.tools
        step = agreeing(self._steps, request.steps, is_same_step)
        changed = chain(self._steps[step:], request.steps[step:])
        touched = chain(wire.media, chain.from_iterable(each.message_ids for each in changed))
        places = [self._places[id] for id in touched if id in self._places]
        self._cut(min([agreeing(self._rows, request.history, is_same_row), *places]))
        if step == len(self._steps):
            self._step_of |= steps_by_row(request.steps[step:])
        else:
            self._step_of = steps_by_row(request.steps)
        self._steps = request.steps

    def _make(self, wire: Wire) -> tuple[Stretch, Made, CallIds]:
        """Make what follows what is kept; give up of that what it does not follow."""
        request, rule = wire.request, wire.id_rule
        while True:
            rows = request.history[self.end.rows :]
            stretch = Stretch(rows=rows, step_of=self._step_of, nudge=request.nudge)
            named = CallIds() if rule is None else call_ids(stretch, rule, Taken(ids=self._ids, made=self.end.made))
            if rule is not None and any(_is_below(rule.number(id), self.end.made) for id in named.given):
                self._cut(0)  # one of ours is given now: each would be another one
                continue
            made = wire.make(stretch, named.by_row)
            if not self._pieces or (made.seams and made.seams[0].message == 0):
                return stretch, made, named
            self._cut(self.end.rows - 1)

    def _cut(self, row: int) -> None:
        """Give up what is kept from the piece with this row on."""
        while self._pieces and self._pieces[-1].rows > row:
            self._ids.difference_update(self._pieces.pop().ids)
        for gone in self._rows[self.end.rows :]:
            del self._places[gone.id]
        del self._rows[self.end.rows :]
        del self._messages[self.end.messages :]

    def _keep(self, wire: Wire, stretch: Stretch, made: Made, named: CallIds) -> None:
        """Keep the messages of a request up to its last answer, as far as they stand for themselves."""
        begin, first = Seam(row=0, message=0), self.end.rows
        for end, ours in self._ends(wire, stretch, made, named):
            if end.row - begin.row < GRAIN and end is not made.seams[-1]:
                continue
            rows, messages = stretch.rows[begin.row : end.row], made.messages[begin.message : end.message]
            if not wire.may_be_kept(messages):
                return
            json = encode_items(messages)
            piece = _Piece(
                rows=first + end.row,
                messages=len(self._messages) + len(messages),
                made=ours,
                size=self.end.size + len(json) + 1,
                json=json,
                ids=tuple(named.by_row[row.id] for row in rows if row.id in named.by_row),
            )
            self._places |= {row.id: place for place, row in enumerate(rows, first + begin.row)}
            self._rows += rows
            self._messages += messages
            self._ids.update(piece.ids)
            self._pieces.append(piece)
            begin = end

    def _ends(self, wire: Wire, stretch: Stretch, made: Made, named: CallIds) -> Iterator[tuple[Seam, int]]:
        """Yield where what is kept may end, each with how many ids of ours there are up to it."""
        ours, seen, awaited = self.end.made, set[str](), set[str]()
        for seam in made.seams:
            for row in stretch.rows[len(seen) : seam.row]:
                is_known = row.id in self._places or row.id in seen
                parent = row.parent_id if row.type is Type.TOOL_RESULT else None
                is_orphan = parent is not None and parent not in self._places and parent not in seen
                if is_known or is_orphan or row.id in wire.media or named.made.get(row.id, ours) != ours:
                    return
                seen.add(row.id)
                ours += row.id in named.made
                if row.type is Type.TOOL_CALL:
                    awaited.add(row.id)
                awaited.discard(parent or "")
            if seam.message and not awaited:
                yield seam, ours


def _is_below(number: int | None, made: int) -> bool:
    return number is not None and number < made
