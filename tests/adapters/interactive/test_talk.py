"""The interactive chat as a person has it: the real program, a pseudo-terminal, a scripted model."""

from __future__ import annotations

import json
import re
import signal
import stat
from pathlib import Path

from tests.adapters.interactive.person import CTRL_C, CTRL_D, CTRL_T, ENTER, TAB, Person, person
from tests.adapters.interactive.vt import Vt

STORY = r"""
[[rules]]
when_said = "story"
moves = [
    { think = "A story wants a sea.", word_delay_s = 0.01 },
    { say = "Once upon a time there was a lighthouse. It stood for a hundred years", word_delay_s = 0.02 },
    { wait_s = 600 },
]
[[rules]]
when_said = "Paris"
moves = [{ think = "France,\nsurely." }, { say = "Paris it is." }, { spend = { input = 1200, output = 4 } }]
"""
SLEEPER = """
inferences = [[{ call = "run_shell_command", arguments = { command = "sleep 600" } }]]
[[rules]]
when_said = "after"
moves = [{ say = "Still here." }]
"""


def is_ready(vt: Vt) -> bool:
    return any(line.startswith("ready") for line in vt.screen)


def place_of(seen: Person, text: str) -> int:
    found = [index for index, line in enumerate(seen.vt.everything) if text in line]
    assert len(found) == 1, (text, seen.vt.everything)
    return found[0]


def test_what_is_typed_while_it_streams_interrupts_and_is_answered(tmp_path: Path) -> None:
    with person(tmp_path, STORY, at_once="Tell me a story\r") as i:
        i.sees("hundred years")
        assert "thinking" in i.status
        i.sees("▸ A story wants a sea.")
        i.types("Which city? Par")
        i.sees("› Which city? Par")
        i.types("is" + ENTER)
        i.sees("Paris it is.")
        i.sees(is_ready)
        i.sees(lambda vt: "ctx 1.2K" in vt.everything[-1])
        first = ("› Tell me a story", "Once upon", "(interrupted)")
        order = [place_of(i, text) for text in (*first, "› Which city? Paris", "▸ France, surely.", "Paris it is.")]
        assert order == sorted(order)
        i.types(CTRL_T)
        i.sees(lambda vt: "^T folds" in vt.everything[-1])
        assert "surely." in i.vt.everything
        i.types(CTRL_D)
        assert i.leaves() == 0
        assert i.vt.in_vain == []
        assert i.vt.updates > 10
        assert i.terminal_is_given_back()


def test_leaving_tells_how_to_go_on_with_the_configuration_of_this_talk(tmp_path: Path) -> None:
    away, home = tmp_path / "some where", tmp_path / "home" / "kesoku-actors"
    away.mkdir()
    home.mkdir(parents=True)
    short = 'rules = [{ when_said = "", moves = [{ say = "Heard." }] }]'
    for folder, ending in ((away, f" -c '{away / 'config.toml'}'"), (home, "")):
        with person(folder, short, size=(400, 24), environ={"XDG_DATA_HOME": str(home.parent)}) as i:
            i.types("Hi." + ENTER)
            i.sees("Heard.")
            i.types(CTRL_D)
            assert i.leaves() == 0
            last = i.vt.everything[-1]
            assert re.fullmatch(r"go on with it: kesoku-actors chat -r \w+" + re.escape(ending), last), last


def test_ctrl_c_stops_then_forces_then_leaves_when_pressed_twice(tmp_path: Path) -> None:
    with person(tmp_path, SLEEPER) as i:
        i.types("sleep" + ENTER)
        i.sees(lambda vt: any(re.match(r"● \d+ s  run_shell_command", line) for line in vt.screen))
        i.types(CTRL_C)
        i.sees("stopping")
        i.sees("^C forces")
        i.types(CTRL_C)  # within the first second: it is kept
        i.sees("⊘ interrupted")
        i.sees("stopped: 1 message")
        i.sees(is_ready)
        i.types("one after" + ENTER)
        i.sees("Still here.")
        i.types("half a line")
        i.sees("› half a line")
        i.types(CTRL_C)
        i.sees(lambda vt: any("Ask something" in line for line in vt.screen))
        i.types(CTRL_C)
        i.sees("Ctrl-C again leaves")
        i.types(CTRL_C)
        assert i.leaves() == 0
        assert i.terminal_is_given_back()
        assert i.vt.in_vain == []


