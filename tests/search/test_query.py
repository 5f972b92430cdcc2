"""What a person types: every text is a query, and none is a mistake."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.search.index import EVERYWHERE, open_index
from kesoku_actors.search.query import LONGEST, parse

_SIGNS = st.text(st.sampled_from("ab\"*:-+^(){}[]\\/'` \t\n\0é東🦊ANDORTNE"), max_size=40)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("", ""),
        ("  ", ""),
        ("fox", '"fox"'),
        ("red fox", '"red" "fox"'),
        ('"red fox" jumps', '"red fox" "jumps"'),
        ('"never closed', '"never closed"'),
        ("fo*", '"fo"*'),
        ("NOT fox OR hen", '"NOT" "fox" "OR" "hen"'),
        ("content:fox", '"content:fox"'),
        ("*", ""),
        ('""', ""),
    ],
)
def test_words_phrases_and_beginnings_are_all_there_is(text: str, expression: str) -> None:
    assert parse(text).expression == expression


def test_a_pasted_text_is_asked_for_by_its_beginning() -> None:
    assert len(parse("word " * 100_000).expression) <= LONGEST * 2


@given(st.one_of(st.text(max_size=60), _SIGNS, st.text(st.characters(), max_size=20)))
def test_no_text_is_a_syntax_error(text: str) -> None:
    index = open_index(None)
    query = parse(text)
    if query.expression:
        assert index.find(query.expression, EVERYWHERE, 10) == ()
    index.close()


def test_what_has_no_word_in_it_asks_for_nothing() -> None:
    index = open_index(None)
    index.connection.execute("INSERT INTO entries VALUES (1, 'm', 'bot', 'room')")
    index.connection.execute("INSERT INTO words (rowid, content) VALUES (1, 'red fox')")
    assert index.find(parse("fox -- !").expression, EVERYWHERE, 10) == ("m",)
    assert index.find(parse("-- !").expression, EVERYWHERE, 10) == ()
    index.close()


def test_halves_of_surrogate_pairs_as_a_shell_passes_them_on_are_searched_as_question_marks() -> None:
    assert parse("caf\udce9").expression == '"caf?"'
    with pytest.raises(UnicodeEncodeError):
        apsw.Connection(":memory:").execute("SELECT ?", ("caf\udce9",))
