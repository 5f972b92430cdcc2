"""The table of commands: what is one, what is a message, what is neither."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.adapters.approvals import ALWAYS, NO, ONCE, Decision
from kesoku_actors.adapters.commands import COMMANDS, Choice, CommandTable, Do, ModelInfo, Refuse, Say, Values
from kesoku_actors.errors import UsageError
from kesoku_actors.protocol import Approval, BusyMode, Job, JobEnding, JobState, Stop
from kesoku_actors.store import NothingToStop

NAMES = [
    "stop",
    "force",
    "clear",
    "compact",
    "status",
    "sessions",
    "resume",
    "llm",
    "mode",
    "approve",
    "deny",
    "jobs",
    "trace",
    "help",
    "quit",
]


class Room:
    """A surface that notes what was asked of it."""

    commands = COMMANDS

    def __init__(self, reply: Stop | NothingToStop) -> None:
        self.reply = reply
        self.compacts = False
        self.asked: list[Any] = []
        self.waiting: tuple[Approval, ...] = ()
        self.work: tuple[Job, ...] = ()

    async def stop(self) -> Stop | NothingToStop:
        return self.reply

    async def force(self) -> Stop | NothingToStop:
        return self.reply

    async def clear(self) -> Stop | NothingToStop:
        return self.reply

    async def compact(self) -> tuple[str, ...]:
        return ("summarising",)

    def end_compaction(self) -> bool:
        self.asked.append("end")
        return self.compacts

    async def status(self) -> tuple[str, ...]:
        return ("fine",)

    async def sessions(self) -> tuple[()]:
        return ()

    async def resume(self, session_id: str) -> tuple[str, ...]:
        self.asked.append(session_id)
        return ()

    async def models(self) -> tuple[ModelInfo, ...]:
        return (
            ModelInfo(name="one", missing=None, is_chosen=True),
            ModelInfo(name="two", missing="no key is set", is_chosen=False),
        )

    async def choose_model(self, name: str) -> str:
        self.asked.append(name)
        return f"{name} (large)"

    async def mode(self) -> BusyMode:
        return BusyMode.QUEUE

    async def set_mode(self, mode: BusyMode) -> BusyMode:
        self.asked.append(mode)
        return mode

    async def approvals(self) -> tuple[Approval, ...]:
        return self.waiting

    async def decide(self, approval: Approval, decision: Decision) -> str:
        self.asked.append((approval.call_id, decision))
        return "said"

    async def jobs(self) -> tuple[Job, ...]:
        return self.work

    def now(self) -> float:
        return 1_010.0

    async def stop_job(self, job: Job) -> bool:
        self.asked.append(job.id)
        return job.number == 1

    async def trace(self) -> str:
        return "/home/ada/trace-1.html"

    def leave(self) -> None:
        self.asked.append("leave")


STOP = Stop(seq=1, session_id="s", root_id="m", covers=frozenset({"m"}))


async def done(text: str, room: Room | None = None) -> tuple[str, ...]:
    asked = COMMANDS.parse(text)
    assert isinstance(asked, Do)
    return await asked.command.run(room or Room(NothingToStop()), asked.argument)


def test_every_command_is_there_and_its_help_fits_a_line() -> None:
    assert [command.name for command in COMMANDS.commands] == NAMES
    assert all(len(line) <= 100 for line in COMMANDS.help())


@given(st.text())
def test_every_text_is_a_message_a_command_or_refused_in_one_line(text: str) -> None:
    match COMMANDS.parse(text):
        case Say(text=said):
            assert said == (text[1:] if text.startswith("//") else text)
        case Do(command=command, argument=argument):
            assert text.lower().startswith(f"/{command.name}")
            assert argument in text
        case Refuse(line=line):
            assert text.startswith("/")
            assert len(line.splitlines()) == 1


@pytest.mark.parametrize(
    "text", ["/etc/hosts is what?", "/", "/ stop", "hello /stop", "/2", "/stop\nand more", " /stop"]
)
def test_what_only_begins_like_a_command_is_a_message(text: str) -> None:
    assert COMMANDS.parse(text) == Say(text)


def test_two_slashes_begin_a_message_with_one() -> None:
    assert COMMANDS.parse("//stop it") == Say("/stop it")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("/stpo", "did you mean /stop?"),
        ("/LMM", "did you mean /llm?"),
        ("/zzzzzz", "/help lists them"),
        ("/foo", "/help lists them"),
        ("/cancel", "/help lists them"),
        ("/stop now", "takes nothing"),
        ("/resume", "/resume ID"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_could_be(text: str, word: str) -> None:
    refused = COMMANDS.parse(text)
    assert isinstance(refused, Refuse)
    assert word in refused.line


@given(st.sampled_from(NAMES), st.sampled_from([str.lower, str.upper, str.title]), st.sampled_from(["", " ", "  \n"]))
def test_case_and_space_behind_it_do_not_matter(name: str, spelt: Any, space: str) -> None:
    table = CommandTable(tuple(command for command in COMMANDS.commands if command.argument != "ID"))
    asked = table.parse(f"/{spelt(name)}{space}")
    assert isinstance(asked, Refuse if name == "resume" else Do)


async def test_a_trace_is_written_and_it_is_said_where() -> None:
    assert await done("/trace") == ("wrote /home/ada/trace-1.html; open it in a browser",)


def test_a_surface_offers_a_part_of_the_table() -> None:
    table = CommandTable(COMMANDS.commands[:2])
    assert len(table.help()) == 2
    assert isinstance(table.parse("/quit"), Refuse)


def test_completion_knows_commands_and_what_stands_behind_them() -> None:
    values = {Values.MODE: (Choice("queue"), Choice("steer")), Values.SESSION: (Choice("01AB", "a talk"),)}
    assert [one.text for one in COMMANDS.complete("/st", values)] == ["/stop", "/status"]
    assert COMMANDS.complete("/mode q", values) == (Choice("queue"),)
    assert COMMANDS.complete("/resume ", values) == (Choice("01AB", "a talk"),)
    assert COMMANDS.complete("/stop ", values) == ()
    assert COMMANDS.complete("st", values) == ()
    assert COMMANDS.complete("tell me /mo", values) == ()


async def test_commands_say_what_came_of_them() -> None:
    busy = Room(STOP)
    assert await done("/stop", busy) == ()
    assert await done("/stop") == ("nothing runs and nothing waits",)
    assert "/stop comes first" in (await done("/force"))[0]
    assert "/force ends it now" in (await done("/clear", busy))[0]
    assert await done("/clear") == ("cleared; the next message begins a new session",)
    assert await done("/sessions") == ("there are no sessions yet",)
    assert await done("/status") == ("fine",)
    assert await done("/llm") == ("* one", "  two  (no key is set)")
    assert await done("/llm two", busy) == ("two (large) answers from the next turn on",)
    assert await done("/mode") == ("queue; there are interrupt, queue, collect, steer",)
    assert await done("/help") == COMMANDS.help()
    await done("/mode Steer", busy)
    await done("/resume 01AB", busy)
    await done("/quit", busy)
    assert busy.asked == ["two", BusyMode.STEER, "01AB", "leave"]
    with pytest.raises(UsageError, match="did you mean queue"):
        await done("/mode qeue")
    with pytest.raises(UsageError, match="there are interrupt"):
        await done("/mode xyz")


async def test_a_stop_with_no_turn_ends_the_compaction_which_tells_of_it_itself() -> None:
    room = Room(NothingToStop())
    assert await done("/stop", room) == ("nothing runs and nothing waits",)
    room.compacts = True
    assert await done("/stop", room) == ()
    busy = Room(STOP)
    assert await done("/stop", busy) == ()
    assert busy.asked == []
    assert await done("/compact") == ("summarising",)


def waiting(call_id: str) -> Approval:
    return Approval(
        call_id=call_id, session_id="s", root_id="m", tool="shell", arguments={}, expires=0.0, parts=("git",)
    )


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("/approve", ("XXAB1", ONCE)),
        ("/approve ab1", ("XXAB1", ONCE)),
        ("/approve SESSION", ("XXAB1", ALWAYS)),
        ("/approve B1 session", ("XXAB1", ALWAYS)),
        ("/deny", ("XXAB1", NO)),
        ("/deny xxab1", ("XXAB1", NO)),
    ],
)
async def test_the_only_call_that_waits_needs_no_name(text: str, asked: tuple[str, Decision]) -> None:
    room = Room(NothingToStop())
    room.waiting = (waiting("XXAB1"),)
    assert await done(text, room) == ("said",)
    assert room.asked == [asked]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/approve", "2 calls wait for a yes, name one: XAB1 (shell), YAB2 (shell)"),
        ("/approve C3", "no call 'C3' waits for a yes; there are: XAB1 (shell), YAB2 (shell)"),
        ("/approve B1 now", "/approve takes an id and the word 'session', not 'B1 now'"),
    ],
)
async def test_an_answer_that_says_not_to_what_is_taken_for_none(text: str, told: str) -> None:
    room = Room(NothingToStop())
    room.waiting = (waiting("XAB1"), waiting("YAB2"))
    with pytest.raises(UsageError) as refused:
        await done(text, room)
    assert (str(refused.value), room.asked) == (told, [])


async def test_where_nothing_waits_nothing_is_answered() -> None:
    with pytest.raises(UsageError, match="no call waits"):
        await done("/deny")


def job(number: int, state: JobState = JobState.RUNNING) -> Job:
    ending = None if state is JobState.RUNNING else JobEnding.EXITED
    shape: dict[str, Any] = {
        "session_id": "s",
        "call_id": f"c{number}",
        "title": "make all",
        "began": 1_000.0,
        "ending": ending,
    }
    return Job(number=number, state=state, detail="exit status 2" if ending else "", **shape)


async def test_jobs_are_listed_those_that_run_last_and_ended_by_name() -> None:
    room = Room(NothingToStop())
    assert await done("/jobs", room) == ("there are no background jobs in this session",)
    room.work = (job(1), job(2, JobState.TOLD))
    assert [line.split() for line in await done("/jobs", room)] == [
        ["job2", "exited,", "exit", "status", "2", "make", "all"],
        ["job1", "running", "for", "10", "s", "make", "all"],
        ["/jobs", "stop", "JOB", "ends", "one"],
    ]
    assert await done("/jobs stop job 1", room) == ("job1 was ended",)
    for text, told in (("/jobs stop 2", "job2 does not run"), ("/jobs stop 3", "no job '3'"), ("/jobs end 1", "lists")):
        with pytest.raises(UsageError, match=told):
            await done(text, room)
    assert room.asked == ["job1"]