def test_the_end_of_a_clear_says_nothing_of_the_session_after_it(tmp_path: Path) -> None:
    napper = SLEEPER.replace("sleep 600", "sleep 2") + STORY
    with person(tmp_path, napper) as i:
        i.types("nap" + ENTER)
        i.sees(lambda vt: any("run_shell_command" in line for line in vt.screen))
        i.types("/clear" + ENTER)
        i.types("Tell me a story" + ENTER)
        i.sees("hundred years")
        i.sees(lambda _vt: ("user", "nap") not in i.rows("role, content"))
        i.types("half a line")
        i.sees("› half a line")
        assert "thinking" in i.status


def test_a_paste_of_many_lines_is_one_message(tmp_path: Path) -> None:
    scenario = 'rules = [{ when_said = "", moves = [{ say = "Read." }] }]'
    paste = "\n".join(f"line {number}" for number in range(10_000))
    assert len(paste) >= 98_889
    with person(tmp_path, scenario) as i:
        i.sees(is_ready)
        i.types(f"\x1b[200~{paste}\x1b[201~")
        i.sees("line 9999")
        i.types(ENTER)
        i.sees("Read.")
        i.sees("more characters")
        assert [row[2] for row in i.rows() if row[0] == "user"] == [paste]
        i.types("/quit" + ENTER)
        assert i.leaves() == 0


def test_twenty_columns_without_colour_are_enough(tmp_path: Path) -> None:
    with person(tmp_path, STORY, environ={"NO_COLOR": "1"}) as i:
        i.types("Tell me a story" + ENTER)
        i.sees("hundred years")
        i.has_window(20, 10)
        i.sees(lambda vt: any(re.fullmatch(r". thinking \d+ s.*", line) for line in vt.screen))
        i.types("A rather long line about Paris")
        i.sees("› A rather")
        i.types(ENTER)
        i.sees("Paris it is.")
        i.sees(is_ready)
        screen = [line for line in i.vt.screen if line]
        assert sum(line.startswith("ready") for line in screen) == 1
        assert sum(line.startswith("› Ask") for line in screen) == 1
        assert i.vt.styles <= set(range(30))
        i.types(CTRL_D)
        assert i.leaves() == 0
        assert i.vt.in_vain == []


def test_sigterm_leaves_in_order_and_what_was_open_goes_on_next_time(tmp_path: Path) -> None:
    with person(tmp_path, STORY) as i:
        i.types("Tell me a story" + ENTER)
        i.sees("hundred years")
        i.process.send_signal(signal.SIGTERM)
        assert i.leaves() == 0
        assert i.terminal_is_given_back()
        assert i.rows()[0][:2] == ("user", "pending_agent")
    short = 'rules = [{ when_said = "", moves = [{ say = "The end." }] }]'
    with person(tmp_path, short, "-z") as i:
        i.sees("going on with")
        i.sees("The end.")
        i.sees(is_ready)
        i.types(CTRL_D)
        assert i.leaves() == 0


def test_commands_do_what_they_say(tmp_path: Path) -> None:
    scenario = 'rules = [{ when_said = "", moves = [{ say = "Heard." }] }]'
    with person(tmp_path, scenario) as i:
        i.sees(is_ready)
        i.types("/halp" + ENTER)
        i.sees("no command /halp; did you mean /help?")
        i.types("/mo" + TAB)
        i.sees("› /mode")
        i.types(" queue" + ENTER)
        i.sees("a message that comes while a turn runs: queue")
        i.sees(lambda vt: "queue" in vt.everything[-1])
        i.types("/llm nosuch" + ENTER)
        i.sees("there is no such model")
        i.types("//slash" + ENTER)
        i.sees("Heard.")
        i.types("/status" + ENTER)
        i.sees("model     scenario (scripted)")
        i.sees("shell     ")
        i.types("/clear" + ENTER)
        i.sees("cleared; the next message begins a new session")
        i.sees(lambda vt: is_ready(vt) and "ctx" not in vt.everything[-1])
        i.types("another" + ENTER)
        i.sees("› another")
        i.sees(lambda vt: sum("Heard." in line for line in vt.everything) == 2)
        i.sees(is_ready)
        assert [row[2] for row in i.rows() if row[0] == "user"] == ["another"]
        i.types("/sessions" + ENTER)
        i.sees("/resume ID goes on with one")
        i.types("/quit" + ENTER)
        assert i.leaves() == 0
        history = tmp_path / "chat-history"
        assert stat.S_IMODE(history.stat().st_mode) == 0o600
        assert "+/mode queue" in history.read_text().splitlines()


