"""Values changed in some fields: as attrs does it, for what checks nothing."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.protocol import Inbound
from kesoku_actors.session.turn_state import Registering, Turn
from kesoku_actors.values import define, evolve, frozen


@given(
    steps=st.integers(),
    changes=st.fixed_dictionaries({}, optional={"steps": st.integers(), "text": st.text(), "nudge": st.booleans()}),
)
def test_changed_as_attrs_changes_it(steps, changes):
    turn = Turn(root_id="root", steps=steps)
    assert evolve(turn, **changes) == attrs.evolve(turn, **changes)
    assert turn == Turn(root_id="root", steps=steps)


def test_a_value_without_fields_has_an_equal():
    assert evolve(Registering()) == Registering()


def test_a_field_that_is_not_there_is_refused():
    with pytest.raises(KeyError):
        evolve(Turn(root_id="root"), colour="red")


def test_a_class_that_checks_what_it_is_made_of_is_refused():
    with pytest.raises(TypeError, match=r"attrs\.evolve"):
        evolve(Inbound(chatbot_id="bot", channel_id="1", content="Hello", sender="Ada"), content="")


@frozen(cache_hash=True)
class Hashed:
    word: str = ""


@frozen(slots=False)
class Open:
    word: str = ""


@frozen
class Spelt:
    word: str

    def __init__(self, word: str = "") -> None:
        self.__attrs_init__(word.lower())


@pytest.mark.parametrize("kind", [Hashed, Open, Spelt])
def test_a_class_that_is_made_in_a_way_of_its_own_is_refused(kind):
    with pytest.raises(TypeError, match=r"attrs\.evolve"):
        evolve(kind(), word="A")


@attrs.frozen
class TheirPair:
    left: object
    right: object = attrs.field(default="hidden", repr=False)
    size: float = attrs.field(default=0.5, repr=lambda size: f"{size:.2f}")


@frozen
class OurPair:
    left: object
    right: object = attrs.field(default="hidden", repr=False)
    size: float = attrs.field(default=0.5, repr=lambda size: f"{size:.2f}")


@given(st.text() | st.integers() | st.lists(st.none()))
def test_shown_as_attrs_shows_it(left):
    assert repr(OurPair(left)) == repr(TheirPair(left)).replace("TheirPair", "OurPair")
    assert repr(OurPair(OurPair(left))) == repr(TheirPair(TheirPair(left))).replace("TheirPair", "OurPair")


def test_one_that_holds_itself_is_shown_once():
    @define
    class Ring:
        inner: object = None

    ring = Ring()
    ring.inner = ring
    assert repr(ring) == "Ring(inner=...)"


def test_what_a_class_shows_by_itself_stays():
    @frozen
    class Secret:
        word: str

        def __repr__(self):
            return "Secret()"

    @frozen(repr=False)
    class Plain:
        word: str

    assert (repr(Secret("sesame")), repr(Plain("x")).startswith("<")) == ("Secret()", True)
