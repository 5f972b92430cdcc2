"""Campaigns and certificates go on where they were stopped, and say of no part that it is the whole."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import hypothesis
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.harness import explore
from kesoku_actors.harness.exploration import exploration_of
from scripts.seeded.certificates import Share, shares_of, together
from scripts.seeded.certificates import drawn as drawn_input
from scripts.seeded.ledger import Ledger, NoLedger, state_of_sources
from scripts.seeded.pieces import pieces, replay, shard_of, sharded
from scripts.seeded.server import Trial
from scripts.seeded.table import Property, explored_properties
from scripts.seeded.trial import Ended, Finding
from tests.draws import drawn

ROOT: Final = Path(__file__).parents[2]
CORE: Final = Property(test="test_core.test_a_message_while_the_model_thinks", is_drawn=False)
DRAWN: Final = Property(test="test_messages.test_b3_a_session_that_has_nothing_to_do_has_no_worker", is_drawn=True)
HELD: Final = Finding(ended=Ended.SURVIVED, schedules=10, seconds=0.5)
FAILED: Final = Finding(ended=Ended.KILLED, schedules=3, by="ends_once", said="AssertionError", token="ka1.a.h.b")


def script(name: str, *arguments: str) -> list[str]:
    return [sys.executable, f"scripts/{name}", "--jobs", "1", *arguments]


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(script(name, *arguments), cwd=ROOT, capture_output=True, text=True, timeout=600)


@given(count=st.integers(0, 40), shares=st.integers(1, 7))
def test_shards_have_no_piece_in_common_and_are_all_there_are(count: int, shares: int) -> None:
    work = pieces(["test_core.test_one"], range(count), runs=10)
    parts = [sharded(work, shard_of(f"{number}/{shares}")) for number in range(1, shares + 1)]
    assert sorted((piece for part in parts for piece in part), key=lambda piece: piece.seed) == work


@pytest.mark.parametrize("said", ["", "1", "0/4", "5/4", "a/b", "1/0"])
def test_what_is_no_shard_is_refused(said: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="a shard is i/n"):
        shard_of(said)


def test_what_was_done_is_known_again_and_a_line_that_was_cut_off_is_not(tmp_path: Path) -> None:
    file, work = tmp_path / "done", pieces(["test_core.test_one"], range(4), runs=10)
    first = Ledger(Trial, file)
    first.add(work[0], HELD)
    first.add(work[1], FAILED)
    with file.open("a") as cut_off:
        cut_off.write('{"sources": "')
    second = Ledger(Trial, file)
    assert second.found == {work[0]: HELD, work[1]: FAILED}
    second.add(work[2], HELD)
    assert Ledger(Trial, file).left_of(work) == work[3:]


def test_what_was_done_with_other_sources_does_not_count(tmp_path: Path) -> None:
    file, work = tmp_path / "done", pieces(["test_core.test_one"], range(2), runs=10)
    ledger = Ledger(Trial, file)
    ledger.add(work[0], HELD)
    ledger.sources = "before"
    ledger.add(work[1], FAILED)
    again = Ledger(Trial, file)
    assert (again.found, again.others) == ({work[0]: HELD}, 1)


@pytest.mark.parametrize("text", ["words\n", "[]\n", "{}\n", '{"sources": "x"}\n{\n'])
def test_a_file_of_something_else_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "done").write_text(text)
    with pytest.raises(NoLedger, match="is no file of this kind of work"):
        Ledger(Trial, tmp_path / "done")


@pytest.mark.parametrize("text", ['{"mine": 1}', '{"sources": "a book", "page": 3}', "a note\nand another", ""])
def test_a_file_of_something_else_keeps_all_it_holds(text: str, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text(text)
    if text:
        with pytest.raises(NoLedger):
            Ledger(Trial, file)
    else:
        assert Ledger(Trial, file).found == {}
    assert file.read_text() == text
    with pytest.raises(NoLedger):
        Ledger(Trial, tmp_path)


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("campaign", ["--runs", "0"]),
        ("campaign", ["--minutes", "nan"]),
        ("certify", ["--bound", "-1"]),
        ("mutants", ["--jobs", "0"]),
        ("soak", ["--sessions", "0"]),
        ("crash_campaign", ["--runs", "0"]),
        ("crash_campaign", ["--repeat", "nonsense"]),
    ],
)
def test_nothing_passes_of_which_nothing_was_asked(script: str, arguments: list[str]) -> None:
    command = [sys.executable, f"scripts/{script}", *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert f"argument {arguments[0]}" in ended.stderr
    assert "Traceback" not in ended.stderr


KILLED_ONCE: Final = """
import os, signal, sys
from pathlib import Path
from attrs import frozen
from scripts.seeded.ledger import Ledger, work_through
from scripts.seeded.trial import Ended, Finding

