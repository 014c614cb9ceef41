"""Budgets: a run stops before the request that would pass one, and says which."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.authoring import tool
from agent_hookspecs.errors import ConfigError
from agent_host import AgentApplication, Limits
from agent_host.agent.costs import estimate_input
from agent_host.store.sqlite import SqliteStore
from scripted import (
    WAYS,
    Way,
    app_with,
    call,
    calling,
    done,
    events_of,
    kinds,
    of_kind,
    saying,
    scripted,
)

ways = pytest.mark.parametrize("way", WAYS)
#: A cent for each token that comes back, and nothing for those that are sent.
CENTS = {"input": 0, "output": 10_000}


@tool(effect="read")
def step() -> str:
    """Take a step."""
    return "done"


def for_ever(history: list[dict[str, Any]]) -> Sequence[Any]:
    """A model that never has enough; each of its answers costs ten cents."""
    return calling(call("step", id=f"c{len(history)}"), input=6, output=10)


def app_of(
    limits: Any = None,
    script: Any = for_ever,
    prices: Any = CENTS,
    sent: list[Any] | None = None,
    config: Any = None,
    **options: Any,
) -> AgentApplication:
    settings = {
        "agents": {"default": {"provider": "scripted", "model": "m"}},
        "prices": {"scripted/m": prices} if prices else {},
        "tools": limits or {},
        **(config or {}),
    }
    return app_with(scripted(script, sent), step, config=settings, **options)


def answers(count: int) -> Any:
    """A script of answers that cost ten cents each."""
    return [saying("x", input=6, output=10) for _ in range(count)]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path / 's.db'}"


@ways
def test_a_run_stops_before_the_request_that_would_pass_its_budget(way: Way) -> None:
    sent: list[Any] = []
    # Ten cents each, and up to ten more: after two, a third could cost 0.3 in all.
    with app_of({"max_cost": 0.25}, sent=sent) as app:
        events = events_of(app, way=way, settings={"max_output_tokens": 10})
    assert events[-1] == done("limit", "tool_calls", "max_cost")
    assert len(sent) == 2
    (told,) = [e["message"] for e in of_kind(events, "warning") if "max_cost" in e["message"]]
    assert told == (
        "max_cost is $0.25, and $0.2 were spent; the next request may cost $0.1. Nothing more is "
        "sent; --budget or tools.max_cost sets another amount"
    )


@ways
def test_where_no_answer_has_a_longest_a_run_stops_when_its_budget_is_used_up(way: Way) -> None:
    sent: list[Any] = []
    with app_of({"max_cost": 0.25}, sent=sent) as app:
        events = events_of(app, way=way)
    assert (events[-1], len(sent)) == (done("limit", "tool_calls", "max_cost"), 3)


def test_a_first_request_that_would_pass_the_budget_is_not_sent() -> None:
    sent: list[Any] = []
    with app_of({"max_cost": 0.25}, sent=sent) as app:
        answer = app.run("go", settings={"max_output_tokens": 26})
        assert (answer.finish, answer.limit, answer.text, sent) == ("limit", "max_cost", "", [])
        # The session can be gone on with.
        assert app.run("Go on.", session=answer.session, limits={"max_turns": 1}).messages


def test_what_is_sent_counts_before_it_is_sent() -> None:
    sent: list[Any] = []
    # A cent for each token that is sent; a thousand letters are more than 300.
    with app_of({"max_cost": 3}, prices={"input": 10_000, "output": 0}, sent=sent) as app:
        assert app.run("x" * 1000).limit == "max_cost"
    assert not sent


@pytest.mark.parametrize(
    "limits",
    [{"max_cost": 0.15}, Limits(cost=0.15), Limits(cost=Decimal("0.15"))],
    ids=["by key", "as a number", "as a decimal"],
)
def test_a_program_sets_the_budget_of_a_run(limits: Any) -> None:
    with app_of(script=for_ever) as app:
        answer = app.run("go", limits=limits)
    assert (answer.limit, answer.cost) == ("max_cost", Decimal("0.2"))


def test_a_budget_of_nothing_sends_nothing() -> None:
    sent: list[Any] = []
    with app_of({"max_cost": 0}, sent=sent) as app:
        assert app.run("go").limit == "max_cost"
    assert not sent


def test_a_child_spends_what_its_parent_has() -> None:
    sent: list[Any] = []
    config = {
        "agents": {
            "default": {"provider": "scripted", "model": "m"},
            "walker": {"provider": "scripted", "model": "m", "system": "You walk."},
        }
    }

    def walk(history: list[dict[str, Any]]) -> Any:
        if history[0]["role"] == "system":
            return for_ever(history)
        return calling(call("walker", '{"prompt": "Walk."}'), input=6, output=10)

    with app_of(script=walk, sent=sent, config=config) as app:
        walker = app.agent("walker").as_tool()
        answer = app.run("go", tools=[walker], limits={"max_cost": 0.35})
    assert (answer.limit, answer.cost, len(sent)) == ("max_cost", Decimal("0.4"), 4)


def test_an_answer_of_unknown_cost_stops_what_has_a_budget() -> None:
    sent: list[Any] = []
    with app_of({"max_cost": 1}, prices=None, sent=sent) as app:
        answer = app.run("go")
    assert (answer.limit, len(sent)) == ("max_cost", 1)
    first, second = [w["message"] for w in answer.warnings if "max_cost" in w["message"]]
    assert "what scripted/m costs is not known" in first
    assert "install agent-host-prices" in first
    assert "what an answer has cost is not known. Nothing more is sent" in second


def test_what_a_provider_tells_counts_where_no_price_is_known() -> None:
    def tell(history: list[dict[str, Any]]) -> Any:
        return calling(call("step", id=f"c{len(history)}"), input=6, output=10, cost=0.1)  # type: ignore[arg-type]

    with app_of({"max_cost": 0.25}, script=tell, prices=None) as app:
        answer = app.run("go")
    assert (answer.limit, answer.cost) == ("max_cost", Decimal("0.3"))


# Budgets of more than one run ---------------------------------------------------------------------


def test_a_session_has_a_budget_over_its_runs(url: str) -> None:
    with app_of({"max_session_cost": 0.25}, script=answers(9), store=url) as app:
        session = app.run("one").session.id
        assert [app.run("more", session=session).limit for _ in range(3)] == [
            None,
            None,
            "max_session_cost",
        ]
        # Another session has spent nothing.
        assert app.run("new").limit is None


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        ({"max_day_cost": 0.25}, "max_day_cost"),
        ({"max_key_cost": 0.25}, "max_key_cost"),
        ({"max_key_cost": {"scripted": 0.25}}, "max_key_cost"),
    ],
    ids=["day", "any key", "this key"],
)
def test_a_day_and_a_key_have_budgets_over_all_processes(url: str, limits: Any, limit: str) -> None:
    sent: list[Any] = []
    found = []
    for _ in range(5):
        # Each as a process of its own has it.
        with app_of(limits, script=answers(1), sent=sent, store=url) as app:
            found.append(app.run("go").limit)
    assert (found, len(sent)) == ([None, None, None, limit, limit], 3)


def test_the_budget_of_a_key_is_for_that_key_alone(url: str) -> None:
    config = {
        "providers": {name: {"provider": "scripted", "model": "m"} for name in ("work", "home")},
        "agents": {"default": {"provider": "work"}},
    }
    limits = {"max_key_cost": {"work": 0.1}}
    with app_of(limits, script=answers(4), config=config, store=url) as app:
        assert [app.run("go").limit for _ in range(2)] == [None, "max_key_cost"]
        assert [app.run("go", provider="home").limit for _ in range(2)] == [None, None]


def test_what_was_spent_stays_so_when_its_session_is_deleted(url: str) -> None:
    with app_of({"max_day_cost": 0.1}, script=answers(2), store=url) as app:
        app.sessions.delete(app.run("go").session.id)
        assert app.run("go").limit == "max_day_cost"


def test_a_child_is_not_counted_twice_in_a_day(url: str, tmp_path: Path) -> None:
    config = {
        "agents": {
            "default": {"provider": "scripted", "model": "m"},
            "walker": {"provider": "scripted", "model": "m", "system": "You walk."},
        }
    }
    turns = iter(
        [
            calling(call("walker", '{"prompt": "Walk."}'), input=6, output=10),
            saying("Walked.", input=6, output=10),
            saying("Good.", input=6, output=10),
        ]
    )
    with app_of(script=lambda history: next(turns), config=config, store=url) as app:
        app.run("go", tools=[app.agent("walker").as_tool()])
    assert spent_today(tmp_path / "s.db") == {"scripted": Decimal("0.3")}


def test_runs_at_once_are_all_counted(url: str, tmp_path: Path) -> None:
    provider = scripted(lambda history: saying("x", input=6, output=10))
    config = {
        "agents": {"default": {"provider": "scripted", "model": "m"}},
        "prices": {"scripted/m": CENTS},
    }
    with app_with(provider, config=config, store=url) as app:
        threads = [threading.Thread(target=app.run, args=("go",)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert spent_today(tmp_path / "s.db") == {"scripted": Decimal("0.8")}


def spent_today(file: Path) -> dict[str, Decimal]:
    import time

    store = SqliteStore(file)
    try:
        return store.day_costs(time.strftime("%Y-%m-%d", time.gmtime()))
    finally:
        store.close()


@pytest.mark.parametrize("setting", ["max_session_cost", "max_key_cost", "max_day_cost"])
def test_a_budget_of_many_runs_is_refused_where_nothing_is_stored(setting: str) -> None:
    sent: list[Any] = []
    with app_of({setting: 1}, sent=sent) as app, pytest.raises(ConfigError) as caught:
        app.run("go")
    assert f"{setting} is set, and this run is not stored" in caught.value.message
    assert "--no-store" in caught.value.hint
    assert not sent


def test_a_store_that_cannot_be_asked_ends_a_run_with_a_budget(url: str) -> None:
    class Mute(SqliteStore):
        def day_costs(self, day: str) -> dict[str, Decimal]:
            from agent_hookspecs.store import StoreUnavailableError

            raise StoreUnavailableError("it is gone", hint="look for it")

    sent: list[Any] = []
    store = Mute(Path(url.removeprefix("sqlite://")))
    with app_of({"max_day_cost": 1}, sent=sent, store=store) as app:
        events: list[Any] = []
        with pytest.raises(Exception, match="it is gone"):
            events_of(app, into=events)
    assert (kinds(events)[-1], sent) == ("error", [])


@pytest.mark.parametrize(
    "limits",
    [{"max_cost": -1}, {"max_day_cost": "ten"}, {"max_key_cost": {"work": -1}}],
)
def test_a_budget_that_is_no_amount_is_refused(limits: Any) -> None:
    with pytest.raises(ConfigError, match="max_"):
        app_of(limits)


# The estimate -------------------------------------------------------------------------------------


def said(role: str, text: str, **metadata: Any) -> Any:
    return {"role": role, "content": text, "metadata": metadata}


def test_what_the_latest_answer_has_used_is_known_and_the_rest_is_estimated() -> None:
    history = [
        said("user", "x" * 9000),
        said("assistant", "y", usage={"input": 2000, "output": 50}),
        said("user", "z" * 300),
    ]
    assert estimate_input(history, [{"name": "t" * 3000}]) == 2000 + 50 + 100 + 8
    assert estimate_input(history[:1], []) == 3000 + 8
    assert estimate_input(history[:1], [{"name": "t" * 3000}]) > 4000
    # A letter of three bytes is about a token.
    assert estimate_input([said("user", "漢" * 300)], []) == 308


def test_a_picture_is_taken_for_many_tokens() -> None:
    message: Any = {
        **said("user", ""),
        "multipartContent": [{"type": "image", "content": {"url": "u"}}],
    }
    assert estimate_input([message], []) == 2008


@ways
@pytest.mark.parametrize("cost", [-1000, float("nan"), float("inf")])
def test_a_cost_that_nothing_can_have_gives_no_budget_back(cost: Any, way: Way) -> None:
    def lying(history: list[dict[str, Any]]) -> Sequence[Any]:
        return calling(call("step", id=f"c{len(history)}"), input=6, output=10, cost=cost)

    sent: list[Any] = []
    with app_of({"max_cost": 0.25}, lying, sent=sent) as app:
        events = events_of(app, way=way)
    assert (events[-1], len(sent)) == (done("limit", "tool_calls", "max_cost"), 3)
    assert [event["usage"]["cost"] for event in of_kind(events, "usage")] == [0.1] * 3
    told = [e["message"] for e in of_kind(events, "warning") if "not counted" in e["message"]]
    assert told == [f"scripted says of its answer that cost is {cost}, which is not counted"]