def test_a_session_gone_on_with_shows_what_was_not_delivered_and_the_other_one_goes_on(tmp_path: Path) -> None:
    scenario = """
    rules = [
        { when_said = "first", moves = [{ say = "The first answer." }] },
        { when_said = "slow", moves = [{ wait_s = 1 }, { say = "A slow answer." }] },
    ]
    """
    with person(tmp_path, scenario) as i:
        i.types("first" + ENTER)
        i.sees("The first answer.")
        i.sees(is_ready)
        i.types(CTRL_D)
        i.leaves()
        first = i.rows("session_no")[0]
    with person(tmp_path, scenario) as i:
        i.types("slow" + ENTER)
        i.sees("thinking")
        i.types("/sessions" + ENTER)
        i.sees("/resume ID")
        listed = [line.split() for line in i.vt.everything if "turn" in line and "terminal" in line]
        here = next(words[1] for words in listed if words[0] == "*")
        other = next(words[0] for words in listed if words[0] != "*")
        i.types(f"/resume {other}" + ENTER)
        i.sees("going on with")
        i.sees("The first answer.")
        i.types("first of all" + ENTER)
        i.sees(lambda vt: sum("The first answer." in line for line in vt.everything) == 2)
        i.types(f"/resume {here}" + ENTER)
        i.sees("A slow answer.")
        i.types(CTRL_D)
        assert i.leaves() == 0
        assert first is not None


def test_in_the_mode_queue_what_is_typed_waits_in_sight_and_keeps_its_turn(tmp_path: Path) -> None:
    scenario = """
    rules = [
        { when_said = "first", moves = [{ say = "A beginning" }, { wait_s = 1 }, { say = " and an end." }] },
        { when_said = "second", moves = [{ say = "The second answer." }] },
    ]
    """
    with person(tmp_path, scenario) as i:
        i.types("/mode queue" + ENTER + "first" + ENTER)
        i.sees("A beginning")
        i.types("second" + ENTER)
        i.sees(lambda vt: "1 waiting" in vt.everything[-1])
        assert "› second" in i.vt.screen[place_of(i, "A beginning") :]
        i.sees("The second answer.")
        i.sees(is_ready)
        order = [place_of(i, text) for text in ("› first", "A beginning and an end.", "› second", "The second answer.")]
        assert order == sorted(order)
        i.types("\x1b[A")
        i.sees(lambda vt: "› second" in vt.screen[-3:] or sum(line == "› second" for line in vt.everything) == 2)
        assert i.vt.in_vain == []


def test_a_terminal_that_is_closed_ends_the_program_and_loses_nothing(tmp_path: Path) -> None:
    with person(tmp_path, STORY) as i:
        i.types("Tell me a story" + ENTER)
        i.sees("hundred years")
        i.closes_the_window()
        assert i.process.wait(20) == 0
        assert i.rows()[0][:2] == ("user", "pending_agent")


def test_a_second_talk_on_the_same_store_is_refused_in_a_line_and_the_first_one_goes_on(tmp_path: Path) -> None:
    with person(tmp_path, STORY) as first:
        first.sees(is_ready)
        with person(tmp_path, STORY) as second:
            assert second.leaves() == 75
            assert second.terminal_is_given_back()
            assert any(line.startswith("kesoku-actors: error: ") for line in second.vt.everything)
        first.types("Paris?" + ENTER)
        first.sees("Paris it is.")


ASKING = r"""
[[rules]]
when_result = ""
moves = [{ say = "That is what came of it." }]
[[rules]]
when_said = "both"
moves = [
    { call = "run_shell_command", arguments = { command = "echo first; printf 'a\u001b[2Jb'" } },
    { call = "run_shell_command", arguments = { command = "echo second" } },
]
[[rules]]
when_said = "again"
moves = [{ call = "run_shell_command", arguments = { command = "echo third" } }]
"""
RISKY = '[tools]\napprove = "risky"\n'