@frozen
class KilledOnce:
    mark: str
    seconds: int = 60

    def carry_out(self):
        if not Path(self.mark).exists():
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Finding(ended=Ended.SURVIVED, schedules=1)

@frozen
class Hangs(KilledOnce):
    seconds: int = 1

    def carry_out(self):
        while True:
            pass

kind = {"killed": KilledOnce, "hangs": Hangs}[sys.argv[1]]
ledger = Ledger(kind, Path(sys.argv[2]))
print(work_through(ledger, [kind(sys.argv[2] + ".mark")], jobs=1, minutes=1).name)
"""


def test_a_piece_that_was_killed_from_outside_is_not_known_and_is_done_again(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED_ONCE, "killed", str(tmp_path / "done")]
    first, again = (subprocess.run(command, cwd=ROOT, capture_output=True, text=True) for _ in range(2))
    assert ("not known: ended by signal 9" in first.stderr, first.stdout) == (True, "LEFT\n"), first.stderr
    assert ("survived" in again.stderr, again.stdout) == (True, "DONE\n"), again.stderr
    assert [line["finding"]["ended"] for line in lines(tmp_path / "done")] == ["broken", "survived"]


def test_a_piece_that_hangs_is_not_known_to_fail(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED_ONCE, "hangs", str(tmp_path / "done")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ("not known: it took more than 1 s of CPU time" in done.stderr, done.stdout) == (True, "LEFT\n")


def test_a_campaign_tells_what_is_not_known_and_does_not_pass(tmp_path: Path) -> None:
    file, [work] = tmp_path / "done", pieces([DRAWN.test], [1], runs=2)
    wanted = ("--only", DRAWN.test, "--rounds", "1", "--runs", "2", "--resume", str(file))
    Ledger(Trial, file).add(work, Finding(ended=Ended.BROKEN, said="ended by signal 9"))
    left = run("campaign", *wanted, "--minutes", "0.000001")
    assert (left.returncode, "not known: ended by signal 9" in left.stdout) == (4, True), left.stderr
    assert "0 of 1 pieces failed" in left.stdout
    done = run("campaign", *wanted)
    assert (done.returncode, "not known" in done.stdout) == (0, False), done.stderr


@pytest.mark.parametrize("ended", [Ended.BROKEN, Ended.TIMEOUT])
def test_a_share_without_an_outcome_is_neither_run_nor_failed(ended: Ended) -> None:
    shares = shares_of([CORE], 2, 0, 0)
    lost = Finding(ended=ended, said="ended by signal 9")
    [part] = together(shares, {**dict.fromkeys(shares, HELD), shares[7]: lost})
    assert (part.failed, part.unknown, part.is_certified) == ((), ((shares[7], lost),), False)
    assert "has none yet: 63 of 64 shares were run" in str(part)


@explore(runs=4)
async def narrow(is_late: bool = st.booleans()) -> None:  # type: ignore[assignment]  # drawn
    await trio.lowlevel.checkpoint()


def test_no_input_is_certified_twice_where_there_are_fewer_than_asked_for() -> None:
    exploration = exploration_of(narrow)
    found = [drawn_input(exploration, number, 5, 0) for number in range(5)]
    assert sorted(one.drawn["is_late"] for one in found if one is not None) == [False, True]
    assert found[2:] == [None, None, None]
    shares = shares_of([DRAWN], 1, 3, 0)
    [whole] = together(shares, {**dict.fromkeys(shares, HELD), shares[2]: Finding(ended=Ended.SURVIVED)})
    assert "all 20 such schedules were run for the 2 inputs drawn" in str(whole)


def test_the_state_of_the_sources_is_also_of_who_explores_and_of_what_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = state_of_sources(tmp_path)
    for folder in ("kesoku_actors", "tests/properties/daemon", "scripts/seeded"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "part.py").write_text("pass")
        before, here = here, state_of_sources(tmp_path)
        assert here != before
    for place, name in ((hypothesis, "__version__"), (trio, "__version__"), (sys, "version")):
        with monkeypatch.context() as changed:
            changed.setattr(place, name, "another")
            assert state_of_sources(tmp_path) != here
    assert state_of_sources(tmp_path) == here


def test_a_certificate_is_of_all_shares_and_of_nothing_less() -> None:
    shares = shares_of([CORE], 2, 0, 0)
    assert len(shares) == 64
    [part] = together(shares, dict.fromkeys(shares[1:], HELD))
    assert not part.is_certified
    assert "has none yet: 63 of 64 shares were run, 630 schedules" in str(part)
    [whole] = together(shares, dict.fromkeys(shares, HELD))
    assert whole.is_certified
    assert "no failure with at most 2 holds (until nothing else can run), ticks or faults: all 640" in str(whole)
    [failed] = together(shares, {**dict.fromkeys(shares, HELD), shares[7]: FAILED})
    assert not failed.is_certified
    assert "has none: 1 of 64 shares failed" in str(failed)


def test_a_certificate_of_drawn_inputs_says_of_how_many() -> None:
    shares = shares_of([DRAWN], 1, 3, 0)
    assert [share.example for share in shares] == [0, 1, 2]
    [whole] = together(shares, dict.fromkeys(shares, HELD))
    assert "all 30 such schedules were run for the 3 inputs drawn" in str(whole)


def test_every_property_is_known_by_whether_it_has_inputs() -> None:
    is_drawn = {each.test: each.is_drawn for each in explored_properties()}
    assert {name for name, drawn_too in is_drawn.items() if name.startswith("test_core.") and drawn_too} == set()
    assert (is_drawn[CORE.test], is_drawn[DRAWN.test]) == (False, True)


def test_a_slice_of_the_schedules_with_two_events_holds() -> None:
    for number in drawn(range(1, 65), 1):
        ended = run("certify", "--bound", "2", "--only", CORE.test, "--shard", f"{number}/64", "--json")
        [told] = json.loads(ended.stdout)
        assert (told["failed"], told["done"], told["certified"]) == ([], 1, False), ended.stderr
        assert told["schedules"] > 20
        assert ended.returncode == 0


def test_a_campaign_that_was_killed_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "done"
    wanted = ("--only", DRAWN.test, "--rounds", "3", "--runs", "2", "--resume", str(file))
    with subprocess.Popen(script("campaign", *wanted), cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "seed 1" in process.stderr.readline()
        process.send_signal(signal.SIGKILL)
    before = lines(file)
    ended = run("campaign", *wanted)
    assert ended.returncode == 0, ended.stderr
    assert [line["piece"]["seed"] for line in lines(file)] == [1, 2, 3]
    assert lines(file)[: len(before)] == before
    assert "1 properties, 6 schedules" in ended.stdout
    assert "0 of 3 pieces failed" in ended.stdout


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_failure_is_told_with_the_command_that_plays_it() -> None:
    told = replay("test_core.test_one", "ka1.a.h.b")
    assert told == (
        "scripts/python -m kesoku_actors check tests/properties/daemon/test_core.py:test_one --replay ka1.a.h.b"
    )


def test_a_share_says_what_it_is() -> None:
    share = Share(test="test_core.test_one", bound=2, share=3, shares=64, example=None, examples=0, seed=0)
    assert str(share) == "Hold(2) share 4/64 test_core.test_one"
