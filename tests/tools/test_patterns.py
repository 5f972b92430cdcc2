"""Patterns: what `re.match` says, in linear time, and what is refused when it is loaded (T2, C06)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.tools.shell.patterns import PatternRefused, compile_patterns, load

SAMPLES = (
    r"^(echo|ls|pwd|cat|git|uv|grep|find|python|sed|awk)(\s|$)",
    r"(\b|^)(rm|sudo|shutdown|reboot|mkfs|dd|chmod|chown)(\b|\s|$)",
)

ATOMS = (
    r"\W \S \D [\W] [\Wa] [^\S] [\s\d-] [^\w.] (?s:.) (?m:^a$) (?a:\w) "
    r"a b r m . \s \w \d [ab] [^a] []a] [\]a-c] \. \x61 \141 ^ $ \b \B \A \Z - { } é"
)
atoms = st.sampled_from(ATOMS.split())


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    assertions = ("^", "$", r"\b", r"\B", r"\A", r"\Z")
    repeatable = inner.filter(lambda text: text not in assertions).map(lambda text: f"(?:{text})")
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(repeatable, st.sampled_from(["*", "+", "?", "*?", "+?", "{2}", "{1,2}", "{,2}", "{1,}"])).map(
            "".join
        ),
        inner.map(lambda text: f"(?P<n>{text})" if "?P<" not in text else text),
        inner.map(lambda text: f"(?i:{text})"),
    )


expressions = st.recursive(atoms, grown, max_leaves=8)


def re_takes(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


@settings(max_examples=300, deadline=None)
@given(expressions.filter(re_takes), st.text(alphabet="abrmABM .-{}1é\n", max_size=7))
def test_a_pattern_means_what_it_means_to_re_match(expression, text):
    try:
        pattern = load(expression)
    except PatternRefused:
        assert re.match(expression, "") is not None  # it would fit every command
        return
    if r"\b" in expression.lower():  # the one difference: it knows the letters of ASCII, and an empty text has no place
        text = text.replace("é", "e") or "-"
    assert pattern.matches(text) == bool(re.match(expression, text))


@pytest.mark.parametrize("sample", SAMPLES)
@given(text=st.text(alphabet="rmsudoech ;\n-/", max_size=12))
def test_the_sample_patterns_mean_what_they_mean_to_re_match(sample, text):
    assert load(sample).matches(text) == bool(re.match(sample, text))


@pytest.mark.parametrize("expression", [r"^(a+)+$", r"^(a|aa)+$", r"^(a*)*b", r"^(\w|\d)+$", r"(a?){30}a{30}$"])
def test_an_exponential_pattern_answers_at_once(expression):
    # With backtracking each of these would take longer than any test may run.
    assert not load(expression).matches("a" * 3000 + "!")


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("", "empty"),
        ("(", "not a regular expression"),
        ("*a", "not a regular expression"),
        ("[[:alpha:]]x", "not a regular expression"),
        (r"(a)\1", "back reference"),
        (r"(?P<x>a)(?P=x)", "back reference"),
        ("(?=x)y", "(?="),
        ("(?<!x)y", "(?<"),
        ("(?>a)b", "(?>"),
        ("a++b", "possessive"),
        (".*", "every command"),
        ("ls|", "every command"),
        ("(a{1000}){1000}", "too large"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused_when_it_is_loaded(expression, why):
    with pytest.raises(PatternRefused, match=re.escape(why)):
        load(expression)


def test_every_refused_pattern_is_named_at_once():
    with pytest.raises(PatternRefused) as refused:
        compile_patterns(["fine", "(", "a++"])
    assert "'('" in str(refused.value)
    assert "'a++'" in str(refused.value)


@settings(max_examples=200, deadline=None)
@given(expressions.filter(re_takes), st.integers(0, 1100), st.integers(0, 30))
def test_what_cannot_be_matched_is_refused_when_it_is_loaded(expression, times, more):
    try:
        pattern = load(f"x(?:{expression}){{{times}}}(?:){{{more},{more + times}}}")
    except PatternRefused:
        return
    assert pattern.matches("y") is False
