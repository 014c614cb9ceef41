"""What runs cost: who says so, what is not known, and where it is told."""

from __future__ import annotations

import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs import FeaturePlugin
from agent_hookspecs.authoring import tool
from agent_hookspecs.errors import ConfigError
from agent_host import AgentApplication
from agent_host.cli.usage import UsageLine
from agent_host.plugins.prices import PricedModel, Prices
from agent_host.prices import count_cost, read_prices
from agent_host.usage import add_usage
from scripted import (
    WAYS,
    Way,
    app_with,
    call,
    calling,
    delta,
    end,
    events_of,
    of_kind,
    saying,
    scripted,
)

ways = pytest.mark.parametrize("way", WAYS)
#: A dollar for a million tokens that are sent, ten for a million that come back.
TEN = {"input": 1, "output": 10}


@tool(effect="read")
def look() -> str:
    """Look around."""
    return "a tree"


def priced(provider: Any, *tools: Any, prices: Any = None, **options: Any) -> AgentApplication:
    """An application whose provider has a model that the config has a price for."""
    config = {
        "agents": {"default": {"provider": "scripted", "model": "m"}},
        "prices": {"scripted/m": TEN} if prices is None else prices,
        **options.pop("config", {}),
    }
    return app_with(provider, *tools, config=config, **options)


# Counting -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "prices"),
    [
        ({"input": 5}, TEN),
        ({"output": 5}, TEN),
        ({}, TEN),
        ({"input": 5, "output": 5}, {"input": 1}),
        ({"input": 5, "output": 5}, {"output": 1}),
        ({"input": 5, "output": 5, "cached_input": 6}, TEN),
        ({"input": 5, "output": 5, "reasoning": 6}, TEN),
        ({"input": 5, "output": 5, "searches": 1}, TEN),
    ],
    ids=["no output", "no input", "nothing", "no price of output", "no price of input",
         "more cached than there is", "more reasoning than there is", "a search without a price"],
)  # fmt: skip
def test_what_is_not_known_of_an_answer_makes_no_cost(usage: Any, prices: Any) -> None:
    assert count_cost(usage, read_prices(prices)) is None


def test_a_price_of_nothing_is_a_price() -> None:
    assert count_cost({"input": 5, "output": 5}, read_prices({"input": 0, "output": 0})) == 0


def test_a_tier_holds_for_the_whole_request_that_is_above_it() -> None:
    prices = read_prices(
        {**TEN, "cached_input": 0.5, "tiers": [{"above": 9, "input": 4}, {"above": 99, "input": 8}]}
    )

    def cost(input_tokens: int, cached: int = 0) -> object:
        counted = count_cost({"input": input_tokens, "output": 1, "cached_input": cached}, prices)
        return counted and counted * 1_000_000

    assert (cost(9), cost(10), cost(99), cost(100)) == (19, 50, 406, 810)
    # What a tier does not mention costs what it costs below it.
    assert cost(100, cached=100) == 60


@given(
    plain=st.integers(0, 10**7),
    cached=st.integers(0, 10**7),
    written=st.integers(0, 10**7),
    said=st.integers(0, 10**7),
    thought=st.integers(0, 10**7),
)
def test_every_token_is_billed_once(
    plain: int, cached: int, written: int, said: int, thought: int
) -> None:
    usage: Any = {
        "input": plain + cached + written,
        "cached_input": cached,
        "cache_write": written,
        "output": said + thought,
        "reasoning": thought,
    }
    names = ("input", "cached_input", "cache_write", "output", "reasoning")
    primes = dict(zip(names, (2, 3, 5, 7, 11), strict=True))
    expected = 2 * plain + 3 * cached + 5 * written + 7 * said + 11 * thought
    assert count_cost(usage, read_prices(primes)) == Decimal(expected) / 1_000_000
    flat = count_cost(usage, read_prices({"input": 2, "output": 7}))
    assert flat == Decimal(2 * usage["input"] + 7 * usage["output"]) / 1_000_000


@pytest.mark.parametrize(
    "prices",
    [{"input": -1}, {"input": "much"}, {"input": True}, {"input": float("nan")}, {"tiers": {}},
     {"tiers": [{"input": 1}]}, {"tiers": [5]}],
)  # fmt: skip
def test_prices_that_are_none_are_refused(prices: Any) -> None:
    with pytest.raises(ValueError, match=r"dollars|tier"):
        read_prices(prices)


def test_costs_are_added_without_the_noise_of_binary_fractions() -> None:
    assert add_usage({"cost": 0.1}, {"cost": 0.2}) == {"cost": 0.3}
    assert add_usage({"cost": 0.1}, {"input": 2}) == {"input": 2}
    assert add_usage({}, {"cost": 0.1}) == {"cost": 0.1}


# Runs ---------------------------------------------------------------------------------------------


