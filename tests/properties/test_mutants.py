"""The seeded faults fit the program, and the named property notices each: a few of them here, all by the script."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from scripts.seeded.table import PACKAGE, Mutant, NoSuchFault, one_of_each_rule, properties, read_table
from tests.draws import drawn

ROOT: Final = Path(__file__).parents[2]
FAULTS: Final = read_table()
PROPERTIES: Final = frozenset(properties())
SAMPLE: Final = 4
SEED: Final = 5
"""Of the sample unless `KESOKU_SEED` is set: a commit is judged by the same faults everywhere."""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_fault_fits_the_program_and_its_property_is_there(fault: Mutant) -> None:
    assert fault.source() != (ROOT / PACKAGE / fault.file).read_text()
    assert fault.test in PROPERTIES


def test_twelve_rules_and_more_have_three_faults_each() -> None:
    counts = Counter(fault.rule for fault in FAULTS)
    assert [rule for rule, count in counts.items() if count < 3] == []
    assert {"I1", "I7", "I6", "C2", "C3", "O1", "O2", "M1", "M6", "M7", "B1", "C1"} <= set(counts)
    assert len(counts) >= 12
    assert len({(fault.file, fault.old, fault.new) for fault in FAULTS}) == len(FAULTS)


def test_a_sample_of_the_faults_is_noticed_by_the_properties_that_are_named() -> None:
    rules = [fault.rule for fault in drawn(one_of_each_rule(FAULTS, 0), SAMPLE, otherwise=SEED)]
    sys.stdout.write(f"the sample: one fault of each of {', '.join(rules)}\n")
    command = [sys.executable, "scripts/mutants", "--sample", "--json", *(f"--rule={rule}" for rule in rules)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ended.stdout, ended.stderr
    found = json.loads(ended.stdout)
    assert [(each["name"], each["ended"], each["said"]) for each in found["faults"] if each["ended"] != "killed"] == []
    assert [name for name, each in found["without"].items() if each["ended"] != "survived"] == []
    told = [each for each in found["faults"] if each["by"] != "comes_to_rest"]
    assert [each["name"] for each in told if not each["token"].startswith("ka1.")] == []
    assert found["good"]
    assert {each["rule"] for each in found["faults"]} == set(rules)
    assert ended.returncode == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("no line of it", "pass", "stands 0 times"),
        ("self", "cls", "stands"),
        ("class Latches:", "class Latches", "is no Python"),
        ("class Latches:", "class Latches:  # as it was", "changes nothing"),
    ],
)
def test_a_fault_that_does_not_fit_is_refused(old: str, new: str, said: str) -> None:
    fault = Mutant(rule="B3", test="", file="gateway/latches.py", fault="", old=old, new=new)
    with pytest.raises(NoSuchFault, match=said):
        fault.source()
