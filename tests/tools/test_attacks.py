"""The S rows in three profiles, with canaries: what may not run does not, and what runs reaches nothing (T2)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kesoku_actors.tools.shell import NoSandbox, find_sandbox
from scripts.attacks.rows import ATTACKS
from scripts.attacks.trial import Fate, Profile, Result, attempt

ALWAYS_DENIED = ("S06", "S07", "S13")
"""Forms that name a blocked program, whatever profile."""


async def fates(row: str, profile: Profile, folder: Path) -> list[Result]:
    sandbox = None
    if profile is Profile.SANDBOX:
        found = find_sandbox(network=False, hidden=(), search_path=os.environ["PATH"])
        if isinstance(found, NoSandbox):
            pytest.skip(f"{found.reason}; {found.remedy}")
        sandbox = found
    done = []
    for number, attack in enumerate(ATTACKS[row]):
        done.append(await attempt(row, attack, profile, sandbox=sandbox, folder=folder / str(number)))
    return done


@pytest.mark.parametrize("row", ATTACKS)
async def test_an_allowlist_starts_none_of_them(row, tmp_path):
    done = await fates(row, Profile.ALLOWLIST, tmp_path)
    # Reading a file is what its rules allow: there is nothing in that one.
    started = [each.command for each in done if each.fate is not Fate.DENIED and "/environ" not in each.command]
    assert started == []
    assert [each.reached for each in done if each.reached] == []


@pytest.mark.parametrize("row", ATTACKS)
async def test_inside_the_sandbox_none_of_them_reaches_anything(row, tmp_path):
    done = await fates(row, Profile.SANDBOX, tmp_path)
    assert [(each.command, each.reached) for each in done if each.fate is Fate.TOUCHED] == []
    assert row[:3] not in ALWAYS_DENIED or {each.fate for each in done} == {Fate.DENIED}


@pytest.mark.parametrize("row", [row for row in ATTACKS if row.startswith((*ALWAYS_DENIED, "S14", "S17"))])
async def test_a_blocklist_alone_denies_what_names_a_blocked_program_and_keeps_our_variables(row, tmp_path):
    done = await fates(row, Profile.BARE, tmp_path)
    assert row[:3] not in ALWAYS_DENIED or {each.fate for each in done} == {Fate.DENIED}
    assert [each.command for each in done if each.fate is Fate.TOUCHED] == []


async def test_the_canaries_do_tell_of_what_reaches_them(tmp_path):
    done = [
        result
        for number, row in enumerate(("S01 a second command", "S12 a redirection"))
        for result in await fates(row, Profile.BARE, tmp_path / str(number))
    ]
    assert {"a file", "the sink"} <= {each.reached for each in done}
