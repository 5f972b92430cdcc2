"""Reports: a person reads from them alone who races with whom and where; machines read what the schema says."""

from __future__ import annotations

import json
import re
from functools import cache
from html.parser import HTMLParser
from typing import Any

import pytest
import trio
from attrs import evolve

from kesoku_actors.harness import explore, shared
from kesoku_actors.harness.control import execute
from kesoku_actors.harness.control.footprints import footprints
from kesoku_actors.harness.counterexample import Counterexample, Grade, Story
from kesoku_actors.harness.diagnosis import Diagnosis
from kesoku_actors.harness.exploration import Exploration
from kesoku_actors.harness.failures import failure_of
from kesoku_actors.harness.hold import Form, Hold
from kesoku_actors.harness.inputs import Inputs
from kesoku_actors.harness.observe import see_form
from kesoku_actors.harness.reduce import reduce
from kesoku_actors.harness.replay import Replay
from kesoku_actors.harness.report import data_of, mermaid, page, schema, text
from kesoku_actors.harness.report.ink import COLOURED
from kesoku_actors.harness.report.picture import places
from kesoku_actors.harness.search import Plan
from kesoku_actors.harness.story import told
from kesoku_actors.harness.strategies import Random
from kesoku_actors.harness.strategy import RunInfo
from kesoku_actors.harness.touches import given_names
from kesoku_actors.harness.verdict import Verdict
from kesoku_actors.harness.zoo.table import BUGS as ZOO

from .programs import BUGS
from .test_hold import info, order


@cache  # to find and to explain a failure takes a second, and a verdict is a value
def verdict(name: str) -> Verdict:
    return explore(BUGS[name](), runs=400)


def counterexample(name: str) -> Counterexample:
    found = verdict(name).counterexample
    assert found is not None
    return found


def test_a_race_names_both_tasks_their_lines_and_the_thing() -> None:
    said = text(counterexample("lost_update"))
    first = " ".join(said.partition("How to make it fail")[0].split())
    assert "raised in task `main` at programs.py:" in first
    assert re.search(r"A\. task `main/(add|later)` reads `total` at programs.py:\d+ in add", first)
    assert re.search(r"B\. task `main/(add|later)` changes `total` at programs.py:\d+ in add", first)
    assert "seen = total[0]" in first
    assert "total[0] = seen + 1" in first
    assert "where B comes before A, the run passes" in first
    assert re.search(r"In short: `main/(add|later)` reads `total` at programs.py:\d+ before", first)
    assert "bystander" in said
    assert "hand_on" not in said.partition("The nearest run that passes")[0]


def test_a_deadlock_says_who_is_blocked_on_what_and_by_whom() -> None:
    found = counterexample("crossed_mailboxes")
    waiting = {one.lane: one for one in found.story.blocked}
    assert waiting["main/peer"].until == ("main/peer#2",)
    assert waiting["main/peer#2"].until == ("main/peer",)
    assert waiting["main"].until == ("main/peer", "main/peer#2")
    assert waiting["main/peer"].waits_for.startswith("has to wait to send to channel `ways`")
    assert "Each waits for what only the other can give." in text(found)


def test_a_timeout_is_told_with_what_came_too_late() -> None:
    found = counterexample("late_result")
    wait, late = found.story.witnesses
    assert (wait.lane, late.lane) == ("main", "main/job")
    assert "its time is over" in wait.what
    assert late.what.startswith("sends to channel")
    assert found.grade is Grade.FREE_AND_TIME
    assert "time passes, though work is runnable" in text(found)


NAMED = ("two_doors", "watch_after_death", "interrupted_worker", "lock_across_send", "evicted_session")


@pytest.mark.parametrize("bug", [bug for bug in ZOO if bug.name in NAMED], ids=lambda bug: bug.name)
def test_the_two_events_are_of_the_tasks_that_race(bug: Any) -> None:
    found = zoo(bug.name)
    named = [re.sub(r"#\d+$", "", one.lane.rpartition("/")[2]) for one in found.story.witnesses]
    assert len(named) == 2
    assert set(named) <= set(bug.races)


