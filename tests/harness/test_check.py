"""`kesoku-actors check FILE_OR_MODULE[:TEST]`: its exit codes, its options, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kesoku_actors.cli.check import command
from kesoku_actors.harness.cli import parse_shard
from kesoku_actors.harness.errors import HarnessError

SHOPS = str(Path(__file__).with_name("shops.py"))


def check(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


@pytest.mark.parametrize(
    ("test", "options", "code", "said"),
    [
        ("sold_once", (), 0, "holds"),
        ("sold_twice", (), 1, "FAILS shops.py:sold_twice: AssertionError: sold twice"),
        ("crossed", (), 1, "Who is blocked on what"),
        ("leaks", (), 2, "nondeterminism"),
        ("sold_once", ("--runs", "100000", "--seconds", "0.05"), 4, "inconclusive"),
        ("main", ("--runs", "20", "--strategy", "pct3"), 0, "shops.py:main holds: 20 schedules"),
        ("sold_once", ("--certify", "2", "--runs", "5"), 0, "at most 2 holds (until nothing else can run), ticks or"),
    ],
)
def test_the_exit_code_is_of_the_verdict(test: str, options: tuple[str, ...], code: int, said: str) -> None:
    done = check(f"{SHOPS}:{test}", *options)
    assert (done.exit_code, done.stderr) == (code, "")
    assert said in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nosuch.py",), "there is no file nosuch.py"),
        (("no.such.module",), "there is no file and no module no.such.module"),
        ((f"{SHOPS}:nosuch",), "no coroutine function 'nosuch'"),
        ((SHOPS, "--replay", "ka1.a.h.b"), "say which program"),
        ((f"{SHOPS}:main", "--replay", "rubbish"), "a token is ka1."),
        ((f"{SHOPS}:main", "--replay", "nofile.txt"), "there is no file 'nofile.txt'"),
        ((f"{SHOPS}:main", "--replay", "no/such.file.txt"), "there is no file 'no/such.file.txt'"),
        ((f"{SHOPS}:main", "--replay", f"ka1.0123456789.s.{'A' * 600}"), "the token is damaged"),
        ((f"{SHOPS}:main", "--replay", "."), ".: the token in it cannot be read"),
        ((f"{SHOPS}:main", "--replay", "ka1.rubbish"), "a token is ka1."),
        ((f"{SHOPS}:main", "--strategy", "clever"), "there is no strategy 'clever'"),
        ((f"{SHOPS}:main", "--shard", "5/4"), "a shard is i/n"),
        ((f"{SHOPS}:main", "--step"), "give one with --replay"),
        (("--runs", "5"), "is for a program"),
        (("--step",), "is for a program"),
        ((SHOPS, "-c", "x.toml"), "a program was named"),
    ],
)
def test_what_is_no_use_of_it_is_told_in_one_line(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = check(*arguments)
    assert done.exit_code == 2
    assert said in done.output


def test_a_file_without_tests_that_are_explored_runs_what_looks_like_tests(tmp_path: Path) -> None:
    file = tmp_path / "plain.py"
    file.write_text("import trio\nasync def test_a():\n    await trio.sleep(1)\nasync def other():\n    1 / 0\n")
    done = check(str(file), "--runs", "3")
    assert (done.exit_code, done.stdout) == (
        0,
        "plain.py:test_a holds: 3 schedules, 1 distinct happens-before classes\n",
    )
    (tmp_path / "none.py").write_text("x = 1\n")
    assert "no function with @explore" in check(str(tmp_path / "none.py")).output


def test_json_is_one_line_for_each_program_and_the_gravest_verdict_counts() -> None:
    done = check(SHOPS, "--json", "--runs", "60")
    outcomes = {
        data["program"].partition(":")[2]: data["outcome"] for data in map(json.loads, done.stdout.splitlines())
    }
    assert outcomes["sold_twice"] == outcomes["crossed"] == "fails"
    assert outcomes["sold_once"] == outcomes["through_anyio"] == "holds"
    assert done.exit_code == 1


def test_a_token_is_replayed_stepped_and_drawn(tmp_path: Path) -> None:
    drawn = tmp_path / "drawn.html"
    done = check(f"{SHOPS}:sold_twice", "--json", "--html", str(drawn))
    token = json.loads(done.stdout)["counterexample"]["token"]
    assert "<svg" in drawn.read_text(encoding="utf-8")
    again = check(f"{SHOPS}:sold_twice", "--replay", token)
    assert (again.exit_code, "sold twice" in again.stdout) == (1, True)
    steps = check(f"{SHOPS}:sold_twice", "--replay", token, "--step")
    assert (steps.exit_code, "could run too: sold_twice/buy#2" in steps.stdout) == (1, True)
    assert check(f"{SHOPS}:sold_twice", "--mermaid").stdout.startswith("sequenceDiagram\n")


def test_two_jobs_do_the_work_of_one_and_find_what_it_finds() -> None:
    done = check(f"{SHOPS}:sold_once", "--jobs", "2", "--runs", "61", "--json")
    data = json.loads(done.stdout)
    assert (done.exit_code, data["outcome"]) == (0, "holds")
    assert data["schedules"] >= 61
    [certificate] = data["certificates"]
    assert certificate["bound"] == 1
    found = check(f"{SHOPS}:sold_twice", "--jobs", "2", "--json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)["counterexample"]["failure"] == "AssertionError: sold twice"


def test_two_jobs_bear_what_a_program_writes_and_never_lose_a_failure(tmp_path: Path) -> None:
    program = tmp_path / "says.py"
    program.write_text(
        "import sys\nimport trio\n\n"
        "async def test_writes():\n    print('out')\n    sys.stderr.write('x' * 4096)\n"
        "    await trio.lowlevel.checkpoint()\n\n"
        "async def test_fails_elsewhere():\n    await trio.lowlevel.checkpoint()\n"
        "    assert sys.argv[0] != '-c', 'not here'\n"
    )
    done = check(f"{program}:test_writes", "--jobs", "2", "--runs", "80")
    assert (done.exit_code, "holds: 80 schedules" in done.stdout) == (0, True), done.output
    done = check(f"{program}:test_fails_elsewhere", "--jobs", "2", "--runs", "40")
    assert (done.exit_code, "passes in this one" in done.stdout) == (2, True), done.output


def test_a_fault_that_happens_in_one_of_two_jobs_has_happened(tmp_path: Path) -> None:
    program = tmp_path / "late.py"
    program.write_text(
        "import trio\nfrom kesoku_actors.harness import Hold, explore\n"
        "from kesoku_actors.harness.world import World\n\n"
        "@explore(runs=2, strategy='random', certify=Hold(1))\nasync def test_rare(world: World):\n"
        "    await trio.lowlevel.checkpoint()\n    world.fault('rare', rate=1e-9)\n\n"
        "@explore(runs=2, strategy='random')\nasync def test_never(world: World):\n"
        "    await trio.lowlevel.checkpoint()\n    world.fault('never', rate=0.0)\n"
    )
    outcomes = {}
    for test in ("test_rare", "test_never"):
        done = check(f"{program}:{test}", "--jobs", "2", "--json")
        data = json.loads(done.stdout)
        outcomes[test] = (data["outcome"], len(data["certificates"]))
        assert ("`never` never happened" in data["reason"]) == (test == "test_never")
    assert outcomes == {"test_rare": ("holds", 1), "test_never": ("inconclusive", 0)}


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file = str(tmp_path / "campaign.json")
    whole = json.loads(check(f"{SHOPS}:sold_once", "--runs", "200", "--json").stdout)
    first = check(f"{SHOPS}:sold_once", "--runs", "200", "--json", "--seconds", "0.05", "--resume", file)
    assert first.exit_code == 4
    second = check(f"{SHOPS}:sold_once", "--runs", "200", "--json", "--resume", file)
    data = json.loads(second.stdout)
    assert (second.exit_code, data["outcome"]) == (0, "holds")
    assert data["schedules"] - whole["schedules"] in (0, 1, 2)  # a form that others are made of is played again
    assert json.loads(first.stdout)["schedules"] < whole["schedules"]
    other = check(f"{SHOPS}:sold_once", "--seed", "9", "--resume", file)
    assert (other.exit_code, "another source, seed, strategy or share" in other.output) == (2, True)
    Path(file).write_text("{}")
    assert "no file of a campaign" in check(f"{SHOPS}:sold_once", "--resume", file).output


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_campaign_that_found_a_failure_tells_it_again(jobs: str, tmp_path: Path) -> None:
    asked = (f"{SHOPS}:sold_twice", "--jobs", jobs, "--json", "--resume", str(tmp_path / "campaign.json"))
    first, again = check(*asked), check(*asked)
    assert (first.exit_code, again.exit_code) == (1, 1)
    failures = [json.loads(done.stdout)["counterexample"]["failure"] for done in (first, again)]
    assert failures == ["AssertionError: sold twice"] * 2


def test_a_campaign_that_saw_no_determinism_never_holds_later(tmp_path: Path) -> None:
    asked = (f"{SHOPS}:leaks", "--json", "--resume", str(tmp_path / "campaign.json"))
    assert [check(*asked).exit_code for _ in range(2)] == [2, 2]


def test_a_campaign_with_drawn_inputs_passes_over_those_that_were_searched(tmp_path: Path) -> None:
    file, asked = tmp_path / "campaign.json", ("--runs", "240", "--certify", "1", "--json")
    target = f"{SHOPS}:counted"
    whole = json.loads(check(target, *asked).stdout)
    assert whole["outcome"] == "holds"
    sessions = []
    for _ in range(100):
        done = check(target, *asked, "--seconds", str(whole["cpu_seconds"] / 2), "--resume", str(file))
        sessions.append(json.loads(done.stdout))
        if done.exit_code == 0:
            break
        assert done.exit_code == 4
    assert len(sessions) > 1
    kept = json.loads(file.read_text())
    assert kept["inputs"] == 6
    assert kept["faults"]["asked"]["late"] > 0
    assert sessions[-1]["schedules"] == kept["schedules"] == whole["schedules"]
    assert sessions[-1]["certificates"] == whole["certificates"]
    again = json.loads(check(target, *asked, "--resume", str(file)).stdout)
    assert (again["outcome"], again["schedules"]) == ("holds", whole["schedules"])
    other = check(target, *asked, "--seed", "9", "--resume", str(file))
    assert (other.exit_code, "another source, seed, strategy or share" in other.output) == (2, True)


def test_a_campaign_finds_a_failure_behind_the_inputs_it_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "campaign.json"
    for _ in range(30):
        done = check(f"{SHOPS}:sums", "--seconds", "0.1", "--resume", str(file))
        if done.exit_code != 4:
            break
    assert (done.exit_code, "an amount was lost" in done.stdout) == (1, True)


@pytest.mark.parametrize("test", ["sold_once", "counted"])
def test_a_campaign_of_two_jobs_counts_what_was_explored_before(test: str, tmp_path: Path) -> None:
    asked = (f"{SHOPS}:{test}", "--jobs", "2", "--runs", "60", "--json", "--resume", str(tmp_path / "campaign.json"))
    first, again = (json.loads(check(*asked).stdout) for _ in range(2))
    assert (first["outcome"], again["outcome"]) == ("holds", "holds")
    assert first["schedules"] <= again["schedules"] <= first["schedules"] + 10  # what others are made of runs again
    assert len(list(tmp_path.iterdir())) == 2


def test_a_long_token_is_a_file_that_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = check(f"{SHOPS}:long_order")
    assert found.exit_code == 1
    [file] = tmp_path.iterdir()
    assert f"--replay {file.name}" in found.stdout
    assert len(file.read_text()) > 2_048
    again = check(f"{SHOPS}:long_order", "--replay", file.name)
    assert (again.exit_code, "the order is long" in again.stdout) == (1, True)
    assert list(tmp_path.iterdir()) == [file]
    steps = check(f"{SHOPS}:long_order", "--replay", str(file), "--step")
    assert (steps.exit_code, "the program fails" in steps.stdout) == (1, True)
    whole = json.loads(check(f"{SHOPS}:long_order", "--json").stdout)
    assert whole["counterexample"]["token"] == file.read_text().strip()
    absent = check(f"{SHOPS}:long_order", "--replay", "absent.token")
    assert (absent.exit_code, "there is no file 'absent.token'" in absent.output) == (2, True)


def test_shards_are_counted_from_one() -> None:
    assert parse_shard("1/4") == (0, 4)
    for wrong in ("0/4", "5/4", "4", "a/b", "1/0", "/"):
        with pytest.raises(HarnessError, match="a shard is i/n"):
            parse_shard(wrong)


def test_the_certificate_of_a_share_does_not_speak_for_the_whole() -> None:
    parts = []
    for share in ("1/2", "2/2"):
        done = check(f"{SHOPS}:sold_once", "--shard", share, "--json")
        [certificate] = json.loads(done.stdout)["certificates"]
        parts.append(certificate["schedules"])
        assert certificate["share"] == [int(share[0]), 2]
        told = check(f"{SHOPS}:sold_once", "--shard", share).stdout
        assert f"such schedules of share {share} were run" in " ".join(told.split())
    [whole] = json.loads(check(f"{SHOPS}:sold_once", "--json").stdout)["certificates"]
    assert (whole["schedules"], whole["share"]) == (sum(parts), [1, 1])
    [two] = json.loads(check(f"{SHOPS}:sold_once", "--jobs", "2", "--json").stdout)["certificates"]
    assert two == whole


def test_without_a_target_it_checks_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    assert check().stdout.startswith("ok: there is no configuration")
