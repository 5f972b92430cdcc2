"""Which model answers is chosen in the open, never silently."""

from __future__ import annotations

import pytest

from kesoku_actors.errors import ConfigError, Fault
from kesoku_actors.llm.registry import ProviderFactory, ProviderRegistry
from kesoku_actors.llm.scripted import Scenario, ScriptedModel


def factory(name: str, lack: str | None = None, owner: str = "test", auto: bool = True) -> ProviderFactory:
    def make() -> ScriptedModel:
        return ScriptedModel(Scenario(), name=name, model=f"{name}-1")

    return ProviderFactory(name=name, missing=lambda: lack, make=make, how=f"[{name}] api_key", owner=owner, auto=auto)


def registry(*factories: ProviderFactory) -> ProviderRegistry:
    made = ProviderRegistry()
    for one in factories:
        made.add(one)
    return made


def test_auto_takes_the_first_registered_that_lacks_nothing() -> None:
    models = registry(factory("gemini", "no key"), factory("local"), factory("openai"), factory("claude"))
    choice = models.choose()
    assert choice.provider.name == "openai"
    assert choice.line == "openai-1 (openai) answers"


def test_auto_falls_to_the_local_model_and_says_how_to_get_another() -> None:
    choice = registry(factory("local"), factory("gemini", "no key"), factory("openai", "no key")).choose("auto")
    assert choice.provider.name == "local"
    assert choice.line == "local-1 (local) answers; for another one set [gemini] api_key | [openai] api_key"


def test_auto_never_takes_what_is_only_for_asking_by_name() -> None:
    models = registry(factory("scripted", auto=False), factory("local"))
    assert models.choose().provider.name == "local"
    assert models.choose("scripted").provider.name == "scripted"


def test_auto_with_nothing_ready_says_what_each_lacks() -> None:
    with pytest.raises(ConfigError, match=r"openai: no key \(set \[openai\] api_key\)"):
        registry(factory("openai", "no key")).choose()
    with pytest.raises(ConfigError, match="none is registered"):
        registry().choose()


def test_an_unknown_name_lists_those_present_and_exits_78() -> None:
    with pytest.raises(ConfigError, match=r"openay.*present: openai, local, auto") as caught:
        registry(factory("openai"), factory("local")).choose("openay")
    assert caught.value.exit_code == 78


def test_a_named_model_that_lacks_something_is_no_reason_for_another_one() -> None:
    with pytest.raises(ConfigError, match=r"no key; set \[openai\] api_key"):
        registry(factory("openai", "no key"), factory("local")).choose("openai")


def test_a_name_belongs_to_its_first_owner_until_it_is_disposed() -> None:
    models = ProviderRegistry()
    dispose = models.add(factory("openai", owner="builtin"))
    with pytest.raises(Fault, match="plugin cannot register the model 'openai': builtin has it"):
        models.add(factory("openai", owner="plugin"))
    dispose()
    models.add(factory("openai", owner="plugin"))
    dispose()
    assert [one.owner for one in models.factories()] == ["plugin"]


def test_auto_is_no_name_for_a_model() -> None:
    with pytest.raises(Fault, match="auto"):
        ProviderRegistry().add(factory("auto"))


def test_the_spares_are_those_named_in_order_but_for_the_one_that_answers() -> None:
    models = registry(factory("gemini"), factory("claude"), factory("openai"))
    first = models.choose("claude").provider
    spares = models.spares(("openai", "claude", "gemini", "openai"), first)
    assert [each.name for each in spares.providers] == ["openai", "gemini"]
    assert spares.passed_over == ()


def test_a_spare_that_lacks_something_is_passed_over_and_told_of() -> None:
    models = registry(factory("gemini"), factory("claude", "no key"), factory("openai"))
    spares = models.spares(("claude", "openai"), models.choose("gemini").provider)
    assert [each.name for each in spares.providers] == ["openai"]
    assert spares.passed_over == ("agent.failover: 'claude' is passed over: no key; set [claude] api_key",)


def test_a_spare_that_is_not_there_is_a_mistake() -> None:
    models = registry(factory("gemini"))
    with pytest.raises(ConfigError, match=r"agent.failover: there is no model 'openay'; present: gemini"):
        models.spares(("openay",), models.choose("gemini").provider)