@cache
def zoo(name: str) -> Counterexample:
    [bug] = [bug for bug in ZOO if bug.name == name]
    found = explore(bug.program(), runs=1500, seconds=10).counterexample
    assert found is not None
    return found


def test_the_gap_that_another_task_gets_into_is_told_with_its_line() -> None:
    found = zoo("two_doors")
    assert found.story.gap is not None
    assert found.story.gap.source.startswith("await work(2)")
    assert "In between" in found.story.summary
    assert f"stands at {found.story.gap.site}" in " ".join(text(found).split())


def played(program: Any, *events: Hold) -> Story:
    """Return the story of a run, told beside the plain one."""
    plain, held = Form(), Form(events=events)
    return told(held, see_form(program, held, Plan(), info()), (plain, see_form(program, plain, Plan(), info())))


def test_what_was_looked_up_before_a_change_is_told_where_it_is_used_after_it() -> None:
    [bug] = [bug for bug in ZOO if bug.name == "evicted_session"]
    story = played(bug.program(), Hold("main/door", 2))
    change, late = story.witnesses
    assert (change.lane, late.lane) == ("main/evictor", "main/door")
    assert change.source.startswith("stored.extend(sessions.pop")
    assert late.source == "session.append(number)"
    assert any(row.step == late.step and "changes `session`" in row.what for row in story.failing.doings)


def test_what_a_held_task_changes_when_it_goes_on_is_told() -> None:
    [bug] = [bug for bug in ZOO if bug.name == "evicted_session"]
    story = played(bug.program(), Hold("main/door", 3))
    assert re.search(r"Then `main/door` changes `session` at endings\.py:\d+ all the same\.$", story.summary)
    [row] = [row for row in story.failing.doings if row.is_held]
    assert (row.what, row.source) == ("changes `session`", "session.append(number)")


def test_a_channel_is_told_with_its_room_and_who_else_took_it_up() -> None:
    found = zoo("crossed_mailboxes")
    said = " ".join(text(found).split())
    assert re.search(r"channel `ways` is made at blocking\.py:\d+, room for \d+\b", said)
    assert "`main/news` sent there too, and took up room." in found.story.summary
    assert ", room for" not in said.partition("Where things are made")[0]


def test_where_things_are_made_is_told_of_each_that_has_a_name_and_of_no_other() -> None:
    said = ["sets event (app.py:3) of `main/a`; changes `got`", "waits for event `idle` (app.py:5) of `main/a` #2"]
    said += ["sends to channel `out` (app.py:7)", "receives from channel `out` (other.py:9)"]
    assert list(places(said)) == [
        "channel `out` is made at app.py:7",
        "channel `out` is made at other.py:9",
        "event `idle` is made at app.py:5",
    ]


def test_a_passing_run_of_which_nothing_matters_has_no_empty_picture() -> None:
    found = counterexample("lost_update")
    story = found.story
    assert story.passing is not None
    quiet = evolve(found, story=evolve(story, passing=evolve(story.passing, doings=(), ticks=(), wakes=())))
    near = text(quiet).partition("The nearest run that passes")[2]
    assert "They part at step" in near
    assert "step  1" not in near
    assert "step  1" in text(found).partition("The nearest run that passes")[2]


def test_whose_wait_ends_where_time_passes_early_is_told_with_its_line() -> None:
    view = counterexample("late_result").story.failing
    assert len(view.wakes) == len(view.ticks) > 0
    assert any(re.search(r"`main` at programs\.py:\d+", one) for one in view.wakes)
    said = " ".join(text(counterexample("late_result")).split())
    assert re.search(r"time passes, though work is runnable; that ends the wait of [|: ]*`main` at programs", said)


