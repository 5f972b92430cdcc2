"""Names stand for refs, until they are taken back."""

import pytest

from kesoku_actors.actors import Mailbox, NameTaken, NameUnknown, Registry


def test_registered_ref_is_found_until_it_is_withdrawn() -> None:
    registry, mailbox = Registry(), Mailbox[str]("store")
    withdraw = registry.register("store", mailbox.ref, owner="app")
    assert registry.lookup("store") is mailbox.ref
    withdraw()
    with pytest.raises(NameUnknown, match="known: none"):
        registry.lookup("store")


def test_name_stands_for_one_ref_at_a_time() -> None:
    registry = Registry()
    withdraw = registry.register("store", Mailbox[str]("a").ref, owner="app")
    with pytest.raises(NameTaken, match="by app"):
        registry.register("store", Mailbox[str]("b").ref, owner="plugin")
    withdraw()
    second = Mailbox[str]("b").ref
    registry.register("store", second, owner="plugin")
    withdraw()
    assert registry.lookup("store") is second


def test_everything_registered_is_told_with_its_owner() -> None:
    registry = Registry()
    for name, owner in [("b", "plugin"), ("a", "app")]:
        registry.register(name, Mailbox[str](name).ref, owner=owner)
    assert [(entry.name, entry.owner) for entry in registry.entries()] == [("b", "plugin"), ("a", "app")]


def test_unknown_name_is_told_with_those_known() -> None:
    registry = Registry()
    registry.register("store", Mailbox[str]("store").ref, owner="app")
    with pytest.raises(NameUnknown, match="known: store"):
        registry.lookup("stone")