@ways
def test_the_cost_of_a_run_is_that_of_all_its_turns(way: Way) -> None:
    script = [calling(call("look"), input=100, output=10), saying("Done.", input=300, output=20)]
    with priced(scripted(script), look) as app:
        events = events_of(app, way=way)
    costs = [event["usage"].get("cost") for event in of_kind(events, "usage")]
    assert costs == [0.0002, 0.0005]


def test_an_answer_says_what_its_run_has_cost() -> None:
    script = [calling(call("look"), input=100, output=10), saying("Done.", input=300, output=20)]
    with priced(scripted(script), look) as app:
        assert app.run("go").cost == Decimal("0.0007")


def test_what_a_provider_tells_counts_more_than_prices() -> None:
    with priced(scripted([[delta(content="x"), end(input=100, output=10, cost=0.5)]])) as app:  # type: ignore[arg-type]
        assert app.run("go").cost == Decimal("0.5")


@pytest.mark.parametrize(
    "script",
    [
        [calling(call("look"), input=1, output=1), saying("Done.")],
        [calling(call("look")), saying("Done.", input=1, output=1)],
        [calling(call("look"), input=1, output=1), saying("Done.", input=1)],
    ],
    ids=["the last says nothing", "the first says nothing", "one lacks a count"],
)
def test_one_answer_of_unknown_cost_makes_the_whole_unknown(script: Any, tmp_path: Path) -> None:
    with priced(scripted(script), look, store=f"sqlite://{tmp_path / 's.db'}") as app:
        answer = app.run("go")
        assert answer.cost is None
        assert "cost" not in answer.usage
        assert app.runs.find(str(answer.run)).cost is None


def test_a_model_without_a_price_has_no_cost() -> None:
    with priced(scripted([saying("x", input=1, output=1)]), prices={"scripted/other": TEN}) as app:
        assert app.run("go").cost is None


def test_the_cost_of_a_run_has_that_of_the_runs_it_makes(tmp_path: Path) -> None:
    turns = iter(
        [
            calling(call("chef", '{"prompt": "Soup"}'), input=100, output=10),
            saying("Soup.", input=1000, output=100),
            saying("Served.", input=200, output=20),
        ]
    )
    config = {
        "agents": {
            "default": {"provider": "scripted", "model": "m"},
            "chef": {"provider": "scripted", "model": "m", "system": "You cook."},
        }
    }
    provider = scripted(lambda history: next(turns))
    with priced(provider, config=config, store=f"sqlite://{tmp_path / 's.db'}") as app:
        answer = app.run("Dinner!", tools=[app.agent("chef").as_tool()])
        # 1300 × 1 + 130 × 10 for a million.
        assert answer.cost == Decimal("0.0026")
        stored = {run.agent: run.cost for run in app.runs.list()}
        assert stored == {None: Decimal("0.0026"), "chef": Decimal("0.002")}


def test_the_answer_of_a_child_that_says_nothing_of_its_usage_makes_the_whole_unknown() -> None:
    turns = iter(
        [
            calling(call("chef", '{"prompt": "Soup"}'), input=1, output=1),
            saying("Soup."),
            saying("Served.", input=2, output=2),
        ]
    )
    config = {
        "agents": {
            "default": {"provider": "scripted", "model": "m"},
            "chef": {"provider": "scripted", "model": "m"},
        }
    }
    with priced(scripted(lambda history: next(turns)), config=config) as app:
        assert app.run("Dinner!", tools=[app.agent("chef").as_tool()]).cost is None


def test_a_run_that_goes_on_counts_what_it_has_cost_before(tmp_path: Path) -> None:
    @tool(effect="write")
    def change() -> str:
        """Change something."""
        return "changed"

    script = [calling(call("change"), input=100, output=10), saying("Done.", input=300, output=20)]
    with priced(scripted(script), change, store=f"sqlite://{tmp_path / 's.db'}") as app:
        waiting = app.run("go", park=True)
        assert waiting.cost == Decimal("0.0002")
        assert waiting.run is not None
        done = app.resume(waiting.run, {waiting.waiting[0].id: "once"})
        assert done.cost == Decimal("0.0007")
        assert app.runs.find(waiting.run).cost == Decimal("0.0007")
        assert app.runs.find(waiting.run).usage["input"] == 400


# Who knows prices ---------------------------------------------------------------------------------


class Tariff(FeaturePlugin):
    """Prices of a program's own."""

    name = "tariff"
    asked: list[Any]
    gives: Any = TEN

    def model_prices(self, provider: str, model: str, base_url: str | None, time: float) -> Any:
        self.asked.append((provider, model, base_url))
        return self.gives


def with_tariff(gives: Any = TEN, prices: Any = None, **agent: Any) -> tuple[AgentApplication, Any]:
    agents = {"default": {"provider": "scripted", "model": "m", **agent}}
    provider = scripted(lambda history: saying("x", input=100, output=10))
    app = priced(provider, prices=prices or {}, config={"agents": agents})
    made: Any = type("Made", (Tariff,), {"asked": [], "gives": gives})
    app.core.register_feature(made)
    return app, made