def test_a_crowd_that_is_only_held_does_nothing_in_the_run_that_passes() -> None:
    async def main() -> None:
        done: list[int] = []

        async def idle(number: int) -> None:
            await trio.lowlevel.checkpoint()
            done.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(idle, number)

    for crowd, is_told in ((2, True), (6, False)):
        story = played(main, *(Hold(f"main/idle#{number}", 1) for number in range(2, crowd + 1)))
        for view, is_there in ((story.failing, True), (story.passing, is_told)):
            assert view is not None
            assert any(row.lane == f"main/idle#{crowd}" for row in view.doings) is is_there


def test_whoever_closed_a_channel_is_named_beside_the_one_who_still_uses_it() -> None:
    first, late = zoo("last_one_out").story.witnesses
    assert first.what.startswith("closes channel `to_main, results`")
    assert late.what.startswith("uses channel `to_main, results`")
    assert first.lane != late.lane


def test_whoever_has_a_lock_is_told_also_when_it_has_ended() -> None:
    crossed = {one.lane: one for one in zoo("lock_across_send").story.blocked}
    assert crossed["main/consumer"].until == ("main/producer",)
    assert crossed["main/consumer"].is_held
    leak = zoo("permit_leak")
    [patient] = [one for one in leak.story.blocked if one.lane == "main/patient"]
    assert patient.ended == patient.until == ("main/impatient",)
    assert "(`main/impatient` has ended and never let go)" in " ".join(text(leak).split())


def test_the_tasks_that_a_cancellation_reaches_are_told_from_those_that_happen_to_be_ready() -> None:
    victim, canceller = zoo("interrupted_worker").story.witnesses
    assert (victim.lane, canceller.lane) == ("main/worker", "main/person")


def test_a_cancellation_is_told_at_the_line_it_comes_out_at_with_what_was_received_last() -> None:
    found = zoo("interrupted_worker")
    victim, canceller = found.story.witnesses
    assert victim.source.startswith("await work(1)")
    assert victim.site is not None
    assert victim.site.caller is not None
    assert (victim.site.function, victim.site.caller.function) == ("store", "worker")
    assert victim.step > canceller.step
    drawn = {(row.lane, row.step): row for row in found.story.failing.doings}
    assert drawn[victim.lane, victim.step].is_witness
    assert any(lane == "main/sender" and "sends to" in row.what for (lane, _), row in drawn.items())
    said = " ".join(text(found).split())
    assert "What it has received last, at cancelling.py:23, comes from channel `to_worker, mailbox`" in said
    assert "`main/sender` sent it at cancelling.py:30, step" in said
    assert "called at cancelling.py:25; it goes no further" in said


def test_who_is_cancelled_later_only_goes_on_until_then() -> None:
    [bug] = [bug for bug in ZOO if bug.name == "permit_leak"]
    rows = [row for row in played(bug.program(), Hold("main/impatient", 1)).failing.doings if "impatient" in row.lane]
    assert [row.what for row in rows] == [rows[0].what, "goes on", "is cancelled here, in the middle"]
    assert rows[0].what.startswith("takes semaphore `permits`")


def three_in_a_circle() -> Any:
    async def main() -> None:
        locks = [trio.Lock() for _ in range(3)]

        async def take(mine: int) -> None:
            async with locks[mine], locks[(mine + 1) % 3]:
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            for mine in range(3):
                nursery.start_soon(take, mine)

    return main


def test_a_circle_of_three_is_told_as_one() -> None:
    found = explore(three_in_a_circle(), runs=400).counterexample
    assert found is not None
    assert found.story.summary.startswith("3 tasks wait in a circle, for ever")
    assert "a circle of 3." in found.story.decides
    assert {one.until for one in found.story.blocked if one.is_held} == {
        ("main/take",),
        ("main/take#2",),
        ("main/take#3",),
    }


async def in_line() -> None:
    came: list[int] = []

    async def come(number: int) -> None:
        await trio.lowlevel.checkpoint()
        came.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(9):
            nursery.start_soon(come, number)
    assert came == sorted(came), "out of line"


