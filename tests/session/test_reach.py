"""How long a text is for a model: counted by its characters, corrected by what the model says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.llm.port import ProviderError
from kesoku_actors.session.reach import Reach, reserve, tokens_in


@given(st.text(), st.text())
def test_a_longer_text_is_never_fewer_tokens(text: str, more: str) -> None:
    assert 0 <= tokens_in(text) <= tokens_in(text + more) + 1e-9
    assert tokens_in("") == 0


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("The quick brown fox jumps over the lazy dog. " * 20, 200, 260),
        ("Съешь же ещё этих мягких французских булок. " * 20, 250, 500),
        ("我能吞下玻璃而不伤身体。" * 20, 200, 300),
        ("Falsches Üben von Xylophonmusik quält jeden größeren Zwerg. " * 20, 280, 420),
        ("🦊" * 20, 40, 60),
        ('{"path": "/a/b.txt", "lines": [1, 2, 3]}' * 20, 180, 360),
    ],
)
def test_each_script_is_counted_by_its_own_measure(text: str, least: int, most: int) -> None:
    assert least <= tokens_in(text) <= most


def test_what_the_model_has_read_corrects_the_count() -> None:
    reach = Reach()
    assert reach.room(8_000) == 6_000
    reach.answered(1_000, 1_500)
    assert reach.room(8_000) == 4_000
    reach.answered(1_000, None)
    reach.answered(10, 500)  # too short to tell
    assert reach.room(8_000) == 4_000
    reach.answered(1_000, 1)  # no report of this request
    assert reach.room(8_000) == 12_000


def test_a_refusal_with_numbers_says_how_much_is_read() -> None:
    reach = Reach()
    assert reach.room(None) is None
    reach.refused(2_000, ProviderError("too long", prompt_tokens=3_000, context_tokens=2_048))
    assert reach.room(None) == (2_048 - reserve(2_048)) / 1.5
    assert reach.room(1_024) == (1_024 - reserve(1_024)) / 1.5


def test_a_refusal_without_numbers_lowers_the_ceiling_each_time() -> None:
    reach = Reach()
    reach.refused(1_000, ProviderError("too long"))
    assert reach.room(None) == 700
    reach.refused(690, ProviderError("too long"))
    assert reach.room(None) == pytest.approx(483)
    assert reach.room(400) == 300


def test_what_was_too_long_already_lowers_the_ceiling_no_further_and_what_was_read_raises_it() -> None:
    reach = Reach()
    for _ in range(6):
        reach.refused(1_000, ProviderError("too long"))
    assert reach.room(None) == 700, "it could not be cut: six refusals say no more than one"
    reach.answered(600, None)
    assert reach.room(None) == 700
    reach.answered(1_000, None)
    assert reach.room(None) == 1_000


def test_a_part_is_kept_for_the_reply() -> None:
    assert (reserve(4_096), reserve(256), reserve(200_000)) == (1_024, 64, 8_192)
