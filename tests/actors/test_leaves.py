"""Errors are classified by their leaves, however deep they are nested."""

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.actors import has_leaf, is_ordinary, leaves

_leaf = st.sampled_from([ValueError, OSError, KeyError, KeyboardInterrupt, SystemExit]).map(lambda kind: kind())


def _group(parts: list[BaseException]) -> BaseException:
    return BaseExceptionGroup("group", parts)


_errors = st.recursive(_leaf, lambda inner: st.lists(inner, min_size=1, max_size=4).map(_group), max_leaves=20)


@given(_errors)
def test_leaves_are_the_errors_that_are_no_groups_in_order(error: BaseException) -> None:
    def walk(part: BaseException) -> list[BaseException]:
        if isinstance(part, BaseExceptionGroup):
            return [leaf for inner in part.exceptions for leaf in walk(inner)]
        return [part]

    found = leaves(error)
    assert list(found) == walk(error)
    assert not any(isinstance(leaf, BaseExceptionGroup) for leaf in found)


@given(_errors)
def test_has_leaf_agrees_with_what_the_group_itself_finds(error: BaseException) -> None:
    if isinstance(error, BaseExceptionGroup):
        assert has_leaf(error, (OSError, KeyError)) == (error.subgroup((OSError, KeyError)) is not None)
    assert has_leaf(error, (BaseException,))
    assert not has_leaf(error, ())


@given(_errors)
def test_error_is_ordinary_when_nothing_in_it_is_addressed_to_the_program(error: BaseException) -> None:
    assert is_ordinary(error) == (not has_leaf(error, (KeyboardInterrupt, SystemExit)))


async def test_stray_cancelled_is_not_ordinary() -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        with pytest.raises(trio.Cancelled) as caught:
            await trio.lowlevel.checkpoint()
    assert not is_ordinary(BaseExceptionGroup("with others", [ValueError(), caught.value]))