def test_a_reduction_that_takes_too_long_keeps_what_it_has_and_says_so() -> None:
    strategy = Random()
    strategy.begin(info())
    run = execute(in_line, strategy)
    assert run.error is not None
    of = Diagnosis(Exploration(function=in_line), Inputs(), failure_of(run.error), Plan(), reduce_seconds=0.0)
    cut = of.reduced(run.schedule)
    assert not cut.is_minimal
    assert len(cut.form) > 1
    assert of.fails(cut.form) is not None


def test_one_event_is_found_where_no_event_of_the_recorded_run_can_be_missed() -> None:
    [bug] = [bug for bug in ZOO if bug.name == "stolen_wakeup"]
    plan, lengths = Plan(), set[tuple[int, int]]()
    for number in range(20):
        strategy = Random()
        strategy.begin(RunInfo(number=0, rng=plan.rng(number), length=60))
        replay = Replay(execute(bug.program(), strategy).schedule)
        replay.begin(info())
        run = execute(bug.program(), replay, trace=True)
        if run.error is not None:
            of = Diagnosis(Exploration(function=bug.program()), Inputs(), failure_of(run.error), plan)
            alone, small = reduce(run.trace, of.fails), of.reduced(run.schedule)
            assert alone is not None
            assert small.is_minimal
            lengths.add((len(alone.form), len(small.form)))
    assert lengths == {(2, 1)}


def test_of_a_crowd_of_events_the_first_are_told_and_the_others_counted() -> None:
    many = tuple(Hold(f"main/worker#{number}", 1) for number in range(2, 32))
    found = counterexample("lost_update")
    form, story = evolve(found.form, events=many), evolve(found.story, held_at=(None,) * len(many))
    crowd = evolve(found, form=form, story=story, is_minimal=False)
    for said in (text(crowd), page(crowd)):
        assert "main/worker#21" in said
        assert "main/worker#22" not in said
        assert "and 10 more, which are in the token" in said
        assert "Fewer may do: the time in which events are taken away was over." in said


@pytest.mark.parametrize("name", BUGS)
def test_a_report_is_80_columns_wide_but_for_the_token(name: str) -> None:
    lines = text(counterexample(name)).splitlines()
    assert [line for line in lines if len(line) > 80 and "--replay" not in line] == []


def test_things_that_one_line_makes_are_told_apart_by_their_names() -> None:
    kinds = ("channel", "lock", "event")
    line = "    sender, receiver = trio.open_memory_channel[int](1)"
    assert given_names(line, "channel") == ("sender, receiver",)
    line = "    jobs, left, right, done = [], trio.Lock(), trio.Lock(), trio.Event()"
    assert [given_names(line, kind) for kind in kinds] == [("jobs, left, right, done",), ("left", "right"), ("done",)]
    assert given_names("    return trio.Event()", "event") == ()


def problems(value: Any, rule: dict[str, Any], whole: dict[str, Any], where: str = "$") -> list[str]:
    """Check a value against the words of JSON Schema that ours uses."""
    if "$ref" in rule:
        return problems(value, whole["$defs"][rule["$ref"].rpartition("/")[2]], whole, where)
    for choice in ("anyOf", "oneOf"):
        if choice in rule and not any(not problems(value, one, whole, where) for one in rule[choice]):
            return [f"{where} is none of {choice}"]
    found: list[str] = []
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "null": type(None)}
    wanted = rule.get("type", [])
    wanted = [wanted] if isinstance(wanted, str) else wanted
    if wanted == ["boolean"]:
        return [] if isinstance(value, bool) else [f"{where} is no boolean"]
    if wanted and not any(isinstance(value, kinds[one]) for one in wanted):
        return [f"{where} is no {wanted}"]
    if "const" in rule and value != rule["const"]:
        found.append(f"{where} is not {rule['const']}")
    if "enum" in rule and value not in rule["enum"]:
        found.append(f"{where} is none of {rule['enum']}")
    if isinstance(value, dict):
        names = rule.get("properties", {})
        found += [f"{where} lacks {name}" for name in rule.get("required", ()) if name not in value]
        for name, one in value.items():
            if name in names:
                found += problems(one, names[name], whole, f"{where}.{name}")
            elif rule.get("additionalProperties") is False:
                found.append(f"{where} has {name} too")
    if isinstance(value, list) and "items" in rule:
        for at, one in enumerate(value):
            found += problems(one, rule["items"], whole, f"{where}[{at}]")
    return found