def test_a_plugin_says_what_a_model_costs() -> None:
    app, tariff = with_tariff()
    with app:
        assert app.run("go").cost == Decimal("0.0002")
    assert tariff.asked == [("scripted", "m", None)]


def test_the_config_comes_before_plugins() -> None:
    app, tariff = with_tariff(prices={"scripted/m": {"input": 5, "output": 5}})
    with app:
        assert app.run("go").cost == Decimal("0.00055")
    assert not tariff.asked


def test_a_plugin_is_told_the_address_without_its_password() -> None:
    app, tariff = with_tariff(base_url="https://me:secret@example.com/v1")
    with app:
        app.run("go")
    assert tariff.asked == [("scripted", "m", "https://example.com/v1")]


@pytest.mark.parametrize("gives", [5, {"input": "much", "output": 1}], ids=["no dict", "no number"])
def test_a_plugin_that_fails_is_told_and_costs_no_answer(gives: Any) -> None:
    app, _ = with_tariff(gives=gives)
    with app:
        answer = app.run("go")
    assert (answer.text, answer.cost) == ("x", None)
    (warning,) = [w["message"] for w in answer.warnings if "costs" in w["message"]]
    assert warning.startswith("what scripted/m costs is not known: ")


def find(table: Any, account: str = "work", day: str = "2026-05-05") -> Any:
    app = app_with(scripted([]), config={"prices": table})
    with app:
        prices = Prices(app.config.values["prices"], app.core.stacks)
        found = prices.find(PricedModel("scripted", "big-2", account))
    return found and found.input


def test_the_users_name_for_a_provider_comes_before_the_plugins_and_a_name_before_a_pattern() -> (
    None
):
    table = {
        "scripted/*": {"input": 1, "output": 1},
        "scripted/big-2": {"input": 2, "output": 1},
        "work/*": {"input": 3, "output": 1},
    }
    assert find(table) == 3
    assert find(table, account="scripted") == 2
    assert find({"*/big-*": {"input": 4, "output": 1}}) == 4
    assert find({"work/small": {"input": 4, "output": 1}}) is None


def test_prices_hold_from_a_day_until_another() -> None:
    today = time.strftime("%Y-%m-%d", time.gmtime())
    before, later = "2001-01-01", "2999-01-01"
    old, new = {"input": 1, "output": 1}, {"input": 2, "output": 1}
    assert find({"work/*": [{**old, "until": today}, {**new, "from": today}]}) == 2
    assert find({"work/*": [{**old, "from": before, "until": later}, new]}) == 1
    assert find({"work/*": {**old, "from": later}}) is None
    assert find({"work/*": {**old, "until": before}}) is None


@pytest.mark.parametrize(
    ("prices", "said"),
    [
        ({"a/b": {"input": -1}}, "prices.a/b"),
        ({"a/b": {"inptu": 1}}, "inptu"),
        ({"a/b": {"input": 1, "from": "soon"}}, "2026-01-31"),
        ({"a/b": {"tiers": [{"input": 1}]}}, "above"),
    ],
)
def test_a_config_with_wrong_prices_is_refused(prices: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        AgentApplication({"prices": prices})
    assert said in caught.value.explain()


# Where it is told ---------------------------------------------------------------------------------


def line(*usages: Any) -> str:
    usage = UsageLine(clock=lambda: 0.0)
    usage.add_event({"type": "request_started", "provider": "p", "model": "m"})
    for each in usages:
        usage.add_event({"type": "usage", "usage": each})
    return usage.describe()


def test_the_line_of_usage_says_what_is_known_of_the_cost() -> None:
    assert (
        line({"input": 5, "cost": 0.5}, {"input": 5, "cost": 0.25})
        == "p/m · 10 in · $0.7500 · 0.0 s"
    )
    assert line({"input": 5}) == "p/m · 5 in · 0.0 s"
    partly = line({"input": 5, "cost": 0.5}, {"input": 5})
    assert partly == "p/m · 10 in · cost not known of every answer · 0.0 s"


def test_the_line_of_usage_has_the_runs_that_a_run_makes() -> None:
    usage = UsageLine(clock=lambda: 0.0)
    usage.add_event({"type": "request_started", "provider": "p", "model": "m"})
    usage.add_event({"type": "usage", "usage": {"input": 1, "cost": 0.5}})
    used: Any = {"type": "usage", "usage": {"input": 2, "cost": 0.25}}
    usage.add_event(
        {"type": "child", "id": "c", "name": "n", "agent": "a", "run": None, "event": used}
    )
    assert usage.describe() == "p/m · 3 in · $0.7500 · 0.0 s"
