"""The page in a real browser: it draws itself, can be walked and searched, and hostile texts stay texts (W08, W09)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from kesoku_actors.llm.scripted import Call, Say, Think
from kesoku_actors.protocol import Message
from kesoku_actors.trace import render_page, trace_data
from tests.paths.house import Home
from tests.trace.browser import Browser, Page, browsing, find_browser
from tests.trace.stories import Played, busy_day, played

HOSTILE = (
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=2>",
    "<!--<script>",
    "\u202egnp.exe\u202c \u2066x",
    "\x00nul\x1b[31m\x07",
    "]]>&lt;b&gt; {{data}} ${window.pwned=3} `x`",
    "javascript:window.pwned=4",
    "\u2028\u2029\u0085",
    "__proto__",
)


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    executable = find_browser()
    if executable is None:
        reason = "no chromium on this machine (Debian: apt install chromium); the trace's page is not looked at"
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            sys.stderr.write(f"\nskipped: {reason}\n")
        pytest.skip(reason)
    with browsing(executable, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def play(story: Any, folder: Path) -> Played:
    found: Played = trio.run(story, folder, clock=MockClock(autojump_threshold=0))
    return found


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return play(busy_day, tmp_path_factory.mktemp("day"))


def opened(browser: Browser, data: Any, folder: Path) -> Page:
    path = folder / "trace.html"
    path.write_text(render_page(data), encoding="utf-8")
    return browser.page(path)


@pytest.fixture
def page(browser: Browser, day: Played, tmp_path: Path) -> Page:
    return opened(browser, trace_data(day.trace()), tmp_path)


def test_it_asks_for_nothing_and_nothing_complains(page: Page, tmp_path: Path) -> None:
    assert [url for url in page.requests() if not url.startswith("file://")] == []
    assert len(page.requests()) == 1
    assert page.complaints() == []
    page.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")


def test_why_a_turn_failed_is_the_first_thing_to_be_seen(page: Page) -> None:
    reason = "HTTP 401: the key is not accepted; check [openai] api_key"
    assert page.text("#failures button").startswith("Turn 5 failed")
    assert reason in page.text("#failures button")
    assert page.text("#turn h2") == "5. And now publish it."
    assert reason in page.text("#turn .banner")
    assert reason in page.text("#detail .banner")


def test_the_overview_counts_turns_calls_and_tokens(page: Page) -> None:
    totals = page.text("#totals")
    for part in ("5 turns", "7 model calls", "5 tool calls", "13.4K → 208", "unknown cost"):
        assert part in totals
    assert page.texts("nav .number") == ["1", "2", "3", "4", "5"]


def test_a_turn_is_a_timeline_with_lanes_and_a_list_of_its_steps(page: Page) -> None:
    page.click("nav button")
    assert page.texts(".lane .name") == ["people", "model", "tools", "", ""]
    assert page.texts("#turn .item .kind") == [
        *("message", "model", "↳ thought", "↳ text", "call", "call", "call", "model", "↳ thought", "call", "model"),
        "answer",
    ]
    bars = page.run(
        "[...document.querySelectorAll('.bar.k-call')].map((bar) => [bar.title, parseFloat(bar.style.width)])"
    )
    widths = {title.partition("(")[2][:12]: width for title, width in bars}
    assert widths['command="ls '] == pytest.approx(3 * widths['path="notes.'], rel=0.01)
    assert (
        page.text(".item.s-failed .why")
        == "ValueError: missing.md does not exist; the folder holds notes.md and plan.md"
    )
    assert page.texts("#turn .item .took")[1] == "0.6 s"
    assert page.texts("#turn .item .spent")[1] == "1,840 → 96"


def test_a_step_opens_the_exact_request_and_reply(page: Page) -> None:
    page.click("nav button")
    page.click("#turn .item:nth-of-type(8)")
    assert "as sent and received, by llm-turn-2.log.yaml" in page.text("#detail .source")
    assert page.texts("#detail .role") == ["user", "assistant", "assistant", *3 * ["assistant"], *3 * ["tool"]][-9:]
    page.run("[...document.querySelectorAll('#detail details')].forEach((one) => { one.open = true; })")
    page.wait_for("document.querySelectorAll('#detail details > pre').length === 9")
    assert "path: missing.md\n  lines: 12" in page.text("#detail details:nth-of-type(5) pre")
    page.press("Enter")
    assert page.text("#detail .tabs [aria-selected=true]") == "reply"
    assert "name: read_file" in page.text("#detail pre")
    assert "input: 2210" in page.text("#detail pre")


def test_keys_walk_through_steps_and_turns(page: Page) -> None:
    page.press("K", "K")
    assert page.text("#turn h2") == "3. Shorter, please!"
    page.press("j", "j")
    assert page.text("#turn .item.selected .kind") == "model"
    page.press("k")
    assert page.text("#turn .item.selected .kind") == "message"
    page.press("J")
    assert page.text("#turn h2") == "4. Build everything."
    page.press("?")
    assert page.run("document.querySelector('#help').open")
    page.press("Escape")
    assert not page.run("document.querySelector('#help').open")


def test_search_finds_words_in_every_turn_and_escape_takes_it_back(page: Page) -> None:
    page.press("/")
    page.press(*"LIGHT")
    page.wait_for("document.querySelector('#turn .dim')?.textContent.includes('found')")
    assert page.texts("#turn .group") == ["3. Shorter, please!"]
    assert page.text("#turn .item mark") == "light"
    page.press("Enter", "j")
    assert "the light stayed on" in page.text("#detail pre")
    page.press("Escape")
    assert page.text("#turn h2") == "3. Shorter, please!"


def test_filters_leave_only_the_kinds_that_were_chosen(page: Page) -> None:
    page.press("f")
    assert set(page.run("[...document.querySelectorAll('#turn .item')].map((e) => e.className.split(' ')[2])")) <= {
        "s-failed",
        "s-interrupted",
        "s-unknown",
    }
    page.press("f")
    page.click("#filters [data-name=calls]")
    assert set(page.texts("#turn .item .kind")) == {"call"}
    assert page.text("#turn .dim").startswith("5 steps found")


def test_an_interruption_shows_who_took_over_and_what_had_been_said(page: Page) -> None:
    page.click("nav button:nth-of-type(2)")
    assert page.texts("#turn .item .title") == [
        "Tell me a story.",
        "scenario was cut off",
        "Once upon a time there",
        "A newer message took over: Shorter, please!",
    ]


def test_without_the_turn_log_the_exchanges_are_rebuilt_and_say_so(
    browser: Browser, day: Played, tmp_path: Path
) -> None:
    page = opened(browser, trace_data(day.trace(logs=())), tmp_path)
    page.click("nav button")
    page.click("#turn .item:nth-of-type(8)")
    assert "rebuilt from the stored rows" in page.text("#detail .source.rows")
    assert len(page.texts("#detail .role")) == 9
    assert page.complaints() == []


async def _hostile(folder: Path) -> Played:
    async def echo(text: str) -> str:
        """Echo.

        Args:
            text: any
        """
        await trio.sleep(0.1)
        return text

    everything = "\n".join(HOSTILE)
    inferences = [
        (Think(thought=everything), Call(name="echo", arguments={"text": everything, HOSTILE[0]: HOSTILE[1]})),
        (Call(name=HOSTILE[1], arguments={}, id=HOSTILE[0]),),
        (Say(text=everything),),
    ]

    async def talk(home: Home) -> Message:
        message = await home.say(HOSTILE[0] + HOSTILE[1], sender=HOSTILE[1])
        await home.ended(message)
        await home.ended(await home.say(everything))
        return message

    return await played(folder, inferences, talk, tools=[echo])


def test_hostile_texts_are_shown_and_do_nothing(browser: Browser, tmp_path: Path) -> None:
    session = play(_hostile, tmp_path)
    page = opened(browser, trace_data(session.trace()), tmp_path)
    for turn in range(2):
        page.click(f"nav button:nth-of-type({turn + 1})")
        for item in range(len(page.texts("#turn .item"))):
            page.run(f"document.querySelectorAll('#turn .item')[{item}].click()")
            page.run("[...document.querySelectorAll('#detail details, #detail .more')].forEach((one) => one.click())")
            page.run("document.querySelectorAll('#detail .tabs button').forEach((one) => one.click())")
    assert page.run("window.pwned") is None
    assert (
        page.run("document.images.length + document.links.length + document.querySelectorAll('iframe,object').length")
        == 0
    )
    assert page.run("document.scripts.length") == 2
    assert page.complaints() == []
    assert len(page.requests()) == 1
    page.click("nav button")
    page.run("[...document.querySelectorAll('#turn .item')].find((one) => one.className.includes('k-thought')).click()")
    shown = page.text("#detail pre")
    for text in (HOSTILE[0], HOSTILE[1], HOSTILE[5], "U+202Egnp.exeU+202C", "U+0000nulU+001B[31mU+0007"):
        assert text in shown
    assert "\u202e" not in shown


def test_a_script_that_would_get_into_the_page_is_blocked_by_its_policy(
    browser: Browser, tmp_path: Path, day: Played
) -> None:
    text = render_page(trace_data(day.trace()))
    path = tmp_path / "changed.html"
    evil = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1><p style='color:red' id=p>x</p></main>"
    path.write_text(text.replace("</main>", evil), encoding="utf-8")
    page = browser.page(path)
    assert page.run("window.pwned") is None
    assert page.run("getComputedStyle(document.querySelector('#p')).color") != "rgb(255, 0, 0)"
    assert len([line for line in page.complaints() if "Content Security Policy" in line]) >= 3


def test_a_session_without_turns_is_an_empty_page_that_says_so(browser: Browser, tmp_path: Path, day: Played) -> None:
    data = json.loads(json.dumps(trace_data(day.trace())))
    page = opened(browser, data | {"turns": [], "exchanges": [], "pool": []}, tmp_path)
    assert page.text("#turn") == "There is nothing in this session yet."
    assert page.complaints() == []