@pytest.mark.parametrize("name", BUGS)
def test_json_keeps_to_the_published_schema(name: str) -> None:
    whole = schema()
    for one in (verdict(name), explore(BUGS[name](fixed=True), runs=10, certify=1)):
        data = json.loads(json.dumps(data_of("p", one)))
        assert problems(data, whole, whole) == []
        assert problems({**data, "more": 1}, whole, whole) == ["$ has more too"]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_nothing_of_a_program_becomes_markup_or_moves_a_terminal() -> None:
    async def main() -> None:
        async def evil() -> None:
            await trio.lowlevel.checkpoint()
            raise ValueError("<script>alert(1)</script>\x1b[2J\u202e--> ];")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(evil, name="<img src=x onerror=y>\x1b]0;")

    found = explore(main, runs=3).counterexample
    assert found is not None
    parser = Tags()
    parser.feed(page(found))
    assert {tag for tag, _ in parser.tags} & {"script", "img", "link", "iframe", "object"} == set()
    assert not any(name in ("src", "href") or name.startswith("on") for _, one in parser.tags for name in one)
    assert "default-src 'none'" in str(parser.tags)
    assert "<script>alert(1)</script>" in "".join(parser.words)
    for said in (text(found), mermaid(found), page(found)):
        assert "\x1b" not in said
        assert "\u202e" not in said
    assert not re.search(r"[<>;\"]", re.sub(r"--?>>|#\d+;", "", mermaid(found)))
    assert "\x1b[31m" in text(found, COLOURED)
    plain = re.sub(r"\x1b\[\d*m", "", text(found, COLOURED))
    assert plain == text(found)


def test_a_diagram_shows_both_runs_and_marks_what_decides() -> None:
    drawn = page(counterexample("lost_update"))
    assert drawn.count("<svg") == 2
    assert drawn.count('class="witness-dot"') >= 2
    assert 'class="end"' in drawn
    assert 'class="arrow"' in drawn
    lines = mermaid(counterexample("lost_update")).splitlines()
    assert lines[0] == "sequenceDiagram"
    assert any("main/later" in line for line in lines)


@pytest.mark.parametrize("bug", BUGS)
def test_footprints_change_no_run_and_leave_trio_as_it_was(bug: str) -> None:
    before = {name: vars(trio.Event)[name] for name in ("set", "wait", "__init__")}
    for number in range(5):
        strategy = Random()
        strategy.begin(info(number))
        plain = execute(BUGS[bug](), strategy, trace=True)
        replay = Replay(plain.schedule)
        replay.begin(info())
        with footprints(detail=True) as watch:
            watched = execute(BUGS[bug](), replay, trace=True, observe=watch)
        assert order(watched) == order(plain)
        assert any(step.touched for step in watched.trace)
    assert {name: vars(trio.Event)[name] for name in before} == before


def test_two_runs_are_of_one_class_when_every_thing_was_used_in_the_same_order() -> None:
    async def main(*, both: bool) -> None:
        async def use(name: str) -> None:
            await trio.lowlevel.checkpoint()
            shared(name if both else "one")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(use, "one")
            nursery.start_soon(use, "two")

    for both, classes in ((True, 1), (False, 2)):
        seen = set()
        with footprints() as watch:
            for number in range(40):
                strategy = Random()
                strategy.begin(RunInfo(number=number, rng=info(number).rng, length=9))
                execute(lambda both=both: main(both=both), strategy, observe=watch)
                seen.add(watch.happened_before())
        assert len(seen) == classes
    shared("outside of a run it does nothing")