def answered(seen: Person) -> None:
    """A card that has just come up is read by nobody: wait until it counts."""
    seen.sees(lambda vt: re.search(r"waits for your yes ([2-9]|\d\d+) s", vt.everything[-1]) is not None)


def test_a_call_that_needs_a_yes_is_a_card_answered_by_a_number_or_a_command(tmp_path: Path) -> None:
    with person(tmp_path, ASKING, size=(100, 40), config=RISKY) as i:
        i.types("both" + ENTER)
        i.sees("2  allow for this session   /approve ")
        assert "a␛[2Jb" in "".join(i.vt.everything), "the command in full, and it controls nothing"
        i.sees("waits for your yes")
        answered(i)
        i.types("3" + ENTER)
        i.sees("denied: run_shell_command")
        i.sees(lambda vt: sum("waits for your yes (" in line for line in vt.everything) == 2)
        i.types("/approve session" + ENTER)
        i.sees("allowed for this session: ")
        i.sees("That is what came of it.")
        i.sees(is_ready)
        i.types("again" + ENTER)
        i.sees(lambda vt: sum("That is what came of it." in line for line in vt.everything) == 2)
        assert sum("waits for your yes (" in line for line in i.vt.everything) == 2, "echo needs no other yes"
        i.types(CTRL_D)
        assert i.leaves() == 0
    outcomes = [json.loads(metadata) for role, metadata in i.rows("role, metadata") if role == "tool"]
    assert sorted(each["outcome"] for each in outcomes) == ["error", "ok", "ok"]


def test_a_call_that_waited_is_offered_again_after_a_kill_and_runs_once(tmp_path: Path) -> None:
    with person(tmp_path, ASKING, config=RISKY) as i:
        i.types("again" + ENTER)
        i.sees("waits for your yes (")
        i.process.kill()
        i.leaves()
    with person(tmp_path, ASKING, "-z", config=RISKY) as i:
        i.sees("waits for your yes (")
        i.types("/approve" + ENTER)
        i.sees("That is what came of it.")
        i.types(CTRL_D)
        assert i.leaves() == 0
    assert [content.split("\n")[0] for role, content in i.rows("role, content") if role == "tool"] == ["third"]


def test_a_stop_withdraws_what_waits(tmp_path: Path) -> None:
    with person(tmp_path, ASKING, config=RISKY) as i:
        i.types("again" + ENTER)
        i.sees("waits for your yes (")
        i.types(CTRL_C)
        i.sees("stopped: 1 message")
        i.sees(is_ready)
        i.types("/approve" + ENTER)
        i.sees("no call waits for a yes here")
        i.types(CTRL_D)
        assert i.leaves() == 0


JOBS = r"""
[[rules]]
when_result = "goes on in the background"
moves = [{ say = "It takes a while." }]
[[rules]]
when_said = "serve"
moves = [{ call = "run_shell_command", arguments = { command = "echo up; exec sleep 600", background = true } }]
[[rules]]
when_said = "background job job1"
moves = [{ say = "I was told." }]
"""


def test_a_job_is_listed_ended_by_name_and_told_of(tmp_path: Path) -> None:
    with person(tmp_path, JOBS, size=(120, 30)) as i:
        i.types("serve" + ENTER)
        i.sees("It takes a while.")
        i.types("/jobs" + ENTER)
        i.sees(
            lambda vt: any(
                re.match(r"job1 +running for \d+ s +echo up; exec sleep 600", line) for line in vt.everything
            )
        )
        i.types("/jobs stop job1" + ENTER)
        i.sees("job1 was ended")
        i.sees("The background job job1 (echo up; exec sleep 600) was ended as asked")
        i.types(CTRL_D)
        assert i.leaves() == 0


def test_leaving_ends_jobs_at_once_and_says_which(tmp_path: Path) -> None:
    with person(tmp_path, JOBS, size=(120, 30)) as i:
        i.types("serve" + ENTER)
        i.sees("It takes a while.")
        i.types(CTRL_D)
        assert i.leaves() == 0
        assert any("job1 was ended because the program stops: echo up" in line for line in i.vt.everything)
